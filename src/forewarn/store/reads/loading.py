"""Loading what several use cases will ask for, with as many statements as one of them needs."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, func, literal, select, union_all

from forewarn.control.ports.foreseen import Foreseen
from forewarn.core.words import Source
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_of
from forewarn.store.reads.loaded import NOT_STARTED, Loaded
from forewarn.store.reads.notice_reads import NOTICES
from forewarn.store.reads.open_transaction import KnownMeta, OpenTransaction
from forewarn.store.reads.reader import MACHINES_WITH_HOSTS, Reader, among
from forewarn.store.reads.slice_reads import EVENTS_OF_ORDERS, GROUPS_WITH_LISTED
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
# Each with what it was found by.
_ORDERS = union_all(
    ORDERS.select()
    .add_columns(literal("machines"), _OM.machine_id)
    .join(tables.order_machines, _OM.order_id == _O.id)
    .where(tables.OPEN_ORDER, one_of(_OM.machine_id, key_list("machines"))),
    ORDERS.select()
    .add_columns(literal("hosts"), _O.host)
    .where(tables.OPEN_ORDER, one_of(_O.host, key_list("hosts"))),
)
_SCHEDULED = among(select(_O.project, func.count()), _O.project).where(*IS_SCHEDULED).group_by(_O.project)


def load(connection: Connection, calls: Sequence[Foreseen], known: KnownMeta) -> Loaded:
    """Load what calls will ask for, within a transaction that may write."""
    return _Loading(OpenTransaction(connection, lock=True, known=known)).load(calls)


class _Loading(Reader):
    def load(self, calls: Sequence[Foreseen]) -> Loaded:
        machines = self._by({name_key(call.machine) for call in calls}, _BY_NAME, lambda row: row[-1])
        found = [row for rows in machines.values() for row in rows]
        by_key = self._orders(_values(found, MACHINES, "id"), _values(found, MACHINES, "host"))
        orders = [row for rows in by_key.values() for row in rows]
        events = self._by(_values(orders, ORDERS, "id"), EVENTS_OF_ORDERS, _reading(EVENTS, "order_id"))
        announced = [row for rows in events.values() for row in rows]
        groups = _values(found, MACHINES, "group_name") | _values(announced, EVENTS, "group_name")
        projects = _values(found, MACHINES, "project")
        return Loaded(
            answers=self._answers({call.answer for call in calls if call.answer is not None}),
            machines=machines,
            scheduled=dict.fromkeys(projects, 0)
            | {row[0]: row[1] for row in self._among(_SCHEDULED, projects)},
            orders=by_key,
            events=events,
            groups=self._by(groups, GROUPS_WITH_LISTED, lambda row: row[0]),
            notices=self._by(_values(announced, EVENTS, "id"), NOTICES, lambda row: row[0]),
        )

    def _by(self, keys: Iterable[str], query: Select[Any], key: Callable[[Row], str]) -> dict[str, list[Row]]:
        """Return the rows of each key, also of those that have none."""
        wanted = sorted(keys)
        found: dict[str, list[Row]] = {each: [] for each in wanted}
        for row in self._among(query, wanted):
            found[key(row)].append(row)
        return found

    def _orders(self, machines: set[str], hosts: set[str]) -> dict[tuple[str, str], list[Row]]:
        """Return the open orders that concern machines and hosts, by these."""
        keys = {"machines": sorted(machines), "hosts": sorted(hosts)}
        found: dict[tuple[str, str], list[Row]] = {(of, key): [] for of, some in keys.items() for key in some}
        for row in self._all(_ORDERS, keys) if found else ():
            found[row[-2], row[-1]].append(row)
        return found

    def _answers(self, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], list[Row]]:
        found: dict[tuple[str, str], list[Row]] = defaultdict(list, {each: [] for each in wanted})
        for row in self._among(_ANSWERS, {key for _, key in wanted}):
            found[row[_CALLER], row[_KEY]].append(row)
        return dict(found)


_CALLER, _KEY = (list(tables.answers.columns.keys()).index(name) for name in ("caller", "key"))


def _reading(mapped: Mapped[Any], column: str) -> Callable[[Row], str]:
    place = [each.name for each in mapped.columns].index(column)
    return lambda row: row[place]


def _values(rows: Iterable[Row], mapped: Mapped[Any], column: str) -> set[str]:
    read = _reading(mapped, column)
    return {value for row in rows if (value := read(row)) is not None}
