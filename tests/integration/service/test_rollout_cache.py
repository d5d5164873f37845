"""The cache of rollouts always equals what the store would return."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from forewarn.control.rollouts.rollout_cache import RolloutCache
from forewarn.core.admission.work_durations import MEMORY
from forewarn.core.basic_types import Action, HostName, Mobility, Priority
from forewarn.core.model.slice import HostSurvey
from forewarn.store.queries.rollouts import RolloutQueries
from forewarn.store.saved import Saved
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import writing
from tests.helpers.service.harness import Service, fleet, group, machine

EMPTY = HostName("host-4")
HOSTS = (*(HostName(f"host-{number}") for number in range(1, 4)), EMPTY)


def evicted(service: Service) -> None:
    service.order("spot", Action.EVICT)
    service.advance(hours=1)


def moved(service: Service) -> None:
    service.order("web-1", Action.REDEPLOY)
    service.advance(hours=1)


def saved_by_another_process(service: Service) -> None:
    """Move a machine without notifying the listeners of this process."""
    following, service.store.saved = service.store.saved, lambda _: None
    moved(service)
    service.store.saved = following
    service.put("alone", tags={"seen": "since"})  # the next change that listeners get


CHANGES: dict[str, Callable[[Service], object]] = {
    "a machine comes": lambda service: service.put("new", host="host-3"),
    "a machine comes to an empty host": lambda service: service.put("new", host=EMPTY),
    "a machine goes": lambda service: service.delete("web-0"),
    "the last machine of a host goes": lambda service: service.delete("alone"),
    "a machine is declared to be elsewhere": lambda service: service.put("web-1", host=EMPTY),
    "a machine changes its group": lambda service: service.put("spot", group="web", update_domain=1),
    "a machine can leave in another way": lambda service: service.put("web-1", mobility=Mobility.LIVE),
    "a machine declares its memory": lambda service: service.put("web-1", resources={MEMORY: 4.0}),
    "a machine is evicted": evicted,
    "a machine is moved": moved,
    "another process has saved something": saved_by_another_process,
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with closing(Service(sqlite_url(tmp_path))) as service:
        service.apply(
            fleet(
                *(group("web"), machine("web-0", "host-1", group="web")),
                *(machine("web-1", "host-2", group="web", domain=1), machine("alone", "host-3")),
                machine("spot", "host-1", priority=Priority.SPOT),
                hosts=len(HOSTS),
            )
        )
        yield service


@pytest.fixture
def cache(service: Service) -> RolloutCache:
    """Return a cache that follows the service, and knows all hosts."""
    cache, engine = RolloutCache(), service.engine

    def note(saved: Saved) -> None:
        engine.note(saved)
        cache.note(saved)

    service.store.saved = note
    service.put("alone", tags={"seen": "first"})
    surveyed(service, cache)
    return cache


def surveyed(service: Service, cache: RolloutCache) -> HostSurvey:
    with writing(service.store) as tx:
        return cache.survey(tx, HOSTS)


def read_again(service: Service) -> HostSurvey:
    with service.store.read() as snapshot:
        return snapshot.rollouts.survey(HOSTS)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_after_a_change_the_cache_equals_the_store(
    service: Service, cache: RolloutCache, change: Callable[[Service], object]
) -> None:
    before = read_again(service)
    change(service)
    assert surveyed(service, cache) == read_again(service) != before


def test_known_footprints_are_not_computed_again(
    service: Service, cache: RolloutCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Sequence[HostName]] = []
    count = RolloutQueries.footprints

    def counting(reads: RolloutQueries, hosts: Sequence[HostName]) -> object:
        counted.append(hosts)
        return count(reads, hosts)

    monkeypatch.setattr(RolloutQueries, "footprints", counting)
    surveyed(service, cache)
    service.put("web-1", tags={"changed": "yes"})
    surveyed(service, cache)
    assert counted == [[], ["host-2"]]


def test_values_saved_by_the_same_transaction_are_read(service: Service, cache: RolloutCache) -> None:
    with writing(service.store) as tx:
        service.put("web-1", host=EMPTY)
        survey = cache.survey(tx, HOSTS)
        assert survey == tx.rollouts.survey(HOSTS)
        assert survey.footprint(EMPTY).counts


def test_orders_are_read_again_when_a_commit_is_uncertain(service: Service, cache: RolloutCache) -> None:
    rollout = service.roll("host-1")
    (order,) = rollout.begun[-1].orders
    with writing(service.store) as tx:
        known = cache.of_last_wave(tx, rollout)[order]
    following, service.store.saved = service.store.saved, lambda _: None
    service.orders.cancel_order(order, by="test")
    service.store.saved = following
    following(None)
    with writing(service.store) as tx:
        assert cache.of_last_wave(tx, rollout)[order] != known
