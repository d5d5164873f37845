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
    """Hosts that are done together; `orders` are theirs, in the same order, once it has begun.

    Those of a large wave are placed some at a time: the first hosts have theirs, the others are coming.
    """

    hosts: tuple[HostName, ...]
    state: WaveState = WaveState.PLANNED
    orders: tuple[OrderId, ...] = ()
    announced_at: datetime | None = None
    started_at: datetime | None = None  # when the first of its machines was worked on
    ends_about: datetime | None = None  # what was expected when it began
    ended_at: datetime | None = None
    notice: NoticeSummary | None = None  # what its machines got, once it is over
    undone: tuple[HostName, ...] = ()  # once it is over: whose orders came to nothing

    @property
    def begun(self) -> bool:
        """Whether its hosts have orders, or get them now."""
        return self.state is not WaveState.PLANNED

    @property
    def ordered(self) -> tuple[tuple[HostName, OrderId], ...]:
        """Its hosts that have orders, each with its own."""
        return tuple(zip(self.hosts, self.orders, strict=False))

    @property
    def coming(self) -> tuple[HostName, ...]:
        """Its hosts whose orders are still to be placed, once it has begun."""
        return self.hosts[len(self.orders) :] if self.begun else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLimit:
    """How many hosts of a rollout may fail and are left out before it pauses: so many, or a share of all."""

    amount: float = 0
    percent: bool = False

    def of(self, hosts: int) -> int:
        """Return how many of so many hosts may fail."""
        return int(hosts * self.amount / 100 if self.percent else self.amount)

    def __str__(self) -> str:
        return f"{self.amount:g}%" if self.percent else f"{self.amount:g}"


NO_FAILURE = FailureLimit()


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTerms:
    """What a rollout was asked for beside its hosts: who does the work, until when, and what is healthy."""

    driver: str | None = None  # who does the work; None: whoever does it on each host
    heartbeat: timedelta | None = None  # how long an external driver may be silent
    deadline: datetime | None = None  # from then on windows give way
    expected: timedelta | None = None  # how long a stage of a host is expected to take
    health: timedelta = timedelta(minutes=30)  # how long after its work a machine may take to be well
    require_poll: bool = False  # a machine that polled before is healthy when it polls again
    whole: bool = False  # each host is done in one go; refused where that breaks rule 4
    together: str = ""  # why each host is done in one go though that breaks rule 4
    canary: int = 0  # so many hosts come first, and apart from all others
    soak: timedelta = timedelta()  # how long the others wait once the canaries are done
    max_failures: FailureLimit = NO_FAILURE
    mode: ServiceMode | None = None  # what becomes of the machines of hosts that are worked on themselves
    returning: bool = False  # machines that left a host for that come back afterwards
    host_driver: str | None = None  # who does the work on the hosts themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """Who changed a rollout last: a person, or forewarn itself."""

    what: str  # begun, paused, resumed, aborted
    by: str
    at: datetime


DEFAULT_TERMS = RolloutTerms()

# Hosts that could exchange their machines, and none would exclude another by it.
InterchangeableHosts: TypeAlias = tuple[HostName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Host orders in waves."""

    id: str  # an upper-case GUID
    number: int  # the record that says it was begun; rollouts are listed by it
    work: Work
    hosts: tuple[HostName, ...]
    hosts_at_once: int = 1
    gap: timedelta = timedelta()  # between the end of a wave and the next announcement
    state: RolloutState = RolloutState.RUNNING
    aborting: bool = False  # what is started is being finished, then it is aborted
    waves: tuple[Wave, ...] = ()  # those that have begun, then those that are planned
    abandoned: tuple[HostName, ...] = ()  # their orders failed and were abandoned
    drivers: Mapping[HostName, str] = field(default_factory=dict)  # who works on those that have begun
    alike: tuple[InterchangeableHosts, ...] = ()  # which hosts were alike when it began, if it moves machines
    excused: tuple[MachineId, ...] = ()  # not healthy in time, and a person said to go on
    terms: RolloutTerms = DEFAULT_TERMS
    version: int = 1  # counts the changes that people and forewarn have made
    last_change: LastChange | None = None
    waiting: tuple[Waiting, ...] = ()
    blocked: bool = False  # nothing is under way: any change of the fleet may let it go on
    by: str
    reason: str = ""
    created_at: datetime
    ended_at: datetime | None = None
    why: str = ""  # why it is paused or was aborted
    due_at: datetime | None = None

    @property
    def open(self) -> bool:
        """Whether anything more will come of it."""
        return self.ended_at is None

    @property
    def action(self) -> RolloutAction:
        """What it does, as its caller named it."""
        return RolloutAction.SERVICE if self.work is Work.HOST else RolloutAction(self.work.value)

    @property
    def ordered(self) -> Action:
        """What is ordered on each of its hosts."""
        return Action.SERVICE if self.work is Work.HOST else Action.MAINTENANCE

    @property
    def empties(self) -> bool:
        """Whether machines that can leave their hosts do so before these are worked on."""
        return self.work is Work.HOST and self.terms.mode is not ServiceMode.IN_PLACE

    def driven_by(self, known: HostDrivers, hooks: Collection[HostTask] = ()) -> dict[HostName, str]:
        """Return who does or did the work on each host, or would do it now.

        On hosts themselves that may be somebody else than who moves their machines.
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
        """The hosts of the wave under way whose orders are still to be placed."""
        return tuple(host for wave in self.waves for host in wave.coming)

    @property
    def hosts_done(self) -> tuple[HostName, ...]:
        """The hosts whose work is done: those of waves that are over, but where it failed or was given up."""
        over = [wave for wave in self.waves if wave.state is WaveState.DONE]
        done = {host for wave in over for host in wave.hosts if host not in wave.undone}
        return tuple(host for host in self.hosts if host in done and host not in self.abandoned)

    @property
    def hosts_not_done(self) -> tuple[HostName, ...]:
        """The hosts whose work is not done, or not yet."""
        done = frozenset(self.hosts_done)
        return tuple(host for host in self.hosts if host not in done)

    @property
    def canaries(self) -> tuple[HostName, ...]:
        """The hosts that come before all others."""
        return self.hosts[: self.terms.canary]

    @property
    def failures_left(self) -> int:
        """How many more hosts may fail before it pauses; of one that does not go on, none."""
        if self.state is not RolloutState.RUNNING or self.aborting:
            return 0
        return max(self.terms.max_failures.of(len(self.hosts)) - len(self.abandoned), 0)

    @property
    def left(self) -> tuple[HostName, ...]:
        """The hosts that have not begun, in the order in which they were given."""
        begun = {host for wave in self.begun for host in wave.hosts}
        return tuple(host for host in self.hosts if host not in begun)
