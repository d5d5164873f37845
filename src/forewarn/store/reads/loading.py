"""Loading what several use cases will ask for, with as many statements as one of them needs."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Select, func, literal, select, union_all

from forewarn.core.basic_types import ProjectName, Source
from forewarn.store import tables
from forewarn.store.prefetch import NOT_STARTED, Prefetch, Loaded, Rows
from forewarn.store.key_lists import key_list, one_of
from forewarn.store.reads.open_transaction import LOCK_META, KnownMeta
from forewarn.store.reads.promises import NOTICES
from forewarn.store.reads.reader import MACHINES_WITH_HOSTS, among, chunks
from forewarn.store.reads.slice_reads import EVENTS_OF_ORDERS, GROUPS_WITH_LISTED
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
_ANSWERS = among(SELECT_ANSWERS, tables.answers.c.key)
_BY_NAME = among(MACHINES_WITH_HOSTS.add_columns(_M.key), _M.key).order_by(_M.project)
# Open orders alone have machines. The offset has PostgreSQL find these before it joins them with anything.
_FOUND = select(_OM.order_id, _OM.machine_id).where(one_of(_OM.machine_id, key_list("machines")))
_PAIRS = _FOUND.offset(0).subquery()
# Each with what it was found by.
_ORDERS = union_all(
    ORDERS.select()
    .add_columns(literal("machines"), _PAIRS.c.machine_id)
    .join(_PAIRS, _PAIRS.c.order_id == _O.id),
    ORDERS.select()
    .add_columns(literal("hosts"), _O.host)
    .where(one_of(tables.HOST_OF_OPEN_ORDER, key_list("hosts"))),
)
_SCHEDULED = among(select(_O.project, func.count()), _O.project).where(*IS_SCHEDULED).group_by(_O.project)


@dataclass(frozen=True, slots=True)
class _Wanted(Generic[Key]):
    """What is asked for by keys: all rows that there are of each, perhaps none."""

    queries: Sequence[Statement]
    key: Callable[[Row], Key]
    found: dict[Key, Rows]

    @property
    def rows(self) -> list[Row]:
        """All of them."""
        return [row for rows in self.found.values() for row in rows]

    def take(self, rows: Iterable[Row]) -> None:
        """Take the rows of a query."""
        for row in rows:
            self.found.setdefault(self.key(row), []).append(row)


def load(connection: Connection, calls: Sequence[Prefetch], known: KnownMeta) -> Loaded:
    """Load what calls will ask for, within a transaction that may write.

    What can be asked for at the same time goes together. The lock goes before all of it: what is read then
    nobody else is about to change. A machine is looked for among those that its caller finds, so the name of
    another project's machine loads what a name loads that nothing has.
    """
    ask = partial(_ask, connection, known)
    named = {project: _named(project, calls) for project in dict.fromkeys(call.project for call in calls)}
    answers = _answers({call.answer for call in calls if call.answer is not None})
    ask(*named.values(), answers)
    machines = [row for each in named.values() for row in each.rows]
    of_machines = partial(_values, machines, MACHINES)
    orders = _orders(of_machines("id"), of_machines("host"))
    projects, groups = of_machines("project"), of_machines("group_name")
    scheduled = _by(projects, _SCHEDULED, lambda row: row[0])
    own_groups = _by(groups, GROUPS_WITH_LISTED, lambda row: row[0])
    ask(orders, scheduled, own_groups)
    events = _by(_values(orders.rows, ORDERS, "id"), EVENTS_OF_ORDERS, _reading(EVENTS, "order_id"))
    ask(events)
    of_events = partial(_values, events.rows, EVENTS)
    notices = _by(of_events("id"), NOTICES, lambda row: row[0])
    other_groups = _by(of_events("group_name") - groups, GROUPS_WITH_LISTED, lambda row: row[0])
    ask(notices, other_groups)
    return Loaded(
        answers=answers.found,
        machines={(project, key): rows for project, its in named.items() for key, rows in its.found.items()},
        scheduled={project: sum(row[1] for row in rows) for project, rows in scheduled.found.items()},
        orders=orders.found,
        events=events.found,
        groups=own_groups.found | other_groups.found,
        notices=notices.found,
    )


def _ask(connection: Connection, known: KnownMeta, *wanted: _Wanted[Any]) -> None:
    """Ask for several things at once, and before all else for the lock on the counter."""
    locking: list[Statement] = [] if known.meta is not None else [(LOCK_META, None)]
    answers = iter(
        read_at_once(connection, [*locking, *(query for each in wanted for query in each.queries)])
    )
    if locking:
        (meta,) = next(answers)
        known.read(meta)
    for each in wanted:
        each.take(chain.from_iterable(islice(answers, len(each.queries))))


def _named(project: ProjectName | None, calls: Sequence[Prefetch]) -> _Wanted[str]:
    """Want the machines of the names that are given by who finds those of a project, or all."""
    names = {name_key(call.machine) for call in calls if call.project == project}
    return _by(
        names, _BY_NAME if project is None else _BY_NAME.where(_M.project == project), lambda row: row[-1]
    )


def _by(keys: Iterable[str], query: Select[Any], key: Callable[[Row], str]) -> _Wanted[str]:
    """Want the rows of keys by an `among` query; no keys, no query."""
    wanted = sorted(keys)
    return _Wanted([(query, {"keys": some}) for some in chunks(wanted)], key, {each: [] for each in wanted})


def _orders(machines: set[str], hosts: set[str]) -> _Wanted[tuple[str, str]]:
    """Want the open orders that concern machines and hosts, by these."""
    keys = {"machines": sorted(machines), "hosts": sorted(hosts)}
    found: dict[tuple[str, str], Rows] = {(of, key): [] for of, some in keys.items() for key in some}
    return _Wanted([(_ORDERS, keys)] if found else [], lambda row: (row[-2], row[-1]), found)


def _answers(wanted: set[tuple[str, str]]) -> _Wanted[tuple[str, str]]:
    queries = _by({key for _, key in wanted}, _ANSWERS, lambda row: row[_KEY]).queries
    return _Wanted(queries, lambda row: (row[_CALLER], row[_KEY]), {each: [] for each in wanted})


_CALLER, _KEY = (list(tables.answers.columns.keys()).index(name) for name in ("caller", "key"))


def _reading(mapped: Mapped[Any], column: str) -> Callable[[Row], str]:
    place = [each.name for each in mapped.columns].index(column)
    return lambda row: row[place]


def _values(rows: Iterable[Row], mapped: Mapped[Any], column: str) -> set[str]:
    read = _reading(mapped, column)
    return {value for row in rows if (value := read(row)) is not None}
