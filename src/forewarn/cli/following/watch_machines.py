"""Machines by group and update domain: by name where there is room, and counted where there is not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.following.fleet_copy import FleetCopy, WatchedMachine
from forewarn.cli.following.watch_lines import GAP, MOST_LINES, Drawn, few, natural
from forewarn.cli.table_drawing import fold
from forewarn.core.words import EventStatus

MARKS = {"running": "●", "frozen": "◐", "restarting": "↻", "moving": "→", "stopped": "○"}
ANNOUNCED = "▲"  # in front of a machine that runs, and is named in an event that has not started
LEGEND = f"{ANNOUNCED} named in an event   " + "   ".join(f"{mark} {state}" for state, mark in MARKS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMachines:
    """A group and its machines by update domain; standalone machines are in none."""

    name: str
    about: str
    domains: dict[int | None, list[WatchedMachine]]

    @property
    def machines(self) -> list[WatchedMachine]:
        """All of them."""
        return [machine for members in self.domains.values() for machine in members]


def groups_of(copy: FleetCopy, width: int) -> list[Drawn]:
    """Draw all groups, those with something going on first."""
    scheduled = (event for event in copy.events if event.status is EventStatus.SCHEDULED)
    announced = {name for event in scheduled for name in event.resources}
    return [_drawn(group, announced, width) for group in _groups(copy)]


def _groups(copy: FleetCopy) -> list[GroupMachines]:
    """Group machines by group and update domain; groups with something going on first."""
    found: dict[str | None, dict[int | None, list[WatchedMachine]]] = {}
    for machine in sorted(copy.machines.values(), key=lambda each: natural(each.name)):
        domain = None if machine.group is None else machine.update_domain
        found.setdefault(machine.group, {}).setdefault(domain, []).append(machine)
    named = {name for event in copy.events for name in event.resources}
    made = [
        GroupMachines(name=group, about=_about(copy, group), domains=dict(sorted(members.items())))
        if group is not None
        else GroupMachines(name="standalone", about="machines without a group", domains=members)
        for group, members in found.items()
    ]
    return sorted(made, key=lambda block: (not _busy(block, named), block.name == "standalone", block.name))


def _busy(block: GroupMachines, named: set[str]) -> bool:
    return any(machine.state != "running" or machine.name in named for machine in block.machines)


def _about(copy: FleetCopy, group: str | None) -> str:
    known = copy.groups.get(group or "")
    return "" if known is None else f"{known.kind}{'' if known.enabled else ', not enabled'}"


def _drawn(group: GroupMachines, announced: set[str], width: int) -> Drawn:
    """Draw a group in full, and as one line."""
    count = formatting.counted(len(group.machines), "machine")
    head = Text.assemble((group.name, "bold"), GAP, (f"{group.about}, {count}", "dim"))
    lines = [head]
    for domain, members in group.domains.items():
        label = "  " if domain is None else f"  UD {domain}  "
        line = _members(label, members, announced, width)
        lines += fold(line, width, hanging=len(label), most=MOST_LINES)
    brief = Text.assemble((group.name, "bold"), GAP)
    brief.append_text(_tally(group.machines, announced))
    return lines, brief


def _members(label: str, members: Sequence[WatchedMachine], announced: set[str], width: int) -> Text:
    line = Text(label)
    # A mark and a blank before each name; what certainly does not fit need not be tried.
    if len(label) + sum(len(machine.name) + 2 for machine in members) + len(GAP) * (len(members) - 1) > width:
        return line.append_text(_tally(members, announced))
    for place, machine in enumerate(members):
        line.append(GAP if place else "").append_text(_member(machine, announced))
    return line


def _member(machine: WatchedMachine, announced: set[str]) -> Text:
    state = machine.state
    if state == "running" and machine.name in announced:
        return Text(f"{ANNOUNCED} {machine.name}", style="yellow")
    style = terminal.STYLES.get(state, "")
    mark = MARKS.get(state, "?")
    return Text.assemble((mark, style), " ", (machine.name, "" if state == "running" else style))


def _tally(members: Sequence[WatchedMachine], announced: set[str]) -> Text:
    """Count machines by state; those that do not simply run come first, and by name."""
    states = {id(machine): _state(machine, announced) for machine in members}
    counts = Counter(states.values())
    said = Text()
    for state in (*(each for each in MARKS if each != "running"), "announced", "running"):
        if not counts[state]:
            continue
        said.append(" · " if said else "")
        style = "yellow" if state == "announced" else terminal.STYLES.get(state, "")
        said.append(f"{counts[state]} {state}", style=style)
        if state != "running":
            names = [machine.name for machine in members if states[id(machine)] == state]
            said.append(f" ({few(names)})")
    return said


def _state(machine: WatchedMachine, announced: set[str]) -> str:
    state = machine.state
    return "announced" if state == "running" and machine.name in announced else state
