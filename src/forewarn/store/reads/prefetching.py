"""Prefetching for several calls, with as many statements as one call needs."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Select, func, literal, select, union_all

from forewarn.core.basic_types import ProjectName, Source
from forewarn.store import tables
from forewarn.store.key_lists import chunks, for_keys, key_list, one_of
from forewarn.store.prefetch import NOT_STARTED, Prefetch, PrefetchedRows, Rows
from forewarn.store.reads.notices import NOTICES
from forewarn.store.reads.open_transaction import LOCK_META, BatchState
from forewarn.store.reads.slice_reads import EVENTS_OF_ORDERS, GROUPS_WITH_LISTED
from forewarn.store.reads.statements import MACHINES_WITH_HOSTS
from forewarn.store.round_trips import Statement, read_at_once
from forewarn.store.rows.mapping import Mapped, Row
from forewarn.store.rows.stored import EVENTS, MACHINES, ORDERS, name_key

Key = TypeVar("Key", bound=Hashable)

_M, _O, _OM = tables.machines.c, tables.orders.c, tables.order_machines.c
SELECT_ANSWERS = select(tables.answers)
IS_SCHEDULED = (
    tables.OPEN_ORDER,
    _O.state.in_([state.value for state in NOT_STARTED]),
    _O.source == Source.USER.value,
)
_ANSWERS = for_keys(SELECT_ANSWERS, tables.answers.c.key)
_BY_NAME = for_keys(MACHINES_WITH_HOSTS.add_columns(_M.key), _M.key).order_by(_M.project)
# Only open orders have machines. OFFSET makes PostgreSQL find these rows before the join.
_FOUND = select(_OM.order_id, _OM.machine_id).where(one_of(_OM.machine_id, key_list("machines")))
_PAIRS = _FOUND.offset(0).subquery()
# Each row ends with the key that found it.
_ORDERS = union_all(
    ORDERS.select()
    .add_columns(literal("machines"), _PAIRS.c.machine_id)
    .join(_PAIRS, _PAIRS.c.order_id == _O.id),
    ORDERS.select()
    .add_columns(literal("hosts"), _O.host)
    .where(one_of(tables.HOST_OF_OPEN_ORDER, key_list("hosts"))),
)
_SCHEDULED = for_keys(select(_O.project, func.count()), _O.project).where(*IS_SCHEDULED).group_by(_O.project)


@dataclass(frozen=True, slots=True)
class _KeyedRows(Generic[Key]):
    """Queries by key, and all rows of each key, perhaps none."""

    queries: Sequence[Statement]
    key: Callable[[Row], Key]
    found: dict[Key, Rows]

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for rows in self.found.values() for row in rows]


def load(connection: Connection, calls: Sequence[Prefetch], state: BatchState) -> PrefetchedRows:
    """Load the rows that calls will ask for, in a transaction that may write.

    Independent queries go to the database together. The lock goes first, so no other process changes rows
    that were read. Machines are searched in the scope of the caller: for a caller, the name of another
    project's machine is the same as an unused name.
    """
    ask = partial(_ask, connection, state)
    named = {project: _named(project, calls) for project in dict.fromkeys(call.project for call in calls)}
    answers = _answers({call.answer for call in calls if call.answer is not None})
    ask(*named.values(), answers)
    machines = [row for each in named.values() for row in each.rows]
    of_machines = partial(_values, machines, MACHINES)
    orders = _orders(of_machines("id"), of_machines("host"))
    projects, groups = of_machines("project"), of_machines("group_name")
    scheduled = _rows_by_key(projects, _SCHEDULED, lambda row: row[0])
    own_groups = _rows_by_key(groups, GROUPS_WITH_LISTED, lambda row: row[0])
    ask(orders, scheduled, own_groups)
    events = _rows_by_key(_values(orders.rows, ORDERS, "id"), EVENTS_OF_ORDERS, _reading(EVENTS, "order_id"))
    ask(events)
    of_events = partial(_values, events.rows, EVENTS)
    notices = _rows_by_key(of_events("id"), NOTICES, lambda row: row[0])
    other_groups = _rows_by_key(of_events("group_name") - groups, GROUPS_WITH_LISTED, lambda row: row[0])
    ask(notices, other_groups)
    return PrefetchedRows(
        answers=answers.found,
        machines={(project, key): rows for project, its in named.items() for key, rows in its.found.items()},
        scheduled={project: sum(row[1] for row in rows) for project, rows in scheduled.found.items()},
        orders=orders.found,
        events=events.found,
        groups=own_groups.found | other_groups.found,
        notices=notices.found,
    )


def _ask(connection: Connection, state: BatchState, *wanted: _KeyedRows[Any]) -> None:
    """Run several queries at once, after the lock on the counter."""
    locking: list[Statement] = [] if state.meta is not None else [(LOCK_META, None)]
    answers = iter(
        read_at_once(connection, [*locking, *(query for each in wanted for query in each.queries)])
    )
    if locking:
        (meta,) = next(answers)
        state.read_meta(meta)
    for each in wanted:
        for row in chain.from_iterable(islice(answers, len(each.queries))):
            each.found.setdefault(each.key(row), []).append(row)


def _named(project: ProjectName | None, calls: Sequence[Prefetch]) -> _KeyedRows[str]:
    """Return the queries for the machines that callers of a project name; None: callers of all projects."""
    names = {name_key(call.machine) for call in calls if call.project == project}
    return _rows_by_key(
        names, _BY_NAME if project is None else _BY_NAME.where(_M.project == project), lambda row: row[-1]
    )


def _rows_by_key(keys: Iterable[str], query: Select[Any], key: Callable[[Row], str]) -> _KeyedRows[str]:
    """Return a `for_keys` query for these keys; without keys no query runs."""
    wanted = sorted(keys)
    return _KeyedRows(
        [(query, {"keys": some}) for some in chunks(wanted)], key, {each: [] for each in wanted}
    )


def _orders(machines: set[str], hosts: set[str]) -> _KeyedRows[tuple[str, str]]:
    """Return the query for the open orders on machines and on hosts."""
    keys = {"machines": sorted(machines), "hosts": sorted(hosts)}
    found: dict[tuple[str, str], Rows] = {(of, key): [] for of, some in keys.items() for key in some}
    return _KeyedRows([(_ORDERS, keys)] if found else [], lambda row: (row[-2], row[-1]), found)


def _answers(wanted: set[tuple[str, str]]) -> _KeyedRows[tuple[str, str]]:
    queries = _rows_by_key({key for _, key in wanted}, _ANSWERS, lambda row: row[_KEY]).queries
    return _KeyedRows(queries, lambda row: (row[_CALLER], row[_KEY]), {each: [] for each in wanted})


_CALLER, _KEY = (list(tables.answers.columns.keys()).index(name) for name in ("caller", "key"))


def _reading(mapped: Mapped[Any], column: str) -> Callable[[Row], str]:
    place = [each.name for each in mapped.columns].index(column)
    return lambda row: row[place]


def _values(rows: Iterable[Row], mapped: Mapped[Any], column: str) -> set[str]:
    read = _reading(mapped, column)
    return {value for row in rows if (value := read(row)) is not None}
