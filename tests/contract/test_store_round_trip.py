"""The store returns every value that core can make unchanged."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Any, get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarn.core.filters import HistoryFilter
from forewarn.core.model.changes import Changes
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Approval, Deferral, Event, Postponement, Resource
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import HostStep, Order, OrderTerms, Precheck, RefusedHost, Stage, Step
from forewarn.core.model.record import Record
from forewarn.store.batch import Transaction
from forewarn.store.store import Store
from tests.contract.samples import NOW
from tests.helpers.database.transactions import writing
from tests.helpers.service.counts import tries

# PostgreSQL stores no NUL in a text, and surrogates are not valid text.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
small = st.integers(-1, 2**31 - 1)
large = st.integers(0, 2**62)
ids = st.uuids().map(str)
upper_ids = ids.map(str.upper)


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Generate values for a field, for all types that are stored as columns."""
    if choices := get_args(hint):
        return st.one_of([anything(choice) for choice in choices])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    known: dict[Any, st.SearchStrategy[Any]] = {
        NoneType: st.none(),
        bool: st.booleans(),
        datetime: moments,
        float: st.floats(0, 2**40),
        int: small,
        timedelta: st.integers(0, 10**6).map(lambda seconds: timedelta(seconds=seconds)),
    }
    return known.get(hint, texts)


def build(kind: Any, **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Generate values of a type."""
    fields = kind.__dataclass_fields__
    return st.builds(
        kind, **{name: known[name] if name in known else anything(fields[name].type) for name in fields}
    )


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


def distinct(values: st.SearchStrategy[Any], by: Callable[[Any], Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, unique_by=by, max_size=4).map(tuple)


orders = build(
    Order,
    id=upper_ids,
    number=large,
    stages=several(
        build(
            Stage,
            steps=several(
                build(
                    Step,
                    refused=several(build(RefusedHost)),
                    failed_on=several(texts),
                    precheck=st.none() | build(Precheck),
                )
            ),
        )
    ),
    host_steps=several(build(HostStep)),
    waiting=several(build(Waiting)),
    terms=build(OrderTerms, homes=several(texts), to=st.none() | texts),
    ended_at=st.none(),
)
events = build(
    Event,
    id=upper_ids,
    number=large,
    order=upper_ids,
    resources=several(build(Resource)),
    approvals=several(build(Approval)),
    deferred=st.none() | build(Deferral),
    postponed=st.none() | build(Postponement),
)
pairs = st.dictionaries(texts, texts, max_size=3)
amounts = st.dictionaries(texts, st.floats(0, 2**40), max_size=3)
machines = build(Machine, id=ids, tags=pairs, labels=pairs, resources=amounts)
groups = build(Group, incarnation=large, policy=build(GroupPolicy))
records = build(Record, number=large, event=st.none() | upper_ids, order=st.none() | upper_ids)

changes = st.builds(
    Changes,
    now=st.just(NOW),
    orders=distinct(orders, lambda order: order.id),
    events=distinct(events, lambda event: event.id),
    groups=distinct(groups, lambda group: group.name),
    machines=st.tuples(machines),
    records=distinct(records, lambda record: record.number),
)


class UndoneError(Exception):
    """Rolls back the transaction of an example, so that each begins with an empty store."""


@settings(
    max_examples=tries(15, long=300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(changes=changes)
def test_saved_values_are_read_back_unchanged(store: Store, changes: Changes) -> None:
    with suppress(UndoneError), writing(store) as tx:
        tx.changes.save(changes)
        assert_kept(tx, changes)
        raise UndoneError


def assert_kept(tx: Transaction, changes: Changes) -> None:
    assert tuple(tx.work.order(order.id) for order in changes.orders) == changes.orders
    assert tuple(tx.work.event(event.id) for event in changes.events) == changes.events
    assert tuple(tx.fleet.group(group.name) for group in changes.groups) == changes.groups
    (machine,) = changes.machines
    assert tx.rules.machine_by_id(machine.id) == machine
    assert tx.fleet.machine(machine.name, project=machine.project) == machine
    newest_first = sorted(changes.records, key=lambda record: record.number, reverse=True)
    assert list(tx.records.history(HistoryFilter())) == newest_first
