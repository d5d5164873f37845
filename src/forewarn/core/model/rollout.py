"""Rollouts and their waves."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from forewarn.core.basic_types import (
    HOOK,
    Action,
    HostName,
    HostTask,
    MachineId,
    OrderId,
    RolloutAction,
    ServiceMode,
    Work,
)
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.event import NoticeSummary
from forewarn.core.model.order import WorkTerms


class RolloutState(StrEnum):
    """How far a rollout is."""

    PLANNED = "planned"  # only shown, by a dry run
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    ABORTED = "aborted"


class WaveState(StrEnum):
    """How far a wave is."""

    PLANNED = "planned"
    ANNOUNCED = "announced"
    STARTED = "started"
    CHECKING = "checking"  # the work is done; its machines have not all polled again yet
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Hosts that are worked on together. Once begun, `orders` has their orders in the same order.

    The orders of a large wave are placed in batches: the first hosts have theirs before the others.
    """

    hosts: tuple[HostName, ...]
    state: WaveState = WaveState.PLANNED
    orders: tuple[OrderId, ...] = ()
    announced_at: datetime | None = None
    started_at: datetime | None = None  # when work on the first machine started
    ends_about: datetime | None = None  # the estimate when it began
    ended_at: datetime | None = None
    notice: NoticeSummary | None = None  # of its machines, once it is over
    undone: tuple[HostName, ...] = ()  # once it is over: the hosts whose orders failed

    @property
    def begun(self) -> bool:
        """Whether placing the orders of its hosts has begun."""
        return self.state is not WaveState.PLANNED

    @property
    def ordered(self) -> tuple[tuple[HostName, OrderId], ...]:
        """The hosts with orders, each with its own."""
        return tuple(zip(self.hosts, self.orders, strict=False))

    @property
    def coming(self) -> tuple[HostName, ...]:
        """The hosts whose orders are still to be placed, once it has begun."""
        return self.hosts[len(self.orders) :] if self.begun else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLimit:
    """How many hosts may fail before a rollout pauses: a number, or a percentage of its hosts."""

    amount: float = 0
    percent: bool = False

    def of(self, hosts: int) -> int:
        """Return how many of this many hosts may fail."""
        return int(hosts * self.amount / 100 if self.percent else self.amount)

    def __str__(self) -> str:
        return f"{self.amount:g}%" if self.percent else f"{self.amount:g}"


NO_FAILURE = FailureLimit()


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTerms(WorkTerms):
    """The options of a rollout: its drivers, times, and conditions of health."""

    driver: str | None = None  # None: the driver of each host
    health: timedelta = timedelta(minutes=30)  # how long a machine may take to become healthy after its work
    require_poll: bool = False  # a machine that polled before is healthy when it polls again
    canary: int = 0  # this many hosts come first, before all others
    soak: timedelta = timedelta()  # how long the others wait after the canaries
    max_failures: FailureLimit = NO_FAILURE


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """The last change of a rollout, by a person or forewarn."""

    what: str  # begun, paused, resumed, aborted
    by: str
    at: datetime


DEFAULT_TERMS = RolloutTerms()

# Hosts that can take each other's machines.
InterchangeableHosts: TypeAlias = tuple[HostName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Orders on hosts, placed in waves."""

    id: str  # an upper-case GUID
    number: int  # of the record that announced it; lists of rollouts are in this order
    work: Work
    hosts: tuple[HostName, ...]
    hosts_at_once: int = 1
    gap: timedelta = timedelta()  # between the end of a wave and the next announcement
    state: RolloutState = RolloutState.RUNNING
    aborting: bool = False  # work that has started ends first, then it is aborted
    waves: tuple[Wave, ...] = ()  # first those that have begun, then the planned ones
    abandoned: tuple[HostName, ...] = ()  # hosts whose orders failed and were abandoned
    drivers: Mapping[HostName, str] = field(default_factory=dict)  # of hosts that have begun
    alike: tuple[InterchangeableHosts, ...] = ()  # as they were when it began, if it moves machines
    excused: tuple[MachineId, ...] = ()  # unhealthy machines that a person decided to ignore
    terms: RolloutTerms = DEFAULT_TERMS
    version: int = 1  # increases with each change by people or forewarn
    last_change: LastChange | None = None
    waiting: tuple[Waiting, ...] = ()
    blocked: bool = False  # nothing is under way, so any change of the fleet may unblock it
    by: str
    reason: str = ""
    created_at: datetime
    ended_at: datetime | None = None
    why: str = ""  # why it is paused or was aborted
    due_at: datetime | None = None

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.ended_at is None

    @property
    def action(self) -> RolloutAction:
        """Its action, as the caller named it."""
        return RolloutAction.SERVICE if self.work is Work.HOST else RolloutAction(self.work.value)

    @property
    def ordered(self) -> Action:
        """The action of the order on each of its hosts."""
        return Action.SERVICE if self.work is Work.HOST else Action.MAINTENANCE

    @property
    def empties(self) -> bool:
        """Whether machines that can leave their hosts do so before the work."""
        return self.work is Work.HOST and self.terms.mode is not ServiceMode.IN_PLACE

    def driven_by(self, known: HostDrivers, hooks: Collection[HostTask] = ()) -> dict[HostName, str]:
        """Return the driver of the work on each host.

        For work on the hosts themselves, it may differ from the driver that moves their machines.
        """
        worker = self.terms.host_driver or (HOOK if HostTask.WORK in hooks else None)
        if self.work is Work.HOST and worker is not None:
            return dict.fromkeys(self.hosts, worker)
        return {host: self.terms.driver or self.drivers.get(host) or known.of(host) for host in self.hosts}

    @property
    def begun(self) -> tuple[Wave, ...]:
        """The waves that have begun."""
        return tuple(wave for wave in self.waves if wave.begun)

    @property
    def planned(self) -> tuple[Wave, ...]:
        """The waves that have not begun."""
        return tuple(wave for wave in self.waves if not wave.begun)

    @property
    def coming(self) -> tuple[HostName, ...]:
        """The hosts of the current wave whose orders are still to be placed."""
        return tuple(host for wave in self.waves for host in wave.coming)

    @property
    def hosts_done(self) -> tuple[HostName, ...]:
        """The hosts whose work is done, in waves that are over; not those that failed or were abandoned."""
        over = [wave for wave in self.waves if wave.state is WaveState.DONE]
        done = {host for wave in over for host in wave.hosts if host not in wave.undone}
        return tuple(host for host in self.hosts if host in done and host not in self.abandoned)

    @property
    def hosts_not_done(self) -> tuple[HostName, ...]:
        """The hosts whose work is not done."""
        done = frozenset(self.hosts_done)
        return tuple(host for host in self.hosts if host not in done)

    @property
    def canaries(self) -> tuple[HostName, ...]:
        """The hosts that come before all others."""
        return self.hosts[: self.terms.canary]

    @property
    def failures_left(self) -> int:
        """How many more hosts may fail before it pauses; 0 if it is not running."""
        if self.state is not RolloutState.RUNNING or self.aborting:
            return 0
        return max(self.terms.max_failures.of(len(self.hosts)) - len(self.abandoned), 0)

    @property
    def left(self) -> tuple[HostName, ...]:
        """The hosts that have not begun, in the order of the request."""
        begun = {host for wave in self.begun for host in wave.hosts}
        return tuple(host for host in self.hosts if host not in begun)
