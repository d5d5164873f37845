"""Names that callers ask by: refused, with what may have been meant, where nothing has them.

An empty list says that there is nothing; it must not be the answer to a slip of the finger.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from forewarn.control.parts.fleet import FleetQueries
from forewarn.control.parts.records import HistoryFilter, RecordQueries
from forewarn.control.ports.scope import Scope
from forewarn.control.ports.store import ScopedSnapshot
from forewarn.core.copies import replace
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.model.machine import Machine
from forewarn.core.spelling import hint
from forewarn.core.words import (
    DEFAULT_PROJECT,
    GroupKind,
    GroupName,
    HostName,
    MachineName,
    OrderId,
    ProjectName,
)

T = TypeVar("T")

# Among so many is looked for what was meant: all of most fleets, and a few milliseconds in any.
LOOKED_AT = 1000
# As many as a person reads.
NAMED = 5


def known_machine(fleet: FleetQueries, name: str, *, scope: Scope) -> Machine:
    """Find a machine by its name; NotFound says of which project, if one was asked for."""
    try:
        return fleet.machine(name)
    except NotFound:
        if scope.asked is None:
            raise unknown_machine(fleet, name) from None
    mine = (each.name for each in _some_machines(fleet))
    raise NotFound(f'machine "{name}" does not exist in project {scope.asked}{hint(name, mine)}')


def existing(found: T | None, what: str, id_: str) -> T:
    """Return what was found by its id; NotFound if nothing was."""
    if found is None:
        raise NotFound(f"{what} {id_} does not exist")
    return found


def unknown_machine(fleet: FleetQueries, name: str) -> NotFound:
    """Refuse a machine that does not exist, and name which may have been meant."""
    return _unknown("machine", name, (each.name for each in _some_machines(fleet)))


def unknown_group(fleet: FleetQueries, name: str) -> NotFound:
    """Refuse a group that does not exist, and name which may have been meant."""
    return _unknown("group", name, group_names(fleet))


def unknown_host(fleet: FleetQueries, name: str) -> NotFound:
    """Refuse a host that does not exist, and name which may have been meant."""
    return _unknown("host", name, host_names(fleet))


def unknown_project(fleet: FleetQueries, name: str) -> NotFound:
    """Refuse a project that does not exist, and name which may have been meant."""
    return _unknown("project", name, (each.name for each in fleet.projects()))


def group_names(fleet: FleetQueries) -> list[str]:
    """List names among which the one that was meant may be."""
    known, _ = fleet.groups(after=None, limit=LOOKED_AT)
    return [each.name for each in known]


def host_names(fleet: FleetQueries) -> list[str]:
    """List names among which the one that was meant may be."""
    known, _ = fleet.hosts(after=None, limit=LOOKED_AT)
    return [each.name for each in known]


def check_project(fleet: FleetQueries, project: ProjectName, *, scope: Scope) -> None:
    """Refuse a project that does not exist in the scope; for operators the default one always does."""
    known = {scope.project or DEFAULT_PROJECT, *(each.name for each in fleet.projects())}
    if project not in known:
        raise _unknown("project", project, known)


def check_group(fleet: FleetQueries, name: GroupName | None) -> None:
    """Refuse a group that does not exist."""
    if name is None:
        return
    group = fleet.group(name)
    if group is None or group.kind is GroupKind.STANDALONE:
        raise unknown_group(fleet, name)


def check_host(fleet: FleetQueries, name: HostName | None, *, scope: Scope) -> None:
    """Refuse a host that does not exist or, for a project, one that carries nothing of it."""
    if name is None or fleet.host(name) is not None:
        return
    if scope.project is not None:
        raise NotFound(f'host "{name}" carries no machine of project {scope.project}')
    raise unknown_host(fleet, name)


def check_machine(snapshot: ScopedSnapshot, name: MachineName) -> None:
    """Refuse a machine that neither is nor was: one that is gone has records."""
    if _has_records(snapshot.records, HistoryFilter(machine=name)) or _is_there(snapshot.fleet, name):
        return
    raise unknown_machine(snapshot.fleet, name)


def check_filter(snapshot: ScopedSnapshot, wanted: HistoryFilter, *, scope: Scope) -> None:
    """Refuse to list the records of what neither is nor was."""
    if wanted.group is not None and not _has_records(snapshot.records, HistoryFilter(group=wanted.group)):
        check_group(snapshot.fleet, wanted.group)
    if wanted.host is not None and not _has_records(snapshot.records, HistoryFilter(host=wanted.host)):
        check_host(snapshot.fleet, wanted.host, scope=scope)
    if wanted.machine is not None:
        check_machine(snapshot, wanted.machine)
    if wanted.event is not None:
        existing(snapshot.work.event(wanted.event), "event", wanted.event)
    if wanted.order is not None:
        _check_order(snapshot, wanted.order)


def _check_order(snapshot: ScopedSnapshot, order: OrderId) -> None:
    # A project has records of an order that is not its own: of the events that it gave its machines.
    if snapshot.work.order(order) is None and not _has_records(snapshot.records, HistoryFilter(order=order)):
        raise NotFound(f"order {order} does not exist")


def _has_records(records: RecordQueries, wanted: HistoryFilter) -> bool:
    return bool(records.history(replace(wanted, limit=1)))


def _is_there(fleet: FleetQueries, name: MachineName) -> bool:
    try:
        fleet.machine(name)
    except NotFound:
        return False
    except Conflict:  # in several projects
        return True
    return True


def _some_machines(fleet: FleetQueries) -> Sequence[Machine]:
    found, _ = fleet.machines(after=None, limit=LOOKED_AT)
    return found


def _unknown(what: str, name: str, known: Iterable[str]) -> NotFound:
    return NotFound(f'{what} "{name}" does not exist{hint(name, known)}')


def some(names: Sequence[str]) -> str:
    """Write as many names as a person reads, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
