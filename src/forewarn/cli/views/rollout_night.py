"""The night as it goes: how far each host of a rollout is, wave by wave."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from forewarn.cli import terminal
from forewarn.cli.session import Session
from forewarn.client.calls import OperatorClient
from forewarn.core.basic_types import HostState, OrderState, StageKind, StageState
from forewarn.core.model.rollout import WaveState
from forewarn.wire.answers.fleet_answers import HostAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer, WaveAnswer

# Planned waves that are drawn after those that have begun: the others are counted.
PLANNED_SHOWN = 2


class Progress(Enum):
    """How far a host is: the mark that is drawn, and the words; in their order, what goes wrong last."""

    PLANNED = ("·", "planned")
    WAITS = ("…", "waiting")
    ANNOUNCED = ("▲", "announced")
    LEAVING = ("→", "being left")
    EMPTIED = ("○", "emptied")
    WORKING = ("◆", "worked on")
    RETURNING = ("←", "being returned to")
    DONE = ("✓", "done")
    FAILED = ("✕", "failed")
    LOST = ("?", "lost")
    LEFT_OUT = ("⊘", "left out")

    @property
    def mark(self) -> str:
        """What a host is drawn as."""
        return self.value[0]

    @property
    def word(self) -> str:
        """What is said of hosts."""
        return self.value[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """How far all hosts of a rollout are."""

    rollout: RolloutAnswer
    progress: Mapping[str, Progress]

    def counts(self) -> str:
        """Count the hosts by how far they are, each with its mark."""
        counted = Counter(self.progress.values())
        return ", ".join(f"{counted[each]} {each.word} {each.mark}" for each in Progress if counted[each])

    def lost(self) -> list[str]:
        """Name the hosts that did not come back."""
        return [host for host, each in self.progress.items() if each is Progress.LOST]

    def strip(self, wave: WaveAnswer) -> str:
        """Draw the hosts of a wave, a mark each."""
        return "".join(self.progress[host].mark for host in wave.hosts)


def read_night(client: OperatorClient, rollout: RolloutAnswer) -> Night:
    """Read how far the hosts of a rollout are."""
    is_open = rollout.ended_at is None
    orders = client.all(OrderAnswer, open=True).value.items if is_open else ()
    hosts = client.all(HostAnswer).value.items if is_open else ()
    lost = {host.name for host in hosts if host.state is HostState.LOST}
    return night_of(rollout, {order.id: order for order in orders}, lost)


def night_of(rollout: RolloutAnswer, orders: Mapping[str, OrderAnswer], lost: Collection[str]) -> Night:
    """Say how far each host of a rollout is, by the orders that are not over."""
    known = {
        **dict.fromkeys(rollout.hosts_done, Progress.DONE),
        **dict.fromkeys((host for host in rollout.hosts if host in lost), Progress.LOST),
        **dict.fromkeys(rollout.given_up, Progress.LEFT_OUT),
    }
    ordered = {
        host: id_ for wave in rollout.waves for host, id_ in zip(wave.hosts, wave.orders, strict=False)
    }
    undone = _undone(rollout)

    def of(host: str) -> Progress:
        if host not in ordered:
            return known.get(host, Progress.PLANNED)
        order = orders.get(ordered[host])
        if order is None:
            return undone.get(host) or known.get(host, Progress.DONE)
        return known.get(host) or _of_order(order)

    return Night(rollout=rollout, progress={host: of(host) for wave in rollout.waves for host in wave.hosts})


def _undone(rollout: RolloutAnswer) -> dict[str, Progress]:
    """Return hosts whose orders are over and that are not done: a person settles that, or nobody any more."""
    if rollout.ended_at is not None:
        return dict.fromkeys(rollout.hosts_not_done, Progress.LEFT_OUT)
    troubled = (each.what for each in rollout.waiting if each.what not in rollout.given_up)
    return dict.fromkeys(troubled, Progress.FAILED)


def _of_order(order: OrderAnswer) -> Progress:
    if order.state in (OrderState.FAILED, OrderState.QUEUED):
        return Progress.FAILED if order.state is OrderState.FAILED else Progress.WAITS
    stage = next((each for each in order.stages if each.state is not StageState.DONE), None)
    started = stage is None or stage.state is StageState.STARTED
    match stage.kind if stage is not None else None:
        case StageKind.EVACUATE if started:
            return Progress.LEAVING
        case StageKind.HOST if not started and _was_emptied(order):
            return Progress.EMPTIED
        case StageKind.RETURN:
            return Progress.RETURNING
        case _:
            return Progress.WORKING if started else Progress.ANNOUNCED


def _was_emptied(order: OrderAnswer) -> bool:
    return any(stage.kind is StageKind.EVACUATE and stage.steps for stage in order.stages)


def show_night(session: Session, rollout: RolloutAnswer) -> None:
    """Draw how far each host of a rollout is, a line for each wave that has begun and the next ones."""
    night = read_night(session.client, rollout)
    terminal.echo()
    terminal.fold(f"Hosts now: {night.counts()}", hanging="  ")
    for line in _lines(night):
        terminal.echo(line)
    for host in night.lost():
        choose = session.command(f"host show {host}")
        terminal.fold(f"{host} is lost: `{choose}` says what to choose", indent="  ", hanging="    ")


def _lines(night: Night) -> Iterator[str]:
    waves = night.rollout.waves
    begun = sum(wave.state is not WaveState.PLANNED for wave in waves)
    room = max(terminal.width() - 8, 20)
    shown = begun + PLANNED_SHOWN
    for number, wave in enumerate(waves[:shown], start=1):
        strip = night.strip(wave)
        for start in range(0, max(len(strip), 1), room):
            yield f"{number if start == 0 else '':>6}  {strip[start : start + room]}"
    if len(waves) > shown:
        yield f"     …  {len(waves) - shown} more planned"
