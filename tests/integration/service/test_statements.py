"""The number of statements and transactions: exact counts, independent of the computer."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.control.orders.order_use_cases import Placed
from forewarn.core.basic_types import Action
from forewarn.core.errors import NotFound
from forewarn.store.batch import Transaction
from tests.helpers.database.statements import counted
from tests.helpers.database.stores import prepared_sqlite
from tests.helpers.service.boards import read_whole, sent_by
from tests.helpers.service.harness import TEST, Service, fleet, machine
from tests.helpers.service.served import Api, app_of
from tests.helpers.service.working import WorkerByHand

MACHINES, HOSTS = 800, 200


def prepare(url: str) -> None:
    service = Service(url)
    many = (machine(f"m-{number}", f"host-{number % HOSTS + 1}") for number in range(MACHINES))
    service.apply(fleet(*many, hosts=HOSTS))
    for number in range(5, 9):
        service.poll(f"m-{number}")
    service.advance(minutes=3)
    service.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    opened = Service(prepared_sqlite(tmp_path, "many machines", prepare))
    yield opened
    opened.close()


@pytest.fixture
def worker(service: Service, monkeypatch: pytest.MonkeyPatch) -> WorkerByHand:
    return WorkerByHand(service, monkeypatch)


def order(service: Service, worker: WorkerByHand) -> None:
    """Place an order with an idempotency key, as most callers do."""
    api = Api(app_of(service, worker=worker))
    answer = api("POST", "/v1/machines/m-5/redeploy", json={}, headers={"Idempotency-Key": "a-key"})
    assert answer.status_code == 202


def ordering(service: Service, name: str, action: Action) -> Callable[[Transaction], Placed]:
    return lambda tx: service.use_cases.orders.order_machine(tx, name, action, TEST)


def test_an_order_takes_20_statements_and_one_transaction(service: Service, worker: WorkerByHand) -> None:
    api = Api(app_of(service, worker=worker))
    api("GET", "/v1/machines/m-5")
    with counted(service.store) as asked:
        answer = api("POST", "/v1/machines/m-5/redeploy", json={}, headers={"Idempotency-Key": "a-key"})
    assert answer.status_code == 202
    assert len(asked) <= 20, asked.listed()
    assert (asked.writes, asked.undone) == (1, 0)
    assert asked.reads <= 1, asked.listed()


def test_an_approval_with_its_start_takes_35_statements_and_two_writes(
    service: Service, worker: WorkerByHand
) -> None:
    order(service, worker)
    guests, (event,), caller = service.use_cases.guests, service.events("m-5"), service.machine("m-5").id
    with counted(service.store) as asked:
        worker.do(lambda tx: guests.approve(tx, caller, [event.id], address="10.0.0.1"))
    assert service.events("m-5")[0].started_at is not None
    assert len(asked) <= 35, asked.listed()
    assert asked.writes <= 2, asked.listed()


def test_an_unknown_name_runs_no_spelling_search_on_the_worker(
    service: Service, worker: WorkerByHand
) -> None:
    with counted(service.store) as asked:
        (answer,) = worker.do(ordering(service, "m-5x", Action.RESTART))
        refused = answer.exception()
    assert (type(refused), str(refused)) == (NotFound, 'machine "m-5x" does not exist')
    assert not [text for text in asked.texts if "length(" in text], asked.listed()
    said = Api(app_of(service, worker=worker))("POST", "/v1/machines/m-5x/restart").json()
    assert said["error"]["message"] == 'machine "m-5x" does not exist; did you mean m-5?'


def test_waiting_orders_share_a_transaction_and_a_refused_one_is_rolled_back_alone(
    service: Service, worker: WorkerByHand
) -> None:
    names = ["m-6", "m-7", "no-such", "m-8"]
    with counted(service.store) as asked:
        answers = worker.do(*(ordering(service, name, Action.REDEPLOY) for name in names))
    assert [isinstance(answer.exception(0), NotFound) for answer in answers] == [False, False, True, False]
    assert (asked.writes, asked.undone) == (1, 0), asked.listed()
    assert sent_by(worker.board) == sent_by(read_whole(service.store, lineage=service.url))


def test_a_call_without_changes_writes_nothing(service: Service, worker: WorkerByHand) -> None:
    group = service.machine("m-5").group
    with counted(service.store) as asked:
        (answer,) = worker.do(lambda tx: service.use_cases.guests.enable(tx, group))
    assert answer.exception(0) is None
    assert not [text for text in asked.texts if not text.startswith("SELECT")], asked.listed()


def test_a_tick_without_due_work_runs_no_statement(service: Service) -> None:
    service.order("m-5", Action.RESTART)
    with counted(service.store) as asked:
        service.tick()
    assert (len(asked), asked.reads) == (0, 0), asked.listed()


def test_unnoticed_changes_are_read_after_the_next_presence_save(
    service: Service,
) -> None:
    service.tick()
    told, service.store.saved = service.store.saved, lambda _: None
    placed = service.order("m-5", Action.RESTART)
    service.store.saved = told
    service.clock.set(service.clock.now() + timedelta(minutes=20))
    service.tick()
    assert service.reload(placed).state == "announced"
    service.engine.save_presence(service.clock.now())
    service.tick()
    assert service.reload(placed).state == "started"


def test_a_host_of_a_rollout_takes_30_statements_and_less_than_one_write(service: Service) -> None:
    hosts = [f"host-{number}" for number in range(101, 141)]
    with counted(service.store) as asked:
        begun = service.roll(*hosts, hosts_at_once=20)
        service.advance(days=1)
    assert service.rollout(begun).state == "done"
    assert len(asked) / len(hosts) <= 30, asked.listed()[:4000]
    assert asked.writes / len(hosts) <= 1
