"""Names that callers ask by: refused, with what may have been meant, where nothing has them.

An empty list says that there is nothing; it must not be the answer to a slip of the finger.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from forewarn.clock import monotonic
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    GroupKind,
    GroupName,
    HostName,
    MachineName,
    NameKind,
    OrderId,
    ProjectName,
)
from forewarn.core.errors import Conflict, ForewarnError, NotFound, UnknownName
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.machine import Machine
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.core.text_formats import MOST_NAMES, hint
from forewarn.store.batch import ScopedTransaction
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.queries.records import RecordQueries
from forewarn.store.snapshots import ReadStore, ScopedSnapshot

T = TypeVar("T")

# A hint takes some milliseconds of one processor, which all threads share. People make fewer slips than that.
HINTS_A_SECOND, HINTS_AT_ONCE = 10, 20

# As many as a person reads.
NAMED = 5


def known_machine(fleet: FleetQueries, name: str, *, scope: Scope) -> Machine:
    """Find a machine by its name; NotFound says of which project, if one was asked for."""
    try:
        return fleet.machine(name)
    except NotFound:
        where = "" if scope.asked is None else f" in project {scope.asked}"
    raise NotFound(f'machine "{name}" does not exist{where}', unknown=_unknown(NameKind.MACHINE, name, scope))


class HintAllowance:
    """How often names are looked for that may have been meant, for each project by itself.

    Its lock makes it fit for any thread.
    """

    def __init__(self, *, monotonic: Callable[[], float] = monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # When all of a project's may be taken again. Lock: self._lock.
        self._due: dict[ProjectName | None, float] = {}

    def take(self, caller: ProjectName | None) -> bool:
        """Take one of a project's, or of the operators', if there is one left."""
        with self._lock:
            now = self._monotonic()
            due = max(self._due.get(caller, now), now)
            if due - now > (HINTS_AT_ONCE - 1) / HINTS_A_SECOND:
                return False
            self._due[caller] = due + 1 / HINTS_A_SECOND
            return True


def hinted(
    store: ReadStore, error: ForewarnError, *, scope: Scope, allowance: HintAllowance
) -> ForewarnError:
    """Return a refusal with the name that may have been meant, if it refuses a name that nothing has.

    The worker never does this: others wait for it, and callers choose the names.
    """
    unknown = error.unknown
    if unknown is None or not allowance.take(scope.caller):
        return error
    if unknown.project is not None:
        scope = scope.narrowed(unknown.project)
    with store.scoped(scope).read() as snapshot:
        known = snapshot.fleet.names_like(unknown.kind, unknown.name, limit=MOST_NAMES)
    return type(error)(f"{error}{hint(unknown.name, known)}")


def existing(found: T | None, what: str, id_: str) -> T:
    """Return what was found by its id; NotFound if nothing was."""
    if found is None:
        raise NotFound(f"{what} {id_} does not exist")
    return found


def unknown(kind: NameKind, name: str, *, scope: Scope = EVERYTHING) -> NotFound:
    """Refuse a name that nothing has."""
    return NotFound(f'{kind} "{name}" does not exist', unknown=_unknown(kind, name, scope))


def _unknown(kind: NameKind, name: str, scope: Scope) -> UnknownName:
    return UnknownName(kind=kind, name=name, project=scope.asked)


def check_project(fleet: FleetQueries, project: ProjectName, *, scope: Scope) -> None:
    """Refuse a project that does not exist in the scope; for operators the default one always does."""
    if project != (scope.project or DEFAULT_PROJECT) and fleet.project(project) is None:
        raise unknown(NameKind.PROJECT, project, scope=scope)


def narrowed(tx: ScopedTransaction, project: ProjectName | None) -> ScopedTransaction:
    """Return a transaction for one project alone; NotFound if its scope does not have it."""
    if project is None:
        return tx
    check_project(tx.fleet, project, scope=tx.scope)
    return tx.narrowed(project)


def check_group(fleet: FleetQueries, name: GroupName | None, *, scope: Scope) -> None:
    """Refuse a group that does not exist."""
    if name is None:
        return
    group = fleet.group(name)
    if group is None or group.kind is GroupKind.STANDALONE:
        raise unknown(NameKind.GROUP, name, scope=scope)


def check_host(fleet: FleetQueries, name: HostName | None, *, scope: Scope) -> None:
    """Refuse a host that does not exist or, for a project, one that carries nothing of it."""
    if name is None or fleet.host(name) is not None:
        return
    if scope.project is not None:
        raise NotFound(f'host "{name}" carries no machine of project {scope.project}')
    raise unknown(NameKind.HOST, name)


def check_machine(snapshot: ScopedSnapshot, name: MachineName, *, scope: Scope) -> None:
    """Refuse a machine that neither is nor was: one that is gone has records."""
    if _has_records(snapshot.records, HistoryFilter(machine=name)) or _is_there(snapshot.fleet, name):
        return
    raise unknown(NameKind.MACHINE, name, scope=scope)


def check_filter(snapshot: ScopedSnapshot, wanted: HistoryFilter, *, scope: Scope) -> None:
    """Refuse to list the records of what neither is nor was."""
    if wanted.group is not None and not _has_records(snapshot.records, HistoryFilter(group=wanted.group)):
        check_group(snapshot.fleet, wanted.group, scope=scope)
    if wanted.host is not None and not _has_records(snapshot.records, HistoryFilter(host=wanted.host)):
        check_host(snapshot.fleet, wanted.host, scope=scope)
    if wanted.machine is not None:
        check_machine(snapshot, wanted.machine, scope=scope)
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


def some(names: Sequence[str]) -> str:
    """Write as many names as a person reads, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
