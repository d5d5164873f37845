"""Check whether the hosts of a rollout can be evacuated, and how many of them at once.

The hosts of a wave are evacuated together, so none of them takes machines of another. Capacity that one
machine takes on a host is not available to the next.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from forewarn.core.admission import holds, work_durations
from forewarn.core.basic_types import HostName, MachineName, Mobility, ProjectName, Work
from forewarn.core.catalogue import WORKS
from forewarn.core.model.constraints import Hold
from forewarn.core.model.host import RACK, Room, no_room_for, unreached
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.model.slice import HostSurvey


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingMachine:
    """A machine that must leave its host, with its requirements."""

    name: MachineName
    host: HostName
    project: ProjectName
    mobility: Mobility = Mobility.COLD
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    ordered: str = ""  # a description of the open order on it


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationInput:
    """The machines that must leave their hosts, and the free capacity of all sound hosts."""

    machines: Sequence[LeavingMachine] = ()
    rooms: Mapping[HostName, Room] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A machine that prevents the evacuation of its host, and why."""

    machine: MachineName
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationCheck:
    """Whether one host can be evacuated."""

    host: HostName
    machines: int  # how many machines it carries
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether all machines can leave."""
        return not self.obstacles


CANNOT_LEAVE = "cannot leave its host, and restarts with it"


def find_obstacles(
    rollout: Rollout, survey: HostSurvey, around: EvacuationInput
) -> tuple[EvacuationCheck, ...]:
    """Check each host that must be evacuated, in the order of the waves."""
    if not rollout.empties:
        return ()
    on: dict[HostName, list[LeavingMachine]] = {}
    for machine in around.machines:
        on.setdefault(machine.host, []).append(machine)
    found = []
    for wave in rollout.planned:
        targets = _Targets(around, besides=wave.hosts)
        for host in wave.hosts:
            there = on.get(host, [])
            bare = survey.hosts[host].bare_metal
            blocked = tuple(
                Obstacle(machine=machine.name, reason=reason)
                for machine in there
                if (reason := _obstacle(machine, targets, survey.holds, bare=bare))
            )
            found.append(EvacuationCheck(host=host, machines=len(there), obstacles=blocked))
    return tuple(found)


def _obstacle(machine: LeavingMachine, targets: "_Targets", held: Sequence[Hold], *, bare: bool) -> str:
    if bare or machine.mobility is Mobility.NONE:
        return CANNOT_LEAVE
    if machine.ordered:
        return machine.ordered
    if held:
        for hold in holds.reaching(held, hosts={machine.host}, projects={machine.project}):
            return f"{hold}"
    return targets.take(machine)


class _Targets:
    """The hosts that can take the machines of one wave."""

    def __init__(self, around: EvacuationInput, *, besides: Iterable[HostName]) -> None:
        out = frozenset(besides)
        names = [name for name in sorted(around.rooms) if name not in out]
        self._rooms = dict(around.rooms)
        self._names = [name for name in names if self._rooms[name].unreachable_since is None]
        self._away = {
            name: since for name in names if (since := self._rooms[name].unreachable_since) is not None
        }
        self._next = 0  # the host that took the last machine probably has room for the next
        # Requirements that no host meets. Capacity only shrinks, so the answer stays valid.
        self._unmet: dict[tuple[object, ...], str] = {}

    def take(self, machine: LeavingMachine) -> str:
        """Find a host for a machine and count it there; return "", or why there is none."""
        needs = (*sorted(machine.labels.items()), None, *sorted(machine.resources.items()))
        if needs in self._unmet:
            return self._unmet[needs]
        for turn in range(len(self._names)):
            index = (self._next + turn) % len(self._names)
            room = self._rooms[self._names[index]]
            if room.why_not(machine) is None:
                if machine.resources:
                    self._rooms[self._names[index]] = room.taken(machine)
                self._next = index
                return ""
        away = {name: since for name, since in self._away.items() if not self._rooms[name].why_not(machine)}
        why = no_room_for([self._rooms[name] for name in self._names], machine)
        self._unmet[needs] = f"{why}; {unreached(away)}" if away else why
        return self._unmet[needs]


# The driver is asked about at most this many hosts for one machine. A large fleet has thousands.
MOST_TARGETS = 30
# A reason names at most this many hosts that refuse a machine.
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """A machine that must leave its host, and hosts outside its wave with room for it."""

    machine: MachineName
    source: HostName
    mobility: Mobility
    targets: tuple[HostName, ...]  # the first few
    takers: int  # how many there are in all

    @property
    def works(self) -> tuple[Work, ...]:
        """The ways in which it can leave, best first."""
        first = work_durations.MOVES[self.mobility]
        return (first, Work.REDEPLOY) if self.mobility is Mobility.LIVE else (first,)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAnswer:
    """The answer of a driver about a move to one host."""

    refused: str = ""
    unknown: str = ""


def machines_to_evacuate(
    rollout: Rollout, around: EvacuationInput, emptied: Iterable[EvacuationCheck], *, of: Collection[HostName]
) -> Iterator[tuple[Wave, LeavingMachine]]:
    """Yield the machines without a known obstacle on some hosts, in the order of the waves."""
    kept = {(one.host, each.machine) for one in emptied for each in one.obstacles}
    on: dict[HostName, list[LeavingMachine]] = {}
    for machine in around.machines:
        if (machine.host, machine.name) not in kept and machine.mobility is not Mobility.NONE:
            on.setdefault(machine.host, []).append(machine)
    for wave in rollout.planned:
        for host in wave.hosts:
            if host in of:
                yield from ((wave, machine) for machine in on.get(host, ()))


def planned_moves(
    leaving: Iterable[tuple[Wave, LeavingMachine]], around: EvacuationInput
) -> Iterator[PlannedMove]:
    """Yield the move of each machine, with the reachable hosts that have room for it."""
    found: dict[tuple[object, ...], list[HostName]] = {}  # by requirements, which many machines share
    names = sorted(name for name, room in around.rooms.items() if room.unreachable_since is None)
    for wave, machine in leaving:
        needs = (wave.hosts, *sorted(machine.labels.items()), None, *sorted(machine.resources.items()))
        if needs not in found:
            others = (name for name in names if name not in wave.hosts)
            found[needs] = [name for name in others if around.rooms[name].why_not(machine) is None]
        yield PlannedMove(
            machine=machine.name,
            source=machine.host,
            mobility=machine.mobility,
            targets=tuple(found[needs][:MOST_TARGETS]),
            takers=len(found[needs]),
        )


def verdict(answers: Mapping[HostName, MoveAnswer], *, takers: int) -> MoveAnswer:
    """Combine the answers of a driver about a move to `takers` hosts. One host that agrees is enough."""
    if any(answer == MoveAnswer() for answer in answers.values()):
        return MoveAnswer()
    unknown = [answer.unknown for answer in answers.values() if answer.unknown]
    if unknown:
        return MoveAnswer(unknown=unknown[0])
    against = [f"{host} cannot take it, {each.refused}" for host, each in answers.items()]
    more = f" and {len(against) - MOST_NAMED} more" if len(against) > MOST_NAMED else ""
    refused = "; ".join(against[:MOST_NAMED]) + more
    if len(answers) < takers:
        return MoveAnswer(unknown=f"{len(answers)} of {takers} hosts were asked: {refused}")
    return MoveAnswer(refused=refused)


def with_obstacles(
    emptied: Sequence[EvacuationCheck], found: Mapping[tuple[HostName, MachineName], str]
) -> tuple[EvacuationCheck, ...]:
    """Add the refusals of drivers to the obstacles."""
    more: dict[HostName, list[Obstacle]] = {}
    for (host, machine), reason in found.items():
        more.setdefault(host, []).append(Obstacle(machine=machine, reason=reason))
    return tuple(replace(one, obstacles=(*one.obstacles, *more.get(one.host, ()))) for one in emptied)


HALF_OF_A_RACK = (
    "at most half of a rack is evacuated at once: its other hosts take the machines, "
    "so that later rollouts need no more waves"
)
HALF_OF_INTERCHANGEABLE = (
    "at most half of the interchangeable hosts are evacuated at once: the others take the machines, "
    "so that later rollouts need no more waves"
)

# Racks with fewer hosts are evacuated whole: too few hosts would remain as targets.
_FEWEST_IN_A_RACK = 4


@dataclass(frozen=True, slots=True)
class EvacuationLimit:
    """A set of hosts, how many of them may be evacuated at once, and why."""

    name: str
    most: int
    why: str


def evacuation_limits(rollout: Rollout, survey: HostSurvey) -> dict[HostName, tuple[EvacuationLimit, ...]]:
    """Return the limits that apply to each host, if any."""
    if not moves_machines(rollout):
        return {}
    found: dict[HostName, tuple[EvacuationLimit, ...]] = {}
    for name, host in survey.hosts.items():
        rack = host.labels.get(RACK, "")
        # A rack counts for hosts with members of groups. Standalone machines fit into any wave.
        if survey.racks.get(rack, 0) >= _FEWEST_IN_A_RACK and any(
            survey.sizes.get(group, 0) > 1 for group in survey.footprint(name).counts
        ):
            found[name] = (EvacuationLimit(f"rack {rack}", _larger(survey.racks[rack]), HALF_OF_A_RACK),)
    for number, alike in enumerate(rollout.alike):
        limit = EvacuationLimit(f"alike {number}", _larger(len(alike)), HALF_OF_INTERCHANGEABLE)
        for name in alike:
            found[name] = (*found.get(name, ()), limit)
    return found


def moves_machines(rollout: Rollout) -> bool:
    """Return whether a rollout moves machines off its hosts."""
    return rollout.empties or WORKS[rollout.work].moves


def _larger(hosts: int) -> int:
    """Return the larger half of a number of hosts, so that two waves suffice."""
    return (hosts + 1) // 2
