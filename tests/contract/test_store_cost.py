"""Queries of every tick and request use indexes: their cost does not grow with the fleet."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event as listening

from forewarn.core.basic_types import DEFAULT_PROJECT, GroupName, OrderState
from forewarn.core.filters import EventFilter, HistoryFilter, MachineFilter, OrderFilter, RecordFilter
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import HostResource
from forewarn.store.reads.capacity import EXTRA_HOSTS
from forewarn.store.snapshots import Snapshot
from forewarn.store.store import Store, open_store
from tests.contract.samples import (
    NOW,
    event,
    event_id,
    group,
    host,
    machine,
    machine_id,
    order,
    order_id,
    save,
    save_fleet,
    stage,
    step,
)

WEB = GroupName("web")
# Indexes for lookups by key: a scan of one of them would read the whole history.
OF_ALL_THAT_EVER_WAS = ("orders_host", "events_group")
PAGE: dict[str, Any] = {"after": None, "limit": 10}

MEMORY = {"memory": HostResource(amount=1)}
QUESTIONS: dict[str, Callable[[Snapshot], object]] = {
    "around": lambda snapshot: snapshot.rules.around(
        orders=[order_id(1)], machines=[machine_id("web-0")], hosts=[host("host-1").name], groups=[WEB]
    ),
    "machine": lambda snapshot: snapshot.fleet.machine("web-0", project=None),
    "machine_by_id": lambda snapshot: snapshot.rules.machine_by_id(machine_id("web-0")),
    "machines": lambda snapshot: snapshot.fleet.machines(**PAGE),
    "groups": lambda snapshot: snapshot.fleet.groups(**PAGE),
    "hosts": lambda snapshot: snapshot.fleet.hosts(**PAGE),
    "loads of hosts": lambda snapshot: snapshot.rules.host_loads([host("host-1", resources=MEMORY)]),
    "orders": lambda snapshot: snapshot.work.orders(**PAGE),
    "orders by state": lambda snapshot: snapshot.work.orders(OrderFilter(state=OrderState.DONE), **PAGE),
    "orders of a host": lambda snapshot: snapshot.work.orders(OrderFilter(host=host("host-1").name), **PAGE),
    "orders of a machine": lambda snapshot: snapshot.work.orders(
        OrderFilter(machine=machine("web-0").name), **PAGE
    ),
    "past events": lambda snapshot: snapshot.work.events(EventFilter(past=True), **PAGE),
    "events of some time": lambda snapshot: snapshot.work.events(
        EventFilter(past=True, since=NOW, until=NOW), **PAGE
    ),
    "events of a machine": lambda snapshot: snapshot.work.events(
        EventFilter(past=True, machine=machine("web-0").name), **PAGE
    ),
    "events of a host": lambda snapshot: snapshot.work.events(
        EventFilter(past=True, host=host("host-1").name), **PAGE
    ),
    "machines by name": lambda snapshot: snapshot.fleet.machines(
        MachineFilter(names=frozenset({"web-0"})), **PAGE
    ),
    "machines by how names begin": lambda snapshot: snapshot.fleet.machines(
        MachineFilter(begins="web"), **PAGE
    ),
    "summary": lambda snapshot: snapshot.fleet.summary(),
    "events": lambda snapshot: snapshot.work.events(**PAGE),
    "order": lambda snapshot: snapshot.work.order(order_id(1)),
    "event": lambda snapshot: snapshot.work.event(event_id(1)),
    "events_of_order": lambda snapshot: snapshot.work.events_of_order(order_id(1)),
    "events_of_orders": lambda snapshot: snapshot.rollouts.events_of_orders([order_id(1)]),
    "events_of_group": lambda snapshot: snapshot.rules.events_of_group(WEB, [event_id(1)]),
    "history": lambda snapshot: snapshot.records.history(HistoryFilter()),
    "history of a machine": lambda snapshot: snapshot.records.history(
        HistoryFilter(machine=machine("web-0").name)
    ),
    "history of an order": lambda snapshot: snapshot.records.history(HistoryFilter(order=order_id(1))),
    "history since": lambda snapshot: snapshot.records.history(HistoryFilter(since=NOW)),
    "history until": lambda snapshot: snapshot.records.history(HistoryFilter(until=NOW)),
    "history of a host": lambda snapshot: snapshot.records.history(HistoryFilter(host=host("host-1").name)),
    "history of a group": lambda snapshot: snapshot.records.history(HistoryFilter(group=WEB)),
    "history above": lambda snapshot: snapshot.records.history(HistoryFilter(above=1)),
    "following": lambda snapshot: snapshot.records.following(1, RecordFilter(), limit=10),
    "open_orders": lambda snapshot: snapshot.due.open_orders([order_id(1)]),
    "open_rollouts": lambda snapshot: snapshot.rollouts.open(),
    "scheduled_user_orders": lambda snapshot: snapshot.work.scheduled_user_orders(DEFAULT_PROJECT),
    "stopped": lambda snapshot: snapshot.fleet.stopped([machine_id("web-0")]),
    "last_seen": lambda snapshot: snapshot.fleet.last_seen([machine_id("web-0")]),
    "host_drivers": lambda snapshot: snapshot.rules.host_drivers(),
    "hosts_by_driver": lambda snapshot: snapshot.metrics.hosts_by_driver(),
    "stuck_orders": lambda snapshot: snapshot.metrics.stuck_orders(),
    "counts": lambda snapshot: snapshot.metrics.counts(),
    "since": lambda snapshot: snapshot.feed.since(1),
    "due_orders": lambda snapshot: snapshot.due.orders(NOW, limit=10),
    "idle_groups": lambda snapshot: snapshot.due.idle_groups(since=NOW, limit=10),
    "due_moments": lambda snapshot: snapshot.due.moments(after=NOW),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_query_scans_a_table(question: str) -> None:
    store = open_store("sqlite://", new_id=lambda: "X")
    save_fleet(store, [machine("web-0")])
    touching = order(1, host=host("host-1").name, stages=(stage(step("web-0")),))
    save(store, groups=(group("db"),), orders=(touching,), events=(event(1),))
    assert plans_of(store, QUESTIONS[question])
    store.close()


def test_the_search_for_a_host_neither_scans_nor_sorts_a_table() -> None:
    """The emptiest hosts carry too many machines of the group, so the search continues."""
    store = open_store("sqlite://", new_id=lambda: "X")
    hosts = [f"host-{number}" for number in range(2 * EXTRA_HOSTS)]
    save_fleet(store, [machine(name, host=host(name).name) for name in hosts], hosts=hosts)
    in_rack = host("host-0", labels={"rack": "a"})
    save(store, groups=(group(policy=GroupPolicy(budget=len(hosts) - 1)),), hosts=(in_rack,))
    moved, homes = [machine_id(name) for name in hosts[:3]], [host(hosts[-1]).name]
    asked = plans_of(store, lambda snapshot: snapshot.rules.around(machines=moved, room=True, homes=homes))
    searches = [plan for statement, plan in asked.items() if "ORDER BY hosts.carried" in statement]
    assert len(searches) == 3
    assert [detail for plan in searches for detail in plan if "TEMP B-TREE" in detail] == []
    (named,) = (plan for statement, plan in asked.items() if "coalesce(hosts.state" in statement)
    assert "(name=?)" in next(detail for detail in named if "hosts" in detail)
    (places,) = (plan for statement, plan in asked.items() if "coalesce(machines.place" in statement)
    assert "(group_name=?)" in next(detail for detail in places if "machines" in detail)
    store.close()


def plans_of(store: Store, question: Callable[[Snapshot], object]) -> dict[str, list[str]]:
    """Run queries, and return how SQLite executes each statement: none may scan a table."""
    asked: list[tuple[str, Any]] = []
    plans: dict[str, list[str]] = {}
    with store.read() as snapshot:
        connection = snapshot.transaction.connection

        @listening.listens_for(connection, "before_cursor_execute")
        def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
            asked.append((statement, values))

        question(snapshot)
        listening.remove(connection, "before_cursor_execute", note)
        for statement, values in asked:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            plans[statement] = [row.detail for row in rows]
            assert [detail for detail in plans[statement] if reads_a_whole_table(detail)] == [], statement
    return plans


def reads_a_whole_table(detail: str) -> bool:
    # `meta` has one row, `holds` a few, and records are stored in the order of a page.
    harmless = ("SCAN meta", "SCAN holds", "SCAN records", "SCAN CONSTANT ROW")
    by_index = "INDEX" in detail and not any(name in detail for name in OF_ALL_THAT_EVER_WAS)
    return detail.startswith("SCAN") and not by_index and detail not in harmless
