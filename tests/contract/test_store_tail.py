"""Records of every store, in order."""

import pytest

from forewarn.core.basic_types import MachineName, ProjectName
from forewarn.core.filters import Following, RecordFilter
from forewarn.core.model.record import Record
from forewarn.core.scope import Scope
from forewarn.store.store import Store
from tests.contract.samples import event, group, record, save

RECORDS = (
    record(1, kind="order-placed", project=ProjectName("a")),
    record(2, kind="event-scheduled", project=ProjectName("a"), machine=MachineName("Web-0")),
    record(3, kind="order-placed", project=ProjectName("b")),
    record(4, kind="webhook-failing"),
)


def following(store: Store, number: int, limit: int = 10, **wanted: object) -> Following:
    with store.read() as snapshot:
        return snapshot.records.following(number, RecordFilter(**wanted), limit=limit)  # type: ignore[arg-type]


def numbers(records: tuple[Record, ...]) -> list[int]:
    return [record.number for record in records]


def test_records_follow_oldest_first(store: Store) -> None:
    save(store, records=RECORDS)
    assert following(store, 1) == Following(records=RECORDS[1:], number=4, more=False)
    assert following(store, 4) == Following(records=(), number=4, more=False)


def test_a_full_page_has_the_number_to_continue_from(store: Store) -> None:
    save(store, records=RECORDS)
    first = following(store, 0, limit=3)
    assert (numbers(first.records), first.number, first.more) == ([1, 2, 3], 3, True)
    rest = following(store, first.number, limit=3)
    assert (numbers(rest.records), rest.number, rest.more) == ([4], 4, False)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"project": "a"}, [1, 2]),
        ({"machine": "WEB-0"}, [2]),
        ({"kinds": frozenset({"order-placed"})}, [1, 3]),
        ({"without": frozenset({"order-placed", "webhook-failing"})}, [2]),
        ({"project": "nobody"}, []),
    ],
)
def test_a_filter_excludes_other_records(
    store: Store, wanted: dict[str, object], expected: list[int]
) -> None:
    save(store, records=RECORDS)
    found = following(store, 0, **wanted)
    assert numbers(found.records) == expected
    assert found.number == 4
    with store.read() as snapshot:
        assert snapshot.records.count_following(0, RecordFilter(**wanted)) == len(expected)  # type: ignore[arg-type]


def test_the_newest_number_counts_changes_without_a_record(store: Store) -> None:
    save(store, records=RECORDS)
    number = save(store, groups=(group(),))
    with store.read() as snapshot:
        assert snapshot.records.newest() == number == 5
    assert following(store, 4).number == 5


def test_listed_events_are_those_of_the_groups_of_a_project(store: Store) -> None:
    other = group("other", project=ProjectName("b"))
    here, there = event(1), event(2, group=other.name)
    save(store, groups=(group(), other), events=(here, there))
    with store.read() as snapshot:
        assert snapshot.work.listed_events() == [here, there]
    for project, listed in (("b", [there]), ("c", [])):
        with store.scoped(Scope(caller=ProjectName(project))).read() as snapshot:
            assert snapshot.work.listed_events() == listed


def test_a_project_follows_its_own_records(store: Store) -> None:
    mine = record(2, project=ProjectName("b"))
    save(store, records=(record(1, project=ProjectName("a")), mine, record(3)))
    with store.scoped(Scope(caller=ProjectName("b"))).read() as snapshot:
        found = snapshot.records.following(0, RecordFilter(), limit=10)
        assert (found.records, found.number) == ((mine,), 3)
        assert snapshot.records.count_following(0, RecordFilter()) == 1
        assert snapshot.records.count_following(0, RecordFilter(project=ProjectName("a"))) == 0
