"""Names that somebody asks by: refused, with what may have been meant, where nothing has them.

An empty list says that there is nothing; it must not be the answer to a slip of the finger.
"""

from collections.abc import Iterable, Sequence

from forewarn.control.ports.records import HistoryFilter
from forewarn.control.ports.store import Snapshot
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.model.machine import Machine
from forewarn.core.spelling import hint
from forewarn.core.words import (
    DEFAULT_PROJECT,
    EventId,
    GroupKind,
    GroupName,
    HostName,
    MachineName,
    OrderId,
    ProjectName,
)

# Among so many is looked for what was meant: all of most fleets, and a few milliseconds in any.
LOOKED_AT = 1000


def known_machine(
    snapshot: Snapshot, name: str, *, project: ProjectName | None, within: ProjectName | None
) -> Machine:
    """Find a machine by its name; of a project, if one is named."""
    try:
        return snapshot.machine(name, project=project)
    except NotFound:
        if project is None:
            raise unknown_machine(snapshot, name) from None
    check_project(snapshot, project, within=within)
    mine = (each.name for each in _some_machines(snapshot) if each.project == project)
    raise NotFound(f'machine "{name}" does not exist in project {project}{hint(name, mine)}')


def unknown_machine(snapshot: Snapshot, name: str) -> NotFound:
    """Say that there is no such machine, and which may have been meant."""
    return _unknown("machine", name, (each.name for each in _some_machines(snapshot)))


def unknown_group(snapshot: Snapshot, name: str) -> NotFound:
    """Say that there is no such group, and which may have been meant."""
    return _unknown("group", name, group_names(snapshot))


def unknown_host(snapshot: Snapshot, name: str) -> NotFound:
    """Say that there is no such host, and which may have been meant; for those who may know of all hosts."""
    return _unknown("host", name, host_names(snapshot))


def unknown_project(snapshot: Snapshot, name: str) -> NotFound:
    """Say that there is no such project, and which may have been meant."""
    return _unknown("project", name, (each.name for each in snapshot.projects()))


def group_names(snapshot: Snapshot) -> list[str]:
    """List names among which the one that was meant may be."""
    known, _ = snapshot.groups(after=None, limit=LOOKED_AT)
    return [each.name for each in known]


def host_names(snapshot: Snapshot) -> list[str]:
    """List names among which the one that was meant may be."""
    known, _ = snapshot.hosts(after=None, limit=LOOKED_AT)
    return [each.name for each in known]


def check_project(snapshot: Snapshot, project: ProjectName, *, within: ProjectName | None) -> None:
    """Refuse a project that does not exist, or not for the people of another; a default one always does."""
    known = {DEFAULT_PROJECT, *(each.name for each in snapshot.projects())} if within is None else {within}
    if project not in known:
        raise _unknown("project", project, known)


def check_group(snapshot: Snapshot, name: GroupName | None) -> None:
    """Refuse a group that does not exist."""
    if name is None:
        return
    group = snapshot.group(name)
    if group is None or group.kind is GroupKind.STANDALONE:
        raise unknown_group(snapshot, name)


def check_host(snapshot: Snapshot, name: HostName | None, *, within: ProjectName | None) -> None:
    """Refuse a host that does not exist or, within a project, one that carries nothing of it."""
    if name is None:
        return
    if within is not None:
        if not snapshot.machines(after=None, limit=1, host=name)[0]:
            raise NotFound(f'host "{name}" carries no machine of project {within}')
        return
    if snapshot.host(name) is None:
        raise unknown_host(snapshot, name)


def check_machine(snapshot: Snapshot, name: MachineName) -> None:
    """Refuse a machine that neither is nor was: one that is gone has records."""
    if snapshot.history(HistoryFilter(machine=name, limit=1)) or _is_there(snapshot, name):
        return
    raise unknown_machine(snapshot, name)


def check_filter(snapshot: Snapshot, wanted: HistoryFilter) -> None:
    """Refuse to list the records of what neither is nor was."""
    if wanted.machine is not None:
        check_machine(snapshot, wanted.machine)
    if wanted.event is not None:
        _check_event(snapshot, wanted.event)
    if wanted.order is not None:
        _check_order(snapshot, wanted.order)


def _check_event(snapshot: Snapshot, event: EventId) -> None:
    if snapshot.event(event) is None:
        raise NotFound(f"event {event} does not exist")


def _check_order(snapshot: Snapshot, order: OrderId) -> None:
    # A project has records of an order that is not its own: of the events that it gave its machines.
    if snapshot.order(order) is None and not snapshot.history(HistoryFilter(order=order, limit=1)):
        raise NotFound(f"order {order} does not exist")


def _is_there(snapshot: Snapshot, name: MachineName) -> bool:
    try:
        snapshot.machine(name, project=None)
    except NotFound:
        return False
    except Conflict:  # in several projects
        return True
    return True


def _some_machines(snapshot: Snapshot) -> Sequence[Machine]:
    found, _ = snapshot.machines(after=None, limit=LOOKED_AT)
    return found


def _unknown(what: str, name: str, known: Iterable[str]) -> NotFound:
    return NotFound(f'{what} "{name}" does not exist{hint(name, known)}')
