"""A query by keys costs PostgreSQL the same, however many other orders are open and whatever it estimates."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import Update, text

from forewarn.core.basic_types import GroupName, HostName, Source
from forewarn.core.model.constraints import Waiting
from forewarn.store.prefetch import Prefetch
from forewarn.store.reads.open_transaction import BatchState
from forewarn.store.reads.prefetching import load
from forewarn.store.snapshots import Snapshot
from forewarn.store.store import Store, open_store
from forewarn.store.writes import saving
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
    stage,
    step,
)
from tests.helpers.database.transactions import writing

# psycopg prepares a statement at its sixth execution; it has a generic plan from then on.
UNTIL_PREPARED = 6
ELSEWHERE = 300  # machines, each with its own group and host
HERE, FAR = 0, 200  # a move reads the first hosts by name, and their orders
HOST, GROUP, MACHINE = HostName("host-0"), GroupName("group-0"), machine_id("vm-0")
# The rows that a transaction has read so far in tables with open orders or events, with or
# without an index.
ROWS_READ = text(
    "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables "
    "WHERE relname IN ('orders', 'events', 'order_machines', 'order_waits')"
)
SETTINGS = {"work_mem": "1MB", "enable_seqscan": "off", "lock_timeout": "3s", "jit": "on"}
PLANS = text("SELECT count(*) FROM pg_prepared_statements WHERE generic_plans > 0")

QUESTIONS: dict[str, Callable[[Snapshot], object]] = {
    "what calls will ask for": lambda tx: load(
        tx.transaction.connection, [Prefetch(machine="vm-0", answer=("alice", "key"))], BatchState()
    ),
    "around an order": lambda tx: tx.rules.around(orders=[order_id(HERE)]),
    "around a machine that moves": lambda tx: tx.rules.around(machines=[MACHINE], room=True),
    "around a host": lambda tx: tx.rules.around(hosts=[HOST]),
    "around a group": lambda tx: tx.rules.around(groups=[GROUP]),
    "open_orders": lambda tx: tx.due.open_orders([order_id(HERE)]),
    "events_of_orders": lambda tx: tx.rollouts.events_of_orders([order_id(HERE)]),
    "events_of_group": lambda tx: tx.rules.events_of_group(GROUP, [event_id(HERE)]),
    "survey": lambda tx: tx.rollouts.survey([HOST]),
    "waking orders that wait for a group": lambda tx: wake(tx, saving._ORDERS_WAITING, GROUP),
    "waking those on a host": lambda tx: wake(tx, saving._ORDERS_ON, HOST),
}


def wake(tx: Snapshot, statement: Update, key: str) -> None:
    tx.transaction.connection.execute(statement, {"keys": [key], "now": 0})


@pytest.fixture(params=["of a quiet hour", "none"])
def store(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Return a store with one open order, with or without statistics that say so."""
    with closing(open_store(postgres_url, new_id=lambda: "LINEAGE")) as opened:
        numbers = range(ELSEWHERE)
        save(
            opened,
            hosts=[host(f"host-{number}") for number in numbers],
            groups=[group(f"group-{number}") for number in numbers],
            machines=[machine(f"vm-{number}", **place(number)) for number in numbers],
        )
        if request.param == "of a quiet hour":
            announce(opened, range(ELSEWHERE, 2 * ELSEWHERE), ended_at=NOW)
        announce(opened, [HERE])
        if request.param == "of a quiet hour":
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute("ANALYZE")
        yield opened


def test_open_orders_elsewhere_are_not_read(store: Store) -> None:
    for _ in range(UNTIL_PREPARED):
        alone = rows_read(store)
    with writing(store) as tx:
        assert tx.transaction.connection.execute(PLANS).scalar_one() >= len(QUESTIONS)
    announce(store, range(HERE + 1, ELSEWHERE))
    assert rows_read(store) == alone, "by the plans that were made before"
    store.engines.writing.dispose()
    assert rows_read(store) == alone, "by the plans that are made now"


def test_options_of_the_url_are_added_to_those_of_the_store(postgres_url: str) -> None:
    url = f"{postgres_url}&options=-c%20work_mem%3D1MB%20-c%20jit%3Don"
    with closing(open_store(url, new_id=lambda: "LINEAGE")) as opened, writing(opened) as tx:
        shown = {
            name: tx.transaction.connection.exec_driver_sql(f"SHOW {name}").scalar() for name in SETTINGS
        }
    assert shown == SETTINGS


def place(number: int) -> dict[str, object]:
    return {"host": HostName(f"host-{number}"), "group": GroupName(f"group-{number}")}


def announce(store: Store, numbers: Sequence[int], **more: object) -> None:
    """Save an order and its event for each number, on the machine of that number; open or ended."""
    steps = {
        number: step(f"vm-{number % ELSEWHERE}", group=place(number % ELSEWHERE)["group"])
        for number in numbers
    }
    orders = [
        order(
            number,
            machine=each.machine,
            # User orders are counted, because their number is limited.
            source=Source.PLATFORM,
            host=HostName(f"host-{number % ELSEWHERE}") if number == HERE or number > FAR else None,
            stages=(stage(each),),
            waiting=(Waiting(what="it", reason="waits", group=each.group),),
            **more,
        )
        for number, each in steps.items()
    ]
    events = [
        event(number, order=order_id(number), group=each.group, **more) for number, each in steps.items()
    ]
    save(store, orders=orders, events=events)


def rows_read(store: Store) -> dict[str, int]:
    """Run every query, and count the rows that PostgreSQL has read."""
    found = {}
    with writing(store) as tx:
        connection = tx.transaction.connection
        for name, question in QUESTIONS.items():
            before = connection.execute(ROWS_READ).scalar_one()
            question(tx)
            found[name] = int(connection.execute(ROWS_READ).scalar_one() - before)
    return found
