"""The moves of a plan that drivers are asked about, and what their answers say of its hosts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from forewarn.core.admission import durations
from forewarn.core.copies import replace
from forewarn.core.model.emptying import Emptying, Leaver, Obstacle, Surroundings
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.words import HostName, MachineName, Mobility, Work

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
        first = durations.MOVES[self.mobility]
        return (first, Work.REDEPLOY) if self.mobility is Mobility.LIVE else (first,)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAnswer:
    """What a driver has said of a move to one host."""

    refused: str = ""
    unknown: str = ""


def leavers(
    rollout: Rollout, around: Surroundings, emptied: Iterable[Emptying], *, of: Collection[HostName]
) -> Iterator[tuple[Wave, Leaver]]:
    """Give the machines of some hosts that nothing known keeps from leaving, in the order of the waves."""
    kept = {(one.host, each.machine) for one in emptied for each in one.obstacles}
    on: dict[HostName, list[Leaver]] = {}
    for machine in around.machines:
        if (machine.host, machine.name) not in kept and machine.mobility is not Mobility.NONE:
            on.setdefault(machine.host, []).append(machine)
    for wave in rollout.planned:
        for host in wave.hosts:
            if host in of:
                yield from ((wave, machine) for machine in on.get(host, ()))


def planned_moves(leaving: Iterable[tuple[Wave, Leaver]], around: Surroundings) -> Iterator[PlannedMove]:
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
    emptied: Sequence[Emptying], found: Mapping[tuple[HostName, MachineName], str]
) -> tuple[Emptying, ...]:
    """Return whether hosts can be emptied with what drivers say against it."""

    def more(one: Emptying) -> tuple[Obstacle, ...]:
        mine = (key for key in found if key[0] == one.host)
        return tuple(Obstacle(machine=machine, reason=found[host, machine]) for host, machine in mine)

    return tuple(replace(one, obstacles=(*one.obstacles, *more(one))) for one in emptied)
