"""Tables of the live view: hosts, and machines by group and update domain."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.live.fleet_copy import FleetCopy, WatchedMachine
from forewarn.cli.live.watch_lines import GAP, MOST_LINES, Drawn, few, natural, rows
from forewarn.cli.tables import fold_line
from forewarn.core.basic_types import (
    Action,
    EventStatus,
    HostState,
    MachineState,
    OrderState,
    StageKind,
    StageState,
    StepState,
)
from forewarn.core.model.rollout import WaveState
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.texts import is_guid

UNREACHABLE = "unreachable"
MachineCounts = Mapping[str | None, Counter[MachineState]]  # by the name of the host

MARKS = {"running": "●", "frozen": "◐", "restarting": "↻", "moving": "→", "stopped": "○"}
ANNOUNCED = "▲"  # marks a running machine that a scheduled event names
LEGEND = f"{ANNOUNCED} named in an event   " + "   ".join(f"{mark} {state}" for state, mark in MARKS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedHost:
    """The shown fields of a host."""

    name: str
    state: HostState
    carries: Counter[MachineState]
    doing: str
    simulated: bool = False
    unreachable: str = ""  # the reason, if the host is unreachable

    @property
    def busy(self) -> bool:
        """Whether the host has work or a problem."""
        return bool(self.doing) or bool(self.unreachable) or self.state is not HostState.OK


def count_machines(copy: FleetCopy) -> MachineCounts:
    """Count the machines of each host by their state."""
    carried: dict[str | None, Counter[MachineState]] = {}
    for machine in copy.machines.values():
        carried.setdefault(machine.host, Counter())[machine.state] += 1
    return carried


def drawn_hosts(
    copy: FleetCopy, carried: MachineCounts, now: datetime, *, width: int, marks: bool
) -> list[Drawn]:
    """Draw the watched hosts, busy ones first."""
    hosts = sorted(_hosts(copy, carried, now, marks=marks), key=_urgency)
    cells = [_cells(host) for host in hosts]
    heads = rows([each[:-1] for each in cells])
    # Wrapped work stays in its column if that has at least half of the width.
    aligned = max((head.cell_len for head in heads), default=0) + len(GAP)
    hanging = aligned if aligned <= width // 2 else 2 * len(GAP)
    return [(fold_line(line, width, hanging=hanging, most=MOST_LINES), line) for line in rows(cells)]


def _urgency(host: WatchedHost) -> tuple[object, ...]:
    """Sort hosts that need a decision first, then busy ones."""
    return host.state is not HostState.LOST, not host.unreachable, not host.busy, natural(host.name)


def _hosts(copy: FleetCopy, carried: MachineCounts, now: datetime, *, marks: bool) -> Iterable[WatchedHost]:
    for name, state in (copy.hosts or {}).items():
        if copy.watched.all or name in carried or name == copy.watched.host:
            yield WatchedHost(
                name=name,
                state=state,
                carries=carried.get(name, Counter()),
                doing=_doing(copy, name, now, marks=marks),
                simulated=marks and name in copy.simulated,
                unreachable=copy.unreachable.get(name, ""),
            )


def _cells(host: WatchedHost) -> list[Text]:
    return [
        Text(host.name, style="bold" if host.busy else ""),
        Text.assemble(
            *_state_words(host),
            (", simulated" if host.simulated else "", "yellow"),
        ),
        Text(_carried(host.carries)),
        Text("; ".join(filter(None, (terminal.readable(host.unreachable), host.doing)))),
    ]


def _state_words(host: WatchedHost) -> list[tuple[str, str]]:
    """Write the state of a host; `unreachable` replaces `ok`."""
    state = (str(host.state), terminal.STYLES.get(host.state, ""))
    if not host.unreachable:
        return [state]
    away = (UNREACHABLE, "bold red")
    return [away] if host.state is HostState.OK else [state, (", ", ""), away]


def _carried(carries: Counter[MachineState]) -> str:
    others = [f"{count} {state}" for state, count in carries.items() if state is not MachineState.RUNNING]
    return ", ".join([formatting.counted(carries.total(), "machine"), *others])


def _doing(copy: FleetCopy, host: str, now: datetime, *, marks: bool) -> str:
    """Write the work on a host, or why it waits; orders say more than the wave of a rollout."""
    orders = [order for order in copy.orders or () if _host_of(copy, order) == host]
    if orders:
        return "; ".join(_order(copy, order, now, marks=marks) for order in orders)
    reasons = (reason for rollout in copy.rollouts or () for reason in _wave_reasons(rollout, host))
    return terminal.readable("; ".join(dict.fromkeys(reasons)))


def _host_of(copy: FleetCopy, order: OrderAnswer) -> str | None:
    if order.machine is None or order.project is None:
        return order.host
    machine = copy.machines.get((order.project, order.machine.casefold()))
    return None if machine is None else machine.host


def _wave_reasons(rollout: RolloutAnswer, host: str) -> list[str]:
    """Return why a rollout has not reached a host; the next wave may wait for a group."""
    own = [each.reason for each in rollout.waiting if each.what == host]
    following = next((wave for wave in rollout.waves if wave.state is WaveState.PLANNED), None)
    if own or following is None or host not in following.hosts:
        return own
    return [f"{each.what}: {each.reason}" for each in rollout.waiting if each.what not in rollout.hosts]


def _order(copy: FleetCopy, order: OrderAnswer, now: datetime, *, marks: bool) -> str:
    what = order.work if order.action is Action.MAINTENANCE else order.action
    text = f"{what} {_stage(order) or order.state}"
    text += ", simulated" if marks and formatting.is_simulated(order) else ""
    if order.state is OrderState.ANNOUNCED:
        pending = (
            each for each in copy.events if each.order == order.id and each.status is EventStatus.SCHEDULED
        )
        first = min((event.not_before for event in pending), default=None)
        text += "" if first is None else f", {formatting.until_start(first, now)}"
    # The line of an event shows that it waits for approval.
    reasons = [f"{each.what}: {each.reason}" for each in order.waiting if not is_guid(each.what)]
    return ": ".join([text, *([terminal.readable("; ".join(dict.fromkeys(reasons)))] if reasons else [])])


def _stage(order: OrderAnswer) -> str:
    """Write the current stage of work on a host itself: the machines that move, or the task."""
    stage = next((each for each in order.stages if each.state is not StageState.DONE), None)
    if stage is None or stage.state is not StageState.STARTED or stage.kind is StageKind.MACHINES:
        return ""
    if stage.kind is StageKind.HOST:
        step = next((each for each in order.host_steps if each.state is StepState.RUNNING), None)
        far = "" if step is None or step.progress is None else f" {step.progress:.0%}"
        return f"of the host{f', {step.task}{far}' if step else ''}"
    way = "leave" if stage.kind is StageKind.EVACUATE else "return"
    over = sum(step.ended_at is not None for step in stage.steps)
    moving = [step.machine for step in stage.steps if step.state is StepState.RUNNING]
    now = f", now {', '.join(moving)}" if moving else ""
    return f"started: {over} of {formatting.counted(len(stage.steps), 'machine')} {way}{now}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMachines:
    """A group and its machines by update domain; standalone machines have none."""

    name: str
    about: str
    domains: dict[int | None, list[WatchedMachine]]

    @property
    def machines(self) -> list[WatchedMachine]:
        """All machines of the group."""
        return [machine for members in self.domains.values() for machine in members]


def groups_of(copy: FleetCopy, width: int) -> list[Drawn]:
    """Draw all groups, busy ones first."""
    scheduled = (event for event in copy.events if event.status is EventStatus.SCHEDULED)
    announced = {name for event in scheduled for name in event.resources}
    return [_drawn(group, announced, width) for group in _groups(copy)]


def _groups(copy: FleetCopy) -> list[GroupMachines]:
    """Group machines by group and update domain, busy groups first."""
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
        lines += fold_line(line, width, hanging=len(label), most=MOST_LINES)
    brief = Text.assemble((group.name, "bold"), GAP)
    brief.append_text(_tally(group.machines, announced))
    return lines, brief


def _members(label: str, members: Sequence[WatchedMachine], announced: set[str], width: int) -> Text:
    line = Text(label)
    # A mark and a blank precede each name. Skip drawing names that cannot fit.
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
    """Count machines by state; name those that do not run."""
    states = {id(machine): _state(machine, announced) for machine in members}
    counts = Counter(states.values())
    text = Text()
    for state in (*(each for each in MARKS if each != "running"), "announced", "running"):
        if not counts[state]:
            continue
        text.append(" · " if text else "")
        style = "yellow" if state == "announced" else terminal.STYLES.get(state, "")
        text.append(f"{counts[state]} {state}", style=style)
        if state != "running":
            names = [machine.name for machine in members if states[id(machine)] == state]
            text.append(f" ({few(names)})")
    return text


def _state(machine: WatchedMachine, announced: set[str]) -> str:
    state = machine.state
    return "announced" if state == "running" and machine.name in announced else state
