"""The moves of a plan that drivers are asked about, and what their answers say of its hosts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from forewarn.core.admission import expected
from forewarn.core.copies import replace
from forewarn.core.model.emptying import Emptying, Leaver, Obstacle, Surroundings
from forewarn.core.model.rollout import Rollout
from forewarn.core.words import HostName, MachineName, Mobility, Work

# One that three hosts refuse will hardly find another; only the announcement asks all.
MOST_TARGETS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """A machine that is to leave its host, and hosts with room for it outside its wave."""

    machine: MachineName
    source: HostName
    mobility: Mobility
    targets: tuple[HostName, ...]

    @property
    def works(self) -> tuple[Work, ...]:
        """How it may leave, the best way first."""
        first = expected.MOVES[self.mobility]
        return (first, Work.REDEPLOY) if self.mobility is Mobility.LIVE else (first,)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAnswer:
    """What a driver has said of a move to one host."""

    refused: str = ""
    unknown: str = ""


def planned_moves(
    rollout: Rollout, around: Surroundings, emptied: Iterable[Emptying], *, of: Collection[HostName]
) -> Iterator[PlannedMove]:
    """Give the machines of some hosts that nothing known keeps from leaving, in the order of the waves."""
    kept = {(one.host, each.machine) for one in emptied for each in one.obstacles}
    on: dict[HostName, list[Leaver]] = {}
    for machine in around.machines:
        if (machine.host, machine.name) not in kept and machine.mobility is not Mobility.NONE:
            on.setdefault(machine.host, []).append(machine)
    for wave in rollout.planned:
        leavers = [machine for host in wave.hosts if host in of for machine in on.get(host, ())]
        names = [name for name in sorted(around.rooms) if name not in wave.hosts] if leavers else []
        for machine in leavers:
            takers = (name for name in names if around.rooms[name].why_not(machine) is None)
            yield PlannedMove(
                machine=machine.name,
                source=machine.host,
                mobility=machine.mobility,
                targets=tuple(islice(takers, MOST_TARGETS)),
            )


def verdict(answers: Mapping[HostName, MoveAnswer]) -> MoveAnswer:
    """Put together what a driver has said of a move to several hosts: one that takes it is enough."""
    if any(answer == MoveAnswer() for answer in answers.values()):
        return MoveAnswer()
    unknown = [answer.unknown for answer in answers.values() if answer.unknown]
    if unknown:
        return MoveAnswer(unknown=unknown[0])
    return MoveAnswer(
        refused="; ".join(f"{host} cannot take it, {each.refused}" for host, each in answers.items())
    )


def with_obstacles(
    emptied: Sequence[Emptying], found: Mapping[tuple[HostName, MachineName], str]
) -> tuple[Emptying, ...]:
    """Return whether hosts can be emptied with what drivers say against it."""

    def more(one: Emptying) -> tuple[Obstacle, ...]:
        mine = (key for key in found if key[0] == one.host)
        return tuple(Obstacle(machine=machine, reason=found[host, machine]) for host, machine in mine)

    return tuple(replace(one, obstacles=(*one.obstacles, *more(one))) for one in emptied)
