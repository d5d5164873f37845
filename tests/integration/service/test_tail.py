"""The newest records in memory equal those in the store."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.control.board_feed import BoardFeed
from forewarn.control.followed_records import FollowedRecords, RecentRecords
from forewarn.control.token_use_cases import Tokens
from forewarn.core.access import Grant, Role
from forewarn.core.basic_types import DEFAULT_PROJECT, Action, Kind, MachineName, ProjectName
from forewarn.core.filters import RecordFilter
from forewarn.core.model.project import Project
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.store.store import open_store
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.service.harness import Service
from tests.helpers.service.racing import at_once
from tests.helpers.service.served import sample

FILTERS = [
    RecordFilter(),
    RecordFilter(project=ProjectName("default")),
    RecordFilter(kinds=frozenset({"order-placed", "step-begun"})),
    RecordFilter(without=frozenset({"order-placed"})),
]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


def work(service: Service) -> None:
    service.order("web-0", Action.FREEZE)
    service.advance(hours=1)


@pytest.mark.parametrize("wanted", FILTERS)
def test_memory_and_store_agree(service: Service, wanted: RecordFilter) -> None:
    with service.records.listening(lambda: None):
        service.recent.catch_up()
        first = service.records.newest()
        work(service)
        service.recent.catch_up()
        for number in range(first, service.records.newest() + 1):
            assert service.records.recent(number, wanted) == service.records.page(number, wanted, limit=1000)


def test_only_the_store_has_older_records_and_those_of_one_machine(service: Service) -> None:
    with service.records.listening(lambda: None):
        service.recent.catch_up()
        newest = service.records.newest()
        assert service.records.recent(newest, RecordFilter()) is not None
        assert service.records.recent(newest - 1, RecordFilter()) is None
        assert service.records.recent(newest, RecordFilter(machine=MachineName("web-0"))) is None


def test_the_number_of_records_in_memory_is_limited(service: Service) -> None:
    recent = RecentRecords(service.store, kept=8)
    tail = FollowedRecords(service.context, EVERYTHING, recent=recent)
    with tail.listening(lambda: None):
        recent.catch_up()
        first = tail.newest()
        for _ in range(3):
            service.host_order("host-1", Action.CORDON)
            service.host_order("host-1", Action.UNCORDON)
            recent.catch_up()
        newest = tail.newest()
        assert tail.recent(first, RecordFilter()) is None
        kept = tail.recent(newest - 2, RecordFilter())
        assert kept == tail.page(newest - 2, RecordFilter(), limit=1000)


def test_no_records_are_kept_without_followers(service: Service) -> None:
    with service.records.listening(lambda: None):
        service.recent.catch_up()
    service.recent.catch_up()
    assert service.records.recent(service.records.newest(), RecordFilter()) is None


def test_followers_get_records_of_another_process_without_a_change_of_this_one(service: Service) -> None:
    feed = BoardFeed(service.store, lambda _: None, recent=service.recent, number=service.records.newest())
    other = open_store(service.url, new_id=lambda: "X", without_migration=True)
    tokens = Tokens(replace(service.context, store=other), new_secret=lambda: "s" * 43)
    with service.records.listening(lambda: None):
        service.recent.catch_up()
        before = service.records.newest()
        with writing(other) as tx:
            tokens.create(tx, Grant(name="olga", role=Role.OPERATOR), by="a command")
        other.close()
        feed.read_up_to(service.engine.save_presence(service.clock.now()))
        feed.catch_up()
        found = service.records.recent(before, RecordFilter())
    assert found is not None
    assert [record.kind for record in found.records] == [Kind.TOKEN_CREATED]


def declare(service: Service, *, sees_hosts: bool) -> None:
    service.apply(replace(sample(), projects=(Project(name=DEFAULT_PROJECT, sees_hosts=sees_hosts),)))
    service.recent.catch_up()


def test_a_reader_with_an_old_snapshot_discloses_no_newer_record(
    service: Service,
) -> None:
    people = FollowedRecords(service.context, Scope(caller=DEFAULT_PROJECT), recent=service.recent)
    with people.listening(lambda: None):
        declare(service, sees_hosts=True)
        with service.store.read() as before:
            number = before.records.newest()
            declare(service, sees_hosts=False)  # while the reader uses its snapshot
            newest = service.records.newest()
            service.order("web-0", Action.REDEPLOY)
            service.advance(hours=1)
            service.recent.catch_up()
            service.recent.disclose(before.fleet, DEFAULT_PROJECT, up_to=number)
        assert people.recent(newest, RecordFilter()) is None  # none is disclosed yet
        page = people.page(newest, RecordFilter(), limit=1000)
        assert people.recent(newest, RecordFilter()) == page
        assert any(record.host for record in service.history())
        assert not any(record.host for record in page.records)


def test_a_follower_misses_no_record_during_saves_and_redactions(service: Service) -> None:
    scope = Scope(caller=DEFAULT_PROJECT)
    people = FollowedRecords(service.context, scope, recent=service.recent)
    with people.listening(lambda: None):
        service.recent.catch_up()
        first = people.newest()
        over = threading.Event()

        def save() -> None:
            for _ in range(5):
                work(service)
                service.recent.catch_up()
            over.set()

        def follow() -> list[int]:
            numbers, reached, last = list[int](), first, False
            while not last:
                last = over.is_set()
                found = people.recent(reached, RecordFilter())
                if found is None:
                    found = people.page(reached, RecordFilter(), limit=3)
                numbers += [record.number for record in found.records]
                last = last and not found.more and found.number == people.newest()
                reached = found.number
            return numbers

        _, *followed = at_once([save, follow, follow])
        expected = [record.number for record in people.page(first, RecordFilter(), limit=10_000).records]
    assert followed == [expected, expected]
