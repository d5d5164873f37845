"""The live view of a fleet, drawn to fit a terminal of any size.

What goes on comes first: holds, rollouts, events. The machines follow by group and update domain, by name
where there is room and counted where there is not; what is not as it should be is named all the same.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.following.change_stream import Link
from forewarn.cli.following.fleet_copy import Mirror
from forewarn.cli.following.watch_lines import GAP, event_lines, hold_line, rollout_line
from forewarn.cli.following.watch_machines import LEGEND, Cut, groups_of

# Holds and rollouts are few; where they are not, the view must leave room for the rest.
MOST_HOLDS, MOST_ROLLOUTS = 3, 4
# Below this a terminal shows what goes on, and no machines.
LEAST_FOR_MACHINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The room there is, in characters; no height: as much as it takes."""

    width: int
    height: int | None = None


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
            *_shortened([hold_line(each, now) for each in mirror.holds or ()], MOST_HOLDS, "holds"),
            *_shortened([rollout_line(each) for each in mirror.rollouts or ()], MOST_ROLLOUTS, "rollouts"),
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
            self._machines = groups_of(self._mirror, width)
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


def _header(mirror: Mirror, link: Link, width: int) -> Text:
    left = Text.assemble(("forewarn", "bold"), GAP, mirror.client.url.split("://")[-1], GAP)
    if mirror.time is not None:
        left.append(formatting.at(mirror.time.at_present().isoformat()) or "")
        if mirror.time.kind != "system":
            left.append(f" ({mirror.time.kind})")
    style = {Link.LIVE: "green", Link.POLLING: "green", Link.LOST: "bold red"}.get(link, "yellow")
    right = Text(f"{link.value}", style=style)
    if width > terminal.UNBOUNDED - 1:
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


def _legend() -> Text:
    return Text(LEGEND, style="dim")
