"""The live view of a fleet, drawn to fit a terminal of any size.

What goes on comes first: holds, rollouts, events. The machines follow by group and update domain, by name
where there is room and counted where there is not; what is not as it should be is named all the same.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from forewarn.cli import console, words
from forewarn.cli.changes import Link
from forewarn.cli.mirror import Mirror

Machine = dict[str, Any]
Cut = tuple[list[Text], Text]  # a group in full, and as one line

MARKS = {"running": "●", "frozen": "◐", "restarting": "↻", "moving": "→", "stopped": "○"}
TOLD = "▲"  # in front of a machine that runs, and is named in an event that has not started
LEGEND = f"{TOLD} told of an event   " + "   ".join(f"{mark} {state}" for state, mark in MARKS.items())
GAP = "  "
_PARTS = re.compile(r"\d+|\D+")
_GUID = re.compile(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")
BAR = 10
# Holds and rollouts are few; where they are not, the view must leave room for the rest.
MOST_HOLDS, MOST_ROLLOUTS = 3, 4
# Below this a terminal shows what goes on, and no machines.
LEAST_FOR_MACHINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The room there is, in characters; no height: as much as it takes."""

    width: int
    height: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A group and its machines by update domain; standalone machines are in none."""

    name: str
    about: str
    domains: dict[int | None, list[Machine]]

    @property
    def machines(self) -> list[Machine]:
        """All of them."""
        return [machine for members in self.domains.values() for machine in members]


class View:
    """Draws what a mirror shows; machines are drawn anew only when something has changed."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._drawn_for: tuple[int, int] | None = None
        self._machines: list[Cut] = []

    def frame(self, size: Size, *, link: Link, trouble: str = "") -> list[Text]:
        """Draw everything, a line each."""
        mirror = self._mirror
        now = mirror.time.at_present().isoformat() if mirror.time else ""
        top = [
            _header(mirror, link, size.width),
            _summary(mirror) if link is not Link.LOST else Text(trouble, style="red"),
            *_holds(mirror, now),
            *_rollouts(mirror),
            Text(),
        ]
        events, machines = event_lines(mirror.events, now), self._cut(size.width)
        if size.height is None:
            drawn = [
                *top,
                *events,
                Text(),
                *(line for full, _ in machines for line in full),
                Text(),
                _legend(),
            ]
        else:
            drawn = _fitted(top, events, machines, size.height)
        for line in drawn:
            line.truncate(size.width, overflow="ellipsis")
        return drawn

    def _cut(self, width: int) -> "list[Cut]":
        if self._drawn_for != (self._mirror.version, width):
            scheduled = (event for event in self._mirror.events if event["status"] == "Scheduled")
            told = {name for event in scheduled for name in event["resources"]}
            self._machines = [_cut(block, told, width) for block in blocks(self._mirror)]
            self._drawn_for = (self._mirror.version, width)
        return self._machines


