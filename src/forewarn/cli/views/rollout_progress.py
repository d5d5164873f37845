"""The progress of each host of a rollout, wave by wave."""

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

# The planned waves that are drawn; the others are counted.
PLANNED_SHOWN = 2


class HostProgress(Enum):
    """The progress of a host, with its mark and its words; problems come last."""

    PLANNED = ("·", "planned")
    WAITS = ("…", "waiting")
    ANNOUNCED = ("▲", "announced")
    LEAVING = ("→", "being emptied")
    EMPTIED = ("○", "emptied")
    WORKING = ("◆", "in work")
    RETURNING = ("←", "machines returning")
    DONE = ("✓", "done")
    FAILED = ("✕", "failed")
    LOST = ("?", "lost")
    SKIPPED = ("⊘", "skipped")

    @property
    def mark(self) -> str:
        """The character that represents a host."""
        return self.value[0]

    @property
    def word(self) -> str:
        """The words for hosts in this state."""
        return self.value[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutProgress:
    """The progress of all hosts of a rollout."""

    rollout: RolloutAnswer
    progress: Mapping[str, HostProgress]

    def counts(self) -> str:
        """Count the hosts by progress, with the marks."""
        counted = Counter(self.progress.values())
        return ", ".join(f"{counted[each]} {each.word} {each.mark}" for each in HostProgress if counted[each])

    def lost(self) -> list[str]:
        """Return the hosts that did not come back."""
        return [host for host, each in self.progress.items() if each is HostProgress.LOST]

    def strip(self, wave: WaveAnswer) -> str:
        """Draw the hosts of a wave as marks."""
        return "".join(self.progress[host].mark for host in wave.hosts)


def read_progress(client: OperatorClient, rollout: RolloutAnswer) -> RolloutProgress:
    """Read the progress of the hosts of a rollout."""
    is_open = rollout.ended_at is None
    orders = client.all(OrderAnswer, open=True).value.items if is_open else ()
    hosts = client.all(HostAnswer).value.items if is_open else ()
    lost = {host.name for host in hosts if host.state is HostState.LOST}
    return progress_of(rollout, {order.id: order for order in orders}, lost)


def progress_of(
    rollout: RolloutAnswer, orders: Mapping[str, OrderAnswer], lost: Collection[str]
) -> RolloutProgress:
    """Return the progress of each host, given the open orders."""
    known = {
        **dict.fromkeys(rollout.hosts_done, HostProgress.DONE),
        **dict.fromkeys((host for host in rollout.hosts if host in lost), HostProgress.LOST),
        **dict.fromkeys(rollout.given_up, HostProgress.SKIPPED),
    }
    ordered = {
        host: id_ for wave in rollout.waves for host, id_ in zip(wave.hosts, wave.orders, strict=False)
    }
    undone = _undone(rollout)

    def of(host: str) -> HostProgress:
        if host not in ordered:
            return known.get(host, HostProgress.PLANNED)
        order = orders.get(ordered[host])
        if order is None:
            return undone.get(host) or known.get(host, HostProgress.DONE)
        return known.get(host) or _of_order(order)

    return RolloutProgress(
        rollout=rollout, progress={host: of(host) for wave in rollout.waves for host in wave.hosts}
    )


def _undone(rollout: RolloutAnswer) -> dict[str, HostProgress]:
    """Return the hosts that are not done although their orders are over."""
    if rollout.ended_at is not None:
        return dict.fromkeys(rollout.hosts_not_done, HostProgress.SKIPPED)
    troubled = (each.what for each in rollout.waiting if each.what not in rollout.given_up)
    return dict.fromkeys(troubled, HostProgress.FAILED)


def _of_order(order: OrderAnswer) -> HostProgress:
    if order.state in (OrderState.FAILED, OrderState.QUEUED):
        return HostProgress.FAILED if order.state is OrderState.FAILED else HostProgress.WAITS
    stage = next((each for each in order.stages if each.state is not StageState.DONE), None)
    started = stage is None or stage.state is StageState.STARTED
    emptied = any(each.kind is StageKind.EVACUATE and each.steps for each in order.stages)
    match stage.kind if stage is not None else None:
        case StageKind.EVACUATE if started:
            return HostProgress.LEAVING
        case StageKind.HOST if not started and emptied:
            return HostProgress.EMPTIED
        case StageKind.RETURN:
            return HostProgress.RETURNING
        case _:
            return HostProgress.WORKING if started else HostProgress.ANNOUNCED


def show_progress(session: Session, rollout: RolloutAnswer) -> None:
    """Draw the progress of each host, a line for each started wave and the next ones."""
    progress = read_progress(session.client, rollout)
    terminal.echo()
    terminal.echo_wrapped(f"Host progress: {progress.counts()}", hanging="  ")
    for line in _lines(progress):
        terminal.echo(line)
    for host in progress.lost():
        choose = session.command(f"host show {host}")
        terminal.echo_wrapped(f"{host} is lost: `{choose}` shows the choices", indent="  ", hanging="    ")


def _lines(progress: RolloutProgress) -> Iterator[str]:
    waves = progress.rollout.waves
    begun = sum(wave.state is not WaveState.PLANNED for wave in waves)
    room = max(terminal.width() - 8, 20)
    shown = begun + PLANNED_SHOWN
    for number, wave in enumerate(waves[:shown], start=1):
        strip = progress.strip(wave)
        for start in range(0, max(len(strip), 1), room):
            yield f"{number if start == 0 else '':>6}  {strip[start : start + room]}"
    if len(waves) > shown:
        yield f"     …  {len(waves) - shown} more planned"
