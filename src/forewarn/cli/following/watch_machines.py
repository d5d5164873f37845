"""Machines by group and update domain: by name where there is room, and counted where there is not."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from forewarn.cli import terminal
from forewarn.cli.following.fleet_copy import Mirror
from forewarn.cli.following.watch_lines import GAP, few

Machine = dict[str, Any]
Cut = tuple[list[Text], Text]  # a group in full, and as one line

MARKS = {"running": "●", "frozen": "◐", "restarting": "↻", "moving": "→", "stopped": "○"}
TOLD = "▲"  # in front of a machine that runs, and is named in an event that has not started
LEGEND = f"{TOLD} told of an event   " + "   ".join(f"{mark} {state}" for state, mark in MARKS.items())
_PARTS = re.compile(r"\d+|\D+")


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


def groups_of(mirror: Mirror, width: int) -> list[Cut]:
    """Draw all groups, those with something going on first."""
    scheduled = (event for event in mirror.events if event["status"] == "Scheduled")
    told = {name for event in scheduled for name in event["resources"]}
    return [_cut(block, told, width) for block in _blocks(mirror)]


def _blocks(mirror: Mirror) -> list[Block]:
    """Put machines together by group and domain; the groups with something going on first."""
    found: dict[str | None, dict[int | None, list[Machine]]] = {}
    for machine in sorted(mirror.machines.values(), key=lambda each: _natural(each["name"])):
        domain = None if machine["group"] is None else machine["update_domain"]
        found.setdefault(machine["group"], {}).setdefault(domain, []).append(machine)
    named = {name for event in mirror.events for name in event["resources"]}
    made = [
        Block(name=group, about=_about(mirror, group), domains=dict(sorted(members.items())))
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
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


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
    style = terminal.STYLES.get(state, "")
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
        style = "yellow" if state == "told" else terminal.STYLES.get(state, "")
        said.append(f"{counts[state]} {state}", style=style)
        if state != "running":
            names = [machine["name"] for machine in members if states[id(machine)] == state]
            said.append(f" ({few(names)})")
    return said


def _state(machine: Machine, told: set[str]) -> str:
    state = str(machine["state"])
    return "told" if state == "running" and machine["name"] in told else state
