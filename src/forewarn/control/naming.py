"""Lookup of names that callers give: an unknown name is an error with a spelling hint, not an empty list."""

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
    ProjectName,
)
from forewarn.core.errors import Conflict, ForewarnError, NotFound, UnknownName
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.core.text_formats import MOST_NAMES, hint
from forewarn.store.batch import ScopedTransaction
from forewarn.store.queries.fleet import FleetQueries
from forewarn.store.queries.records import RecordQueries
from forewarn.store.snapshots import ReadStore, ScopedSnapshot

T = TypeVar("T")

# A spelling hint costs some milliseconds of CPU that all threads share. People make fewer typos than this.
HINTS_A_SECOND, HINTS_AT_ONCE = 10, 20

# The longest list of names in a message.
MOST_SHOWN = 5


def find_machine(fleet: FleetQueries, name: str, *, scope: Scope) -> Machine:
    """Return a machine by name. NotFound names the project if the caller asked for one."""
    try:
        return fleet.machine(name)
    except NotFound:
        where = "" if scope.asked is None else f" in project {scope.asked}"
    raise _not_found(f'machine "{name}" does not exist{where}', NameKind.MACHINE, name, scope)


class HintAllowance:
    """Limits the rate of spelling hints per project. Thread-safe."""

    def __init__(self, *, monotonic: Callable[[], float] = monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # When each project's allowance is complete again. Lock: self._lock.
        self._due: dict[ProjectName | None, float] = {}

    def take(self, caller: ProjectName | None) -> bool:
        """Use one hint of a project, or of the operators; return whether one was left."""
        with self._lock:
            now = self._monotonic()
            due = max(self._due.get(caller, now), now)
            if due - now > (HINTS_AT_ONCE - 1) / HINTS_A_SECOND:
                return False
            self._due[caller] = due + 1 / HINTS_A_SECOND
            return True


def with_hint(
    store: ReadStore, error: ForewarnError, *, scope: Scope, allowance: HintAllowance
) -> ForewarnError:
    """Add a spelling hint to an error about an unknown name.

    Never call this on the worker thread: other callers wait for it, and the caller chooses the name.
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
    """Return the value that a lookup by id has found; NotFound if it is None."""
    if found is None:
        raise NotFound(f"{what} {id_} does not exist")
    return found


def unknown(kind: NameKind, name: str, *, scope: Scope = EVERYTHING) -> NotFound:
    """Return the error for an unknown name."""
    return _not_found(f'{kind} "{name}" does not exist', kind, name, scope)


def _not_found(message: str, kind: NameKind, name: str, scope: Scope) -> NotFound:
    return NotFound(message, unknown=UnknownName(kind=kind, name=name, project=scope.asked))


def check_project(fleet: FleetQueries, project: ProjectName, *, scope: Scope) -> None:
    """Raise NotFound unless the scope includes a project. For operators the default project always exists."""
    if project != (scope.project or DEFAULT_PROJECT) and fleet.project(project) is None:
        raise unknown(NameKind.PROJECT, project, scope=scope)


def narrowed(tx: ScopedTransaction, project: ProjectName | None) -> ScopedTransaction:
    """Narrow a transaction to one project; NotFound if its scope does not include it."""
    if project is None:
        return tx
    check_project(tx.fleet, project, scope=tx.scope)
    return tx.narrowed(project)


def find_group(fleet: FleetQueries, name: GroupName, *, scope: Scope = EVERYTHING) -> Group:
    """Return a group by name, but not the own group of a standalone machine."""
    group = fleet.group(name)
    if group is None or group.kind is GroupKind.STANDALONE:
        raise unknown(NameKind.GROUP, name, scope=scope)
    return group


def check_group(fleet: FleetQueries, name: GroupName | None, *, scope: Scope) -> None:
    """Raise NotFound unless a group exists."""
    if name is not None:
        find_group(fleet, name, scope=scope)


def check_host(fleet: FleetQueries, name: HostName | None, *, scope: Scope) -> None:
    """Raise NotFound unless a host exists and, for a project, carries one of its machines."""
    if name is None or fleet.host(name) is not None:
        return
    if scope.project is not None:
        raise NotFound(f'host "{name}" carries no machine of project {scope.project}')
    raise unknown(NameKind.HOST, name)


def check_machine(snapshot: ScopedSnapshot, name: MachineName, *, scope: Scope) -> None:
    """Raise NotFound unless a machine exists, or existed and has records."""
    if _has_records(snapshot.records, HistoryFilter(machine=name)):
        return
    try:
        snapshot.fleet.machine(name)
    except NotFound:
        raise unknown(NameKind.MACHINE, name, scope=scope) from None
    except Conflict:  # it exists in several projects
        return


def check_filter(snapshot: ScopedSnapshot, wanted: HistoryFilter, *, scope: Scope) -> None:
    """Raise NotFound if a filter names something that does not exist and has no records."""
    if wanted.group is not None and not _has_records(snapshot.records, HistoryFilter(group=wanted.group)):
        check_group(snapshot.fleet, wanted.group, scope=scope)
    if wanted.host is not None and not _has_records(snapshot.records, HistoryFilter(host=wanted.host)):
        check_host(snapshot.fleet, wanted.host, scope=scope)
    if wanted.machine is not None:
        check_machine(snapshot, wanted.machine, scope=scope)
    if wanted.event is not None:
        existing(snapshot.work.event(wanted.event), "event", wanted.event)
    # A project also has records of other orders: of those whose events name its machines.
    order = wanted.order
    if order is None or _has_records(snapshot.records, HistoryFilter(order=order)):
        return
    existing(snapshot.work.order(order), "order", order)


def _has_records(records: RecordQueries, wanted: HistoryFilter) -> bool:
    return bool(records.history(replace(wanted, limit=1)))


def shortened(names: Sequence[str]) -> str:
    """Return the first names of a list and the number of the others, for a message."""
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return f"{', '.join(names[:MOST_SHOWN])}{more}"
