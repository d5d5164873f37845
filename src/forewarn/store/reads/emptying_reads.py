"""Reading whether hosts can be emptied: their machines, and the room on all other hosts."""

from collections.abc import Iterable, Sequence

from sqlalchemy import select

from forewarn.core.model.host import HostResource, Room
from forewarn.core.rollouts.emptying import EmptyingInput, Leaver
from forewarn.core.words import HostName, HostState, MachineId, MachineState, Mobility
from forewarn.store import tables
from forewarn.store.reads.reader import Reader, among
from forewarn.store.rows.mapping import Row
from forewarn.store.rows.stored import STORED
from forewarn.store.rows.times import moment_or_none

_H, _M, _O = tables.hosts.c, tables.machines.c, tables.orders.c
_ON_HOSTS = among(
    select(_M.id, _M.name, _M.host, _M.project, _M.mobility, _M.labels, _M.resources), _M.host
).where(_M.state != MachineState.STOPPED.value)
_ORDERED = select(_O.machine, _O.id, _O.action, _O.state).where(tables.OPEN_ORDER, _O.machine.is_not(None))
_SOUND = select(_H.name, _H.labels, _H.resources, _H.unreachable_since).where(
    _H.state == HostState.OK.value, _H.bare_metal.is_(False)
)
_TAKEN = select(_M.host, _M.bound_for, _M.resources).where(_M.host.is_not(None))

_RESOURCE = STORED.reader(HostResource)


class EmptyingReads(Reader):
    """What decides whether hosts can be emptied."""

    def around(self, hosts: Sequence[HostName]) -> EmptyingInput:
        """Load the machines on these hosts, and the room on all sound ones."""
        ordered = {machine: _in_words(*order) for machine, *order in self._all(_ORDERED)}
        machines = [_leaver(row, ordered) for row in self._among(_ON_HOSTS, hosts)]
        return EmptyingInput(machines=machines, rooms=self._rooms(machines))

    def _rooms(self, machines: Iterable[Leaver]) -> dict[HostName, Room]:
        found = self._all(_SOUND)
        free = {
            name: {key: _RESOURCE(each).capacity for key, each in resources.items()}
            for name, _, resources, _ in found
        }
        # What is taken there need only be known if one of them takes something.
        if any(free.values()) and any(machine.resources for machine in machines):
            for host, bound_for, resources in self._all(_TAKEN):
                for place in {host, bound_for or host} & free.keys():
                    left = free[place]
                    for name in left.keys() & resources.keys():
                        left[name] -= resources[name]
        return {
            name: Room(
                labels=labels,
                free=free[name],
                unreachable_since=moment_or_none(away),
            )
            for name, labels, _, away in found
        }


def _leaver(row: Row, ordered: dict[MachineId, str]) -> Leaver:
    id_, name, host, project, mobility, labels, resources = row
    return Leaver(
        name=name,
        host=host,
        project=project,
        mobility=Mobility(mobility),
        labels=labels,
        resources=resources,
        ordered=ordered.get(id_, ""),
    )


def _in_words(id_: str, action: str, state: str) -> str:
    return f"has order {id_} ({action}), which is {state}"
