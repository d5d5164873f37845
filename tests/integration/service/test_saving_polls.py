"""Polls are saved in chunks, and no group counts as silent meanwhile."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from forewarn.control import unsaved_activity
from forewarn.core.errors import Unavailable
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine

NAMES = ("alone-0", "alone-1", "alone-2")


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Return a service that saves the polls of one group and one machine at a time."""
    monkeypatch.setattr(unsaved_activity, "AT_ONCE", 1)
    service = Service(sqlite_url(tmp_path))
    service.apply(fleet(group("web"), *(machine(name, "host-1") for name in NAMES)))
    service.tick()
    yield service
    service.close()


def saved(service: Service) -> dict[str, datetime]:
    machines = service.everything().machines
    with service.store.read() as snapshot:
        return {machines[id_].name: at for id_, at in snapshot.fleet.last_seen(list(machines)).items()}


def shown(service: Service, name: str) -> datetime | None:
    return service.views.machine(name).last_seen


def poll_all(service: Service) -> datetime:
    """Poll as all guests, and wait until that is saved."""
    for name in NAMES:
        service.poll(name)
    return service.clock.now() + service.policy.save_activity_every


def test_a_tick_saves_a_chunk_and_the_next_ones_the_others(service: Service) -> None:
    due = poll_all(service)
    assert service.engine.next_due(service.clock.now()) == due
    assert service.engine.tick(due)
    assert len(saved(service)) == 1
    assert service.engine.next_due(due) == due
    assert service.engine.tick(due)
    assert not service.engine.tick(due)
    assert saved(service) == dict.fromkeys(NAMES, service.clock.now())


def test_unsaved_polls_are_shown(service: Service) -> None:
    polled, due = service.clock.now(), poll_all(service)
    assert [shown(service, name) for name in NAMES] == [polled] * 3
    service.engine.tick(due)
    assert [shown(service, name) for name in NAMES] == [polled] * 3
    service.clock.set(due)
    service.poll("alone-2")
    assert shown(service, "alone-2") == due


def test_no_group_is_silent_before_all_polls_are_saved(service: Service) -> None:
    poll_all(service)
    service.engine.save_all(service.clock.now())
    service.clock.set(service.clock.now() + service.policy.idle_after)
    due = poll_all(service) + timedelta(seconds=1)
    for _ in NAMES:
        service.engine.tick(due)
        assert all(service.views.machine(name).group.enabled for name in NAMES)
    assert set(saved(service).values()) == {service.clock.now()}


def test_polls_that_cannot_be_saved_are_saved_later(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Unavailable("the disk is full")

    due = poll_all(service)
    with monkeypatch.context() as broken:
        broken.setattr(service.store, "save_activity", refuse)
        with pytest.raises(Unavailable):
            service.engine.tick(due)
    assert saved(service) == {}
    service.engine.save_all(due)
    assert sorted(saved(service)) == list(NAMES)