def _fitted(top: list[Text], events: list[Text], machines: list[Cut], height: int) -> list[Text]:
    room = height - len(top) - 1  # a line between events and machines
    for_machines = sum(len(full) for full, _ in machines)
    least = min(for_machines, len(machines) + 1, max(room // 2, LEAST_FOR_MACHINES))
    shown = _shortened(events, max(room - least, 2), "events")
    left = room - len(shown)
    groups = _groups(machines, left)
    drawn = [*top, *shown, Text(), *groups]
    if len(drawn) < height - 1:
        drawn += [Text(), _legend()]
    return drawn[:height]


def _groups(machines: list[Cut], room: int) -> list[Text]:
    """Give each group its lines if they fit, or as many of the first as possible, and one to the rest."""
    over = sum(len(full) for full, _ in machines) - room
    lines: list[list[Text]] = [full for full, _ in machines]
    # From the last: what needs attention stands first, and is the last to be shortened.
    for place in reversed(range(len(machines))):
        if over <= 0:
            break
        full, brief = machines[place]
        lines[place] = [brief]
        over -= len(full) - 1
    return _shortened([line for each in lines for line in each], room, "groups")


def _shortened(lines: list[Text], room: int, what: str) -> list[Text]:
    if len(lines) <= room:
        return lines
    hidden = len(lines) - max(room - 1, 0)
    return [*lines[: max(room - 1, 0)], Text(f"… and {hidden} more {what}", style="dim")]


def blocks(mirror: Mirror) -> list[Block]:
    """Put machines together by group and domain; the groups with something going on first."""
    found: dict[str | None, dict[int | None, list[Machine]]] = {}
    for machine in sorted(mirror.machines.values(), key=lambda each: _natural(each["name"])):
        domain = None if machine["group"] is None else machine["update_domain"]
        found.setdefault(machine["group"], {}).setdefault(domain, []).append(machine)
    named = {name for event in mirror.events for name in event["resources"]}
    made = [
        Block(name=group or "standalone", about=_about(mirror, group), domains=dict(sorted(members.items())))
        if group is not None
        else Block(name="standalone", about="machines without a group", domains=members)
        for group, members in found.items()
    ]
    return sorted(made, key=lambda block: (not _busy(block, named), block.name == "standalone", block.name))


def _busy(block: Block, named: set[str]) -> bool:
    return any(machine["state"] != "running" or machine["name"] in named for machine in block.machines)


def _about(mirror: Mirror, group: str | None) -> str:
    known = mirror.groups.get(group or "", {})
    enabled = "" if known.get("enabled", True) else ", not enabled"
    return f"{known.get('kind', '')}{enabled}"


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort `web-2` before `web-10`."""
    parts = _PARTS.findall(name.casefold())
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


# Machines


def _cut(block: Block, told: set[str], width: int) -> Cut:
    """Draw a group in full, and as one line."""
    head = Text.assemble((block.name, "bold"), GAP, (f"{block.about}, {_counted(block.machines)}", "dim"))
    lines = [head]
    for domain, members in block.domains.items():
        label = "  " if domain is None else f"  UD {domain}  "
        lines.append(_members(label, members, told, width))
    brief = Text.assemble((block.name, "bold"), GAP)
    brief.append_text(_tally(block.machines, told))
    return lines, brief


def _counted(machines: Sequence[Machine]) -> str:
    return "1 machine" if len(machines) == 1 else f"{len(machines)} machines"


def _members(label: str, members: Sequence[Machine], told: set[str], width: int) -> Text:
    line = Text(label)
    # A mark and a blank before each name; what certainly does not fit need not be tried.
    if (
        len(label) + sum(len(machine["name"]) + 2 for machine in members) + len(GAP) * (len(members) - 1)
        > width
    ):
        return line.append_text(_tally(members, told))
    for place, machine in enumerate(members):
        line.append(GAP if place else "").append_text(_member(machine, told))
    return line


def _member(machine: Machine, told: set[str]) -> Text:
    state = machine["state"]
    if state == "running" and machine["name"] in told:
        return Text(f"{TOLD} {machine['name']}", style="yellow")
    style = console.STYLES.get(state, "")
    mark = MARKS.get(state, "?")
    return Text.assemble((mark, style), " ", (machine["name"], "" if state == "running" else style))


def _tally(members: Sequence[Machine], told: set[str]) -> Text:
    """Count machines by state; those that do not simply run come first, and by name."""
    states = {id(machine): _state(machine, told) for machine in members}
    counts = Counter(states.values())
    said = Text()
    for state in (*(each for each in MARKS if each != "running"), "told", "running"):
        if not counts[state]:
            continue
        said.append(" · " if said else "")
        style = "yellow" if state == "told" else console.STYLES.get(state, "")
        said.append(f"{counts[state]} {state}", style=style)
        if state != "running":
            names = [machine["name"] for machine in members if states[id(machine)] == state]
            said.append(f" ({_few(names)})")
    return said


def _state(machine: Machine, told: set[str]) -> str:
    state = str(machine["state"])
    return "told" if state == "running" and machine["name"] in told else state


def _few(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# What goes on


def _header(mirror: Mirror, link: Link, width: int) -> Text:
    left = Text.assemble(("forewarn", "bold"), GAP, mirror.client.url.split("://")[-1], GAP)
    if mirror.time is not None:
        left.append(words.at(mirror.time.at_present().isoformat()) or "")
        if mirror.time.kind != "system":
            left.append(f" ({mirror.time.kind})")
    style = {Link.LIVE: "green", Link.POLLING: "green", Link.LOST: "bold red"}.get(link, "yellow")
    right = Text(f"{link.value}", style=style)
    if width > console.UNBOUNDED - 1:
        return left.append(GAP).append_text(right)
    space = width - left.cell_len - right.cell_len
    if space < len(GAP):
        left.truncate(max(width - right.cell_len - len(GAP), 0), overflow="ellipsis")
        space = width - left.cell_len - right.cell_len
    return left.append(" " * max(space, 1)).append_text(right)


def _summary(mirror: Mirror) -> Text:
    parts = [_states("machine", (machine["state"] for machine in mirror.machines.values()))]
    if mirror.hosts is not None:
        parts.append(_states("host", mirror.hosts.values()))
    parts.append(f"{len(mirror.events)} event{'' if len(mirror.events) == 1 else 's'}")
    return Text("   ".join(parts), style="dim")


def _states(what: str, states: Iterable[str]) -> str:
    counts = Counter(states)
    total = sum(counts.values())
    each = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    return f"{total} {what}{'' if total == 1 else 's'}" + (f" ({each})" if each else "")


def _holds(mirror: Mirror, now: str) -> list[Text]:
    lines = [
        Text.assemble(
            ("HELD", "bold yellow"),
            f"{GAP}{hold['reach']}: {hold['reason']} ({hold['by']}, {words.countdown(hold['at'], now)})",
        )
        for hold in mirror.holds or ()
    ]
    return _shortened(lines, MOST_HOLDS, "holds")


def _rollouts(mirror: Mirror) -> list[Text]:
    return _shortened([rollout_line(each) for each in mirror.rollouts or ()], MOST_ROLLOUTS, "rollouts")


def rollout_line(rollout: dict[str, Any], *, brief: bool = False) -> Text:
    """Draw a rollout in one line: how far it is and, if not brief, what it does now or waits for."""
    waves = rollout["waves"]
    done = sum(wave["state"] == "done" for wave in waves)
    filled = round(BAR * done / len(waves)) if waves else BAR
    line = Text.assemble(
        f"rollout {console.short(rollout['id'])} {rollout['action']}{GAP}",
        (rollout["state"], console.STYLES.get(rollout["state"], "")),
        f"{GAP}{'█' * filled}{'░' * (BAR - filled)} {done} of {len(waves)} waves",
    )
    if brief:
        return line
    current = [wave for wave in waves if wave["state"] not in ("planned", "done")]
    for wave in current:
        line.append(f"{GAP}{_few(wave['hosts'])} {wave['state']}")
    reasons = [f"{each['what']}: {_without_ids(each['reason'])}" for each in rollout["waiting"]]
    if rollout["state"] == "paused" and rollout["why"]:
        line.append(f"{GAP}{rollout['why']}")
    elif reasons and not current:
        line.append(f"{GAP}{reasons[0]}")
    return line


def _without_ids(text: str) -> str:
    return _GUID.sub(lambda id_: console.short(id_.group()), text)


def event_lines(events: list[dict[str, Any]], now: str) -> list[Text]:
    """Draw events, a line each: those that have started, then by when they may."""
    if not events:
        return [Text("No events: guests are told nothing.", style="dim")]
    ordered = sorted(events, key=lambda event: (event["status"] != "Started", event["not_before"]))
    rows = [_event(event, now) for event in ordered]
    widths = [max(row[place].cell_len for row in rows) for place in range(len(rows[0]))]
    return [_row(row, widths) for row in rows]


def _event(event: dict[str, Any], now: str) -> list[Text]:
    approved = event["status"] == "Scheduled" and event["approved"]
    status = "approved" if approved else event["status"]
    where = f"{event['group']} UD {event['update_domain']}" if event["group"] else ""
    return [
        Text(console.short(event["id"])),
        Text(event["type"]),
        Text(status, style="green" if approved else console.STYLES.get(status, "")),
        Text(starts(event, now), style="bold"),
        Text(where),
        Text(_few(event["resources"], most=5)),
    ]


def starts(event: dict[str, Any], now: str) -> str:
    """Say when an event starts or has started, as seen from now."""
    if event["started_at"] is not None:
        return f"started {words.countdown(event['started_at'], now)}".replace("started now", "just started")
    return words.countdown(event["not_before"], now)


def _row(cells: list[Text], widths: list[int]) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell).append(" " * (width - cell.cell_len) + GAP)
    line.rstrip()
    return line


def _legend() -> Text:
    return Text(LEGEND, style="dim")
