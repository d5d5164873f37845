"""Hosts, a line each: how one is, what it carries, and what is done to it or waits."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.following.fleet_copy import FleetCopy
from forewarn.cli.following.watch_lines import GAP, MOST_LINES, Drawn, natural, rows
from forewarn.cli.table_drawing import fold
from forewarn.core.model.rollout import WaveState
from forewarn.core.words import (
    Action,
    EventStatus,
    HostState,
    MachineState,
    OrderState,
    StageKind,
    StageState,
    StepState,
)
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.guid import is_guid

UNREACHABLE = "unreachable"
Carried = Mapping[str | None, Counter[MachineState]]  # by the name of the host


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedHost:
    """What is shown of a host."""

    name: str
    state: HostState
    carries: Counter[MachineState]
    doing: str
    simulated: bool = False
    unreachable: str = ""  # why it cannot be reached

    @property
    def busy(self) -> bool:
        """Whether something is done to it, waits, or is wrong."""
        return bool(self.doing) or bool(self.unreachable) or self.state is not HostState.OK


def count_carried(copy: FleetCopy) -> Carried:
    """Count the machines of each host by their state."""
    carried: dict[str | None, Counter[MachineState]] = {}
    for machine in copy.machines.values():
        carried.setdefault(machine.host, Counter())[machine.state] += 1
    return carried


def drawn_hosts(copy: FleetCopy, carried: Carried, now: datetime, *, width: int, marks: bool) -> list[Drawn]:
    """Draw the hosts of what is watched, those with something going on first."""
    hosts = sorted(_hosts(copy, carried, now, marks=marks), key=_urgency)
    cells = [_cells(host) for host in hosts]
    heads = rows([each[:-1] for each in cells])
    # What is done stands below itself where it has half of the width at least.
    aligned = max((head.cell_len for head in heads), default=0) + len(GAP)
    hanging = aligned if aligned <= width // 2 else 2 * len(GAP)
    return [(fold(line, width, hanging=hanging, most=MOST_LINES), line) for line in rows(cells)]


def _urgency(host: WatchedHost) -> tuple[object, ...]:
    """Sort hosts that a person must decide about first, then those with something going on."""
    return host.state is not HostState.LOST, not host.unreachable, not host.busy, natural(host.name)


def _hosts(copy: FleetCopy, carried: Carried, now: datetime, *, marks: bool) -> Iterable[WatchedHost]:
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
            *_standing(host),
            (", simulated" if host.simulated else "", "yellow"),
        ),
        Text(_carried(host.carries)),
        Text("; ".join(filter(None, (terminal.readable(host.unreachable), host.doing)))),
    ]


def _standing(host: WatchedHost) -> list[tuple[str, str]]:
    """Write the state of a host; one that cannot be reached is not simply ok."""
    state = (str(host.state), terminal.STYLES.get(host.state, ""))
    if not host.unreachable:
        return [state]
    away = (UNREACHABLE, "bold red")
    return [away] if host.state is HostState.OK else [state, (", ", ""), away]


def _carried(carries: Counter[MachineState]) -> str:
    others = [f"{count} {state}" for state, count in carries.items() if state is not MachineState.RUNNING]
    return ", ".join([formatting.counted(carries.total(), "machine"), *others])


def _doing(copy: FleetCopy, host: str, now: datetime, *, marks: bool) -> str:
    """Write what is done to a host, or what keeps it: its own orders say more than the turn of its wave."""
    orders = [order for order in copy.orders or () if _host_of(copy, order) == host]
    if orders:
        return "; ".join(_order(copy, order, now, marks=marks) for order in orders)
    reasons = (reason for rollout in copy.rollouts or () for reason in _turn(rollout, host))
    return terminal.readable("; ".join(dict.fromkeys(reasons)))


def _host_of(copy: FleetCopy, order: OrderAnswer) -> str | None:
    if order.machine is None or order.project is None:
        return order.host
    machine = copy.machines.get((order.project, order.machine.casefold()))
    return None if machine is None else machine.host


def _turn(rollout: RolloutAnswer, host: str) -> list[str]:
    """Return why a rollout has not come to a host: of the next wave that may be said of its groups."""
    own = [each.reason for each in rollout.waiting if each.what == host]
    following = next((wave for wave in rollout.waves if wave.state is WaveState.PLANNED), None)
    if own or following is None or host not in following.hosts:
        return own
    return [f"{each.what}: {each.reason}" for each in rollout.waiting if each.what not in rollout.hosts]


def _order(copy: FleetCopy, order: OrderAnswer, now: datetime, *, marks: bool) -> str:
    what = order.work if order.action is Action.MAINTENANCE else order.action
    said = f"{what} {_stage(order) or order.state}" + (
        ", simulated" if marks and formatting.is_simulated(order) else ""
    )
    if order.state is OrderState.ANNOUNCED:
        pending = (
            each for each in copy.events if each.order == order.id and each.status is EventStatus.SCHEDULED
        )
        first = min((event.not_before for event in pending), default=None)
        said += "" if first is None else f", {formatting.until_start(first, now)}"
    # That an event awaits its approval is said of the event.
    reasons = [f"{each.what}: {each.reason}" for each in order.waiting if not is_guid(each.what)]
    return ": ".join([said, *([terminal.readable("; ".join(dict.fromkeys(reasons)))] if reasons else [])])


def _stage(order: OrderAnswer) -> str:
    """Write what happens now in work on a host itself: who leaves it, or what is done to it."""
    stage = next((each for each in order.stages if each.state is not StageState.DONE), None)
    if stage is None or stage.state is not StageState.STARTED or stage.kind is StageKind.MACHINES:
        return ""
    if stage.kind is StageKind.HOST:
        step = next((each for each in order.host_steps if each.state is StepState.RUNNING), None)
        far = "" if step is None or step.progress is None else f" {step.progress:.0%}"
        return f"of the host{f', {step.task}{far}' if step else ''}"
    way = "leave" if stage.kind is StageKind.EVACUATE else "come back"
    over = sum(step.ended_at is not None for step in stage.steps)
    moving = [step.machine for step in stage.steps if step.state is StepState.RUNNING]
    now = f", now {', '.join(moving)}" if moving else ""
    return f"started: {over} of {formatting.counted(len(stage.steps), 'machine')} {way}{now}"
