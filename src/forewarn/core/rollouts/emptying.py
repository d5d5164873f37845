"""Whether the hosts of a plan can be emptied: machine by machine, what stands in the way of it.

The hosts of a wave are emptied together, so none of them takes machines of another, and what one machine
takes of a host is not there for the next.
"""

from collections.abc import Iterable, Sequence

from forewarn.core.admission import holds
from forewarn.core.model.constraints import Hold
from forewarn.core.model.emptying import Emptying, Leaver, Obstacle, Surroundings
from forewarn.core.model.host import no_room_for, unreached
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.words import HostName, Mobility

CANNOT_LEAVE = "cannot leave its host, and restarts with it"


def emptying(rollout: Rollout, survey: HostSurvey, around: Surroundings) -> tuple[Emptying, ...]:
    """Return for each host that is to be emptied whether it can be, in the order of the waves."""
    if not rollout.empties:
        return ()
    on: dict[HostName, list[Leaver]] = {}
    for machine in around.machines:
        on.setdefault(machine.host, []).append(machine)
    found = []
    for wave in rollout.planned:
        targets = _Targets(around, besides=wave.hosts)
        for host in wave.hosts:
            there = on.get(host, [])
            blocked = tuple(_obstacles(there, targets, survey.holds, bare=survey.hosts[host].bare_metal))
            found.append(Emptying(host=host, machines=len(there), obstacles=blocked))
    return tuple(found)


def _obstacles(
    machines: Iterable[Leaver], targets: "_Targets", held: Sequence[Hold], *, bare: bool
) -> Iterable[Obstacle]:
    for machine in machines:
        if reason := _obstacle(machine, targets, held, bare=bare):
            yield Obstacle(machine=machine.name, reason=reason)


def _obstacle(machine: Leaver, targets: "_Targets", held: Sequence[Hold], *, bare: bool) -> str:
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

    def __init__(self, around: Surroundings, *, besides: Iterable[HostName]) -> None:
        out = frozenset(besides)
        names = [name for name in sorted(around.rooms) if name not in out]
        self._rooms = dict(around.rooms)
        self._names = [name for name in names if self._rooms[name].unreachable_since is None]
        self._away = {
            name: since for name in names if (since := self._rooms[name].unreachable_since) is not None
        }
        self._next = 0  # the one that took a machine last, most likely has room for another
        self._hopeless: dict[tuple[object, ...], str] = {}  # what room only becomes less of

    def take(self, machine: Leaver) -> str:
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
