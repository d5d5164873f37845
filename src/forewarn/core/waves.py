"""Rollouts as values, and how hosts are cut into waves.

The hosts of a wave carry no two update domains of one group, and leave every group its healthy machines.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from forewarn.core.model import Delivered, Waiting
from forewarn.core.words import GroupName, HostName, MachineId, OrderId, ProjectName, Work


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
    """Hosts that are done together; `orders` are theirs, in the same order, once it has begun."""

    hosts: tuple[HostName, ...]
    state: WaveState = WaveState.PLANNED
    orders: tuple[OrderId, ...] = ()
    announced_at: datetime | None = None
    started_at: datetime | None = None  # when the first of its machines was worked on
    ends_about: datetime | None = None  # what was expected when it began
    ended_at: datetime | None = None
    notice: Delivered | None = None  # what its machines got, once it is over

    @property
    def begun(self) -> bool:
        """Whether its hosts have orders."""
        return self.state is not WaveState.PLANNED


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a rollout was asked for beside its hosts: who does the work, until when, and what is healthy."""

    driver: str = "simulated"
    heartbeat: timedelta | None = None  # how long an external driver may be silent
    deadline: datetime | None = None  # from then on windows give way
    expected: timedelta | None = None  # how long a stage of a host is expected to take
    health: timedelta = timedelta(minutes=30)  # how long after its work a machine may take to be well
    require_poll: bool = False  # a machine that polled before is healthy when it polls again


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """The last word about a rollout, a person's or forewarn's own."""

    what: str  # begun, paused, resumed, aborted
    by: str
    at: datetime


DEFAULT_CONDITIONS = Conditions()


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
    given_up: tuple[HostName, ...] = ()  # their orders failed and were abandoned
    excused: tuple[MachineId, ...] = ()  # not healthy in time, and a person said to go on
    conditions: Conditions = DEFAULT_CONDITIONS
    version: int = 1  # how often somebody had a say about it
    last_word: Word | None = None
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
    def begun(self) -> tuple[Wave, ...]:
        """The waves that have begun."""
        return tuple(wave for wave in self.waves if wave.begun)

    @property
    def planned(self) -> tuple[Wave, ...]:
        """The waves that have not begun."""
        return tuple(wave for wave in self.waves if not wave.begun)

    @property
    def left(self) -> tuple[HostName, ...]:
        """The hosts that have not begun, in the order in which they were given."""
        begun = {host for wave in self.begun for host in wave.hosts}
        return tuple(host for host in self.hosts if host not in begun)


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Whom work on a host disturbs: how many machines of each group and update domain."""

    domains: Mapping[GroupName, Mapping[int, int]] = field(default_factory=dict)
    projects: frozenset[ProjectName] = frozenset()

    @property
    def stages(self) -> int:
        """How many stages an order on the host has."""
        return max((len(counts) for counts in self.domains.values()), default=0)


NOBODY = Footprint()

Footprints = Mapping[HostName, Footprint]


def cut(
    hosts: Iterable[HostName],
    footprints: Footprints,
    *,
    at_once: int,
    spare: Mapping[GroupName, int],
) -> tuple[Wave, ...]:
    """Put each host, in order, into the first wave that it fits; `spare` says what groups can do without."""
    crews: list[Crew] = []
    roomy: list[Crew] = []
    for host in hosts:
        print_ = footprints.get(host, NOBODY)
        crew = next((each for each in roomy if each.fits(print_)), None)
        if crew is None:
            crew = Crew(spare)
            crews.append(crew)
            roomy.append(crew)
        crew.take(host, print_)
        if len(crew.hosts) >= at_once:
            roomy.remove(crew)
    return tuple(Wave(hosts=tuple(crew.hosts)) for crew in crews)


def pick(
    hosts: Iterable[HostName],
    footprints: Footprints,
    *,
    at_once: int,
    spare: Mapping[GroupName, int],
) -> tuple[HostName, ...]:
    """Choose the hosts of one wave, in order."""
    crew = Crew(spare)
    for host in hosts:
        if len(crew.hosts) >= at_once:
            break
        print_ = footprints.get(host, NOBODY)
        if crew.fits(print_):
            crew.take(host, print_)
    return tuple(crew.hosts)


def holds_good(
    planned: Sequence[Wave],
    hosts: Iterable[HostName],
    footprints: Footprints,
    *,
    at_once: int,
    spare: Mapping[GroupName, int],
) -> bool:
    """Say whether planned waves are still right for these hosts: machines move."""
    if sorted(host for wave in planned for host in wave.hosts) != sorted(hosts):
        return False
    return all(pick(wave.hosts, footprints, at_once=at_once, spare=spare) == wave.hosts for wave in planned)


class Crew:
    """The hosts of a wave that is being put together."""

    def __init__(self, spare: Mapping[GroupName, int]) -> None:
        self.hosts: list[HostName] = []
        self._spare = spare
        self._domains: dict[GroupName, frozenset[int]] = {}
        self._taken: dict[GroupName, int] = {}

    def fits(self, footprint: Footprint) -> bool:
        """Say whether a host can join; the first one can always, for nothing smaller can be done."""
        if not self.hosts:
            return True
        for group, counts in footprint.domains.items():
            there = self._domains.get(group)
            if there is not None and (len(counts) > 1 or there != counts.keys()):
                return False
            if group in self._spare and self._taken.get(group, 0) + largest(counts) > self._spare[group]:
                return False
        return True

    def take(self, host: HostName, footprint: Footprint) -> None:
        """Let a host join."""
        self.hosts.append(host)
        for group, counts in footprint.domains.items():
            self._domains[group] = frozenset(counts)
            if group in self._spare:
                self._taken[group] = self._taken.get(group, 0) + largest(counts)


def largest(counts: Mapping[int, int]) -> int:
    """Say how many machines of a group are disturbed together: its domains go one after another."""
    return max(counts.values(), default=0)
