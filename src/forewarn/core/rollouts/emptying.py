"""Whether the hosts of a plan can be emptied, by room and by their drivers, and how many of them at once.

The hosts of a wave are emptied together, so none of them takes machines of another, and room that one machine
takes on a host is not there for the next.
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
    """A machine that is to leave its host, as far as that decides whether it can."""

    name: MachineName
    host: HostName
    project: ProjectName
    mobility: Mobility = Mobility.COLD
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    ordered: str = ""  # the open order on it, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationInput:
    """Machines that are to leave their hosts, and the room there is for them on all sound hosts."""

    machines: Sequence[LeavingMachine] = ()
    rooms: Mapping[HostName, Room] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A machine that keeps its host from being emptied, and why."""

    machine: MachineName
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationCheck:
    """Whether one host can be emptied."""

    host: HostName
    machines: int  # that it carries
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.obstacles


CANNOT_LEAVE = "cannot leave its host, and restarts with it"


def find_obstacles(rollout: Rollout, survey: HostSurvey, around: EvacuationInput) -> tuple[EvacuationCheck, ...]:
    """Return for each host that is to be emptied whether it can be, in the order of the waves."""
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
            blocked = tuple(_obstacles(there, targets, survey.holds, bare=survey.hosts[host].bare_metal))
            found.append(EvacuationCheck(host=host, machines=len(there), obstacles=blocked))
    return tuple(found)


def _obstacles(
    machines: Iterable[LeavingMachine], targets: "_Targets", held: Sequence[Hold], *, bare: bool
) -> Iterable[Obstacle]:
    for machine in machines:
        if reason := _obstacle(machine, targets, held, bare=bare):
            yield Obstacle(machine=machine.name, reason=reason)


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
    """The hosts that the machines of one wave can go to."""

    def __init__(self, around: EvacuationInput, *, besides: Iterable[HostName]) -> None:
        out = frozenset(besides)
        names = [name for name in sorted(around.rooms) if name not in out]
        self._rooms = dict(around.rooms)
        self._names = [name for name in names if self._rooms[name].unreachable_since is None]
        self._away = {
            name: since for name in names if (since := self._rooms[name].unreachable_since) is not None
        }
        self._next = 0  # the one that took a machine last, most likely has room for another
        self._hopeless: dict[tuple[object, ...], str] = {}  # what room only becomes less of

    def take(self, machine: LeavingMachine) -> str:
        """Find a host for a machine, and count it there; return why there is none."""
        needs = (*sorted(machine.labels.items()), None, *sorted(machine.resources.items()))
        if needs in self._hopeless:
            return self._hopeless[needs]
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
        self._hopeless[needs] = f"{why}; {unreached(away)}" if away else why
        return self._hopeless[needs]


# So many hosts are asked about for one machine at most: a plan of a large fleet would ask about thousands.
MOST_TARGETS = 30
# Of hosts that refuse a machine.
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """A machine that is to leave its host, and hosts with room for it outside its wave."""

    machine: MachineName
    source: HostName
    mobility: Mobility
    targets: tuple[HostName, ...]  # the first of them
    takers: int  # how many there are

    @property
    def works(self) -> tuple[Work, ...]:
        """How it may leave, the best way first."""
        first = work_durations.MOVES[self.mobility]
        return (first, Work.REDEPLOY) if self.mobility is Mobility.LIVE else (first,)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAnswer:
    """What a driver has said of a move to one host."""

    refused: str = ""
    unknown: str = ""


def machines_to_evacuate(
    rollout: Rollout, around: EvacuationInput, emptied: Iterable[EvacuationCheck], *, of: Collection[HostName]
) -> Iterator[tuple[Wave, LeavingMachine]]:
    """Give the machines of some hosts that nothing known keeps from leaving, in the order of the waves."""
    kept = {(one.host, each.machine) for one in emptied for each in one.obstacles}
    on: dict[HostName, list[LeavingMachine]] = {}
    for machine in around.machines:
        if (machine.host, machine.name) not in kept and machine.mobility is not Mobility.NONE:
            on.setdefault(machine.host, []).append(machine)
    for wave in rollout.planned:
        for host in wave.hosts:
            if host in of:
                yield from ((wave, machine) for machine in on.get(host, ()))


def planned_moves(leaving: Iterable[tuple[Wave, LeavingMachine]], around: EvacuationInput) -> Iterator[PlannedMove]:
    """Give the moves of machines, each with the reachable hosts that have room for it."""
    found: dict[tuple[object, ...], list[HostName]] = {}  # most machines need the same as others
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
    """Put together what a driver has said of a move to hosts, of so many: one that takes it is enough."""
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
    """Return whether hosts can be emptied with what drivers say against it."""

    def more(one: EvacuationCheck) -> tuple[Obstacle, ...]:
        mine = (key for key in found if key[0] == one.host)
        return tuple(Obstacle(machine=machine, reason=found[host, machine]) for host, machine in mine)

    return tuple(replace(one, obstacles=(*one.obstacles, *more(one))) for one in emptied)


HALF_OF_A_RACK = (
    "no more than half of a rack is emptied at once: its other hosts take the machines, "
    "and later rollouts have no more waves for it"
)
HALF_OF_THOSE_ALIKE = (
    "no more than half of the hosts that carry alike are emptied at once: the others take the machines, "
    "and later rollouts have no more waves for it"
)

# Fewer hosts than that are no home for what the others carry, where it is only known that they stand
# together: such racks are emptied whole.
_FEWEST_IN_A_RACK = 4


@dataclass(frozen=True, slots=True)
class EvacuationLimit:
    """Hosts of which so many may be emptied at once, and why no more."""

    name: str
    most: int
    why: str


def evacuation_limits(rollout: Rollout, survey: HostSurvey) -> dict[HostName, tuple[EvacuationLimit, ...]]:
    """Return for hosts that are emptied of which sets they are; those of none may be emptied as they come."""
    if not moves_machines(rollout):
        return {}
    found: dict[HostName, tuple[EvacuationLimit, ...]] = {}
    for name, rack in _racks(survey).items():
        found[name] = (EvacuationLimit(f"rack {rack}", _larger(survey.racks[rack]), HALF_OF_A_RACK),)
    for number, alike in enumerate(rollout.alike):
        limit = EvacuationLimit(f"alike {number}", _larger(len(alike)), HALF_OF_THOSE_ALIKE)
        for name in alike:
            found[name] = (*found.get(name, ()), limit)
    return found


def moves_machines(rollout: Rollout) -> bool:
    """Return whether machines leave the hosts of a rollout."""
    return rollout.empties or WORKS[rollout.work].moves


def _racks(survey: HostSurvey) -> dict[HostName, str]:
    """Return in which racks hosts are that carry members of groups: other machines go with any wave."""
    return {
        name: host.labels[RACK]
        for name, host in survey.hosts.items()
        if survey.racks.get(host.labels.get(RACK, ""), 0) >= _FEWEST_IN_A_RACK
        and any(survey.sizes.get(group, 0) > 1 for group in survey.footprint(name).counts)
    }


def _larger(hosts: int) -> int:
    """Return the larger half of so many hosts, so that two waves do for them."""
    return (hosts + 1) // 2
