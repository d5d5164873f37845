"""Fleets with an uncertain part: it is completed or repeated, and no other fleet comes between."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from forewarn.control.fleet import declarations
from forewarn.control.use_case import ExclusiveJob
from forewarn.core.basic_types import Kind
from forewarn.core.errors import RETRY_ADVICE, Conflict, Unavailable, Uncertain
from forewarn.store.batch import Batch, Transaction
from forewarn.store.store import Store
from forewarn.wire.fleet import write_fleet
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.lost_answers import lost_commit
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import Api, Worker, app_of

T = TypeVar("T")

MANY = 6
DECLARED = write_fleet(
    fleet(group("web"), *(machine(f"web-{n}", "host-1", group="web") for n in range(MANY)))
)


class LateWorker(Worker):
    """Delays one job, whose caller gets a timeout."""

    def __init__(self, service: Service, *, late: int) -> None:
        super().__init__(service)
        self._left = late
        self.late: Callable[[], object] = lambda: None

    async def __call__(self, job: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        self._left -= 1
        if self._left == 0:
            assert isinstance(job, ExclusiveJob)
            self.late = partial(job.work, self._service.transact)
            raise Uncertain(f"too slow; {RETRY_ADVICE}")
        return await super().__call__(job)


@pytest.fixture(params=["sqlite", "postgresql"])
def service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Service]:
    monkeypatch.setattr(declarations, "AT_ONCE", 2)
    sqlite = request.param == "sqlite"
    service = Service(sqlite_url(tmp_path) if sqlite else request.getfixturevalue("postgres_url"))
    yield service
    service.close()


def applied(service: Service) -> int:
    return sum(line.kind == Kind.FLEET_APPLIED for line in service.history())


@contextmanager
def one_being_saved(service: Service, act: Callable[[], object]) -> Iterator[None]:
    """Do something on another thread, and run the block before its commit."""
    reached, go_on = threading.Event(), threading.Event()
    whole = Store.batch

    @contextmanager
    def slowed(store: Store) -> Iterator[Batch]:
        with whole(store) as batch:
            yield batch
            reached.set()
            assert go_on.wait(30)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "batch", slowed)
        thread = threading.Thread(target=act)
        thread.start()
        assert reached.wait(30)
    try:
        yield
    finally:
        go_on.set()
        thread.join()


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("part", [0, 1, 4])
def test_a_fleet_with_an_uncertain_part_continues_when_it_is_sent_again(
    service: Service, saved: bool, part: int
) -> None:
    api = Api(app_of(service))
    service.tick()  # the first tick commits something else
    with lost_commit(saved=saved, after=part):
        answer = api("PUT", "/v1/fleet", json=DECLARED)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "Uncertain")
    assert service.fleet.declarations.apply_lock.in_doubt
    assert api("PUT", "/v1/fleet", json=DECLARED).status_code == 200
    assert not service.fleet.declarations.apply_lock.in_doubt
    assert len(service.everything().machines) == MANY
    assert applied(service) == 1
    assert api("PUT", "/v1/fleet", json=DECLARED).json()["changes"] == []


def test_a_part_that_begins_after_the_timeout_of_its_caller_is_not_saved(
    service: Service,
) -> None:
    worker = LateWorker(service, late=2)
    api = Api(app_of(service, worker=worker))
    assert api("PUT", "/v1/fleet", json=DECLARED).status_code == 503
    before = service.history()
    with pytest.raises(Unavailable, match="the caller has stopped waiting"):
        worker.late()
    assert service.history() == before
    assert api("PUT", "/v1/fleet", json=DECLARED).status_code == 200
    assert applied(service) == 1


def test_no_fleet_is_applied_while_an_abandoned_part_of_another_is_being_saved(
    service: Service,
) -> None:
    commands = service.fleet.declarations
    api = Api(app_of(service))
    spec = fleet(group("web"), machine("web-0", "host-1", group="web"))
    application = commands.application(commands.check(spec, by="test"), by="test")
    with application.awaited(), one_being_saved(service, partial(application.apply_next, service.transact)):
        answer = api("PUT", "/v1/fleet", json=DECLARED)
        assert answer.status_code == 409
        assert "another fleet is being applied" in answer.json()["error"]["message"]
        with pytest.raises(Conflict), commands.apply_lock.exclusive():
            pass
    assert api("PUT", "/v1/fleet", json=DECLARED).status_code == 200
    assert len(service.everything().machines) == MANY
