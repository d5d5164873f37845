"""Rehearsals with failed or uncertain commits: guests see only committed changes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from forewarn.control.rehearsals.open_rehearsals import OpenRehearsals, Rehearsal
from forewarn.core.basic_types import Action, OrderState, ProjectName
from forewarn.core.errors import Conflict, NotFound, Unavailable, Uncertain
from forewarn.core.rehearsal_rules import Fault, FaultKind, SavedRehearsal
from forewarn.store.opening import database
from forewarn.store.snapshots import Snapshot
from forewarn.store.store import Store, open_store
from forewarn.wire.fleet import read_fleet
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import holding
from tests.helpers.programs.lost_answers import lost_commit
from tests.helpers.service.harness import Service

LAB = ProjectName("lab")
FLEET = {
    "projects": {"lab": {"rehearsal": True}},
    "defaults": {"driver": "simulated"},
    "hosts": {"own": {}},
    "machines": [{"name": "lab-0", "project": "lab", "host": "own"}],
}
CALM = Rehearsal(id="1", scenario="mine", machines=("lab-0",))
SPOILED = Rehearsal(
    id="1", scenario="mine", machines=("lab-0",), faults=(Fault(number=1, kind=FaultKind.UNAVAILABLE),)
)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0)
    service = Service(sqlite_url(tmp_path))
    service.apply(read_fleet(FLEET))
    service.restart()  # from then on, the endpoint knows the machines
    service.poll("lab-0")
    yield service
    service.close()


def play(service: Service, wanted: Rehearsal = SPOILED) -> Rehearsal:
    return service.rehearsals.play(LAB, wanted, by="lea").rehearsal


def shown(service: Service) -> Rehearsal:
    return service.within(None).rehearsals_seen.show(LAB).rehearsal


def is_spoiled(service: Service) -> bool:
    """Return whether the guest of the machine meets a fault."""
    member = service.board.members[service.machine("lab-0").id]
    return member.rehearsal is not None and member.rehearsal.has_fault(service.clock.now())


def recorded_kinds(service: Service) -> list[str]:
    return [each.kind for each in service.history() if each.kind.startswith("rehearsal")]


def while_locked(service: Service, act: Callable[[], object]) -> None:
    """Do something while nothing can be saved."""
    other = open_store(service.url, new_id=service.ids)
    with holding(other), pytest.raises(Unavailable):
        act()
    other.close()


def test_no_guest_meets_a_rehearsal_that_could_not_be_saved(service: Service) -> None:
    while_locked(service, lambda: play(service))
    with pytest.raises(NotFound):
        shown(service)
    assert not is_spoiled(service)


def test_no_guest_meets_faults_that_could_not_be_saved(service: Service) -> None:
    play(service, CALM)
    while_locked(service, lambda: play(service))
    assert shown(service) == CALM
    assert not is_spoiled(service)


def test_a_renewal_that_could_not_be_saved_does_not_count(service: Service) -> None:
    play(service)
    service.real += 29
    while_locked(service, lambda: play(service))
    service.real += 2
    service.tick()
    with pytest.raises(NotFound):
        shown(service)


def test_a_rehearsal_whose_end_could_not_be_saved_continues_and_can_be_ended(
    service: Service,
) -> None:
    play(service)
    order = service.order("lab-0", Action.FREEZE)
    while_locked(service, lambda: service.rehearsals.end(LAB, by="lea"))
    assert shown(service) == play(service) == SPOILED
    assert is_spoiled(service)
    assert service.reload(order).state is OrderState.ANNOUNCED
    service.rehearsals.end(LAB, by="lea")
    assert not is_spoiled(service)


@pytest.mark.parametrize("saved", [True, False])
def test_an_uncertain_beginning_is_begun_once(service: Service, saved: bool) -> None:
    with lost_commit(saved=saved), pytest.raises(Uncertain):
        play(service)
    assert play(service) == SPOILED
    assert is_spoiled(service)
    assert recorded_kinds(service).count("rehearsal-begun") == 1


def test_an_uncertain_beginning_that_is_not_renewed_ends_automatically(
    service: Service,
) -> None:
    with lost_commit(saved=True), pytest.raises(Uncertain):
        play(service)
    service.tick()
    assert shown(service) == CALM
    service.real += 31
    service.tick()
    assert recorded_kinds(service)[-1] == "rehearsal-ended"


@pytest.mark.parametrize("saved", [True, False])
def test_an_uncertain_end_counts_if_it_was_saved(service: Service, saved: bool) -> None:
    play(service)
    with lost_commit(saved=saved), pytest.raises(Uncertain):
        service.rehearsals.end(LAB, by="lea")
    service.tick()
    assert is_spoiled(service) is not saved
    assert recorded_kinds(service).count("rehearsal-ended") == saved
    if saved:
        with pytest.raises(Conflict, match="lea has ended"):
            play(service)
    else:
        assert play(service) == SPOILED


def test_an_uncertain_automatic_end_is_recorded_once(service: Service) -> None:
    play(service)
    service.real += 31
    with lost_commit(saved=True), pytest.raises(Uncertain):
        service.tick()
    service.tick()
    assert recorded_kinds(service).count("rehearsal-ended") == 1


def test_a_saved_rehearsal_is_answered_even_if_the_store_fails_after_the_commit(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, renew = Store.read, OpenRehearsals.renew
    is_saved = False

    def renew_and_fail_later(self: OpenRehearsals, saved: SavedRehearsal) -> None:
        nonlocal is_saved
        renew(self, saved)
        is_saved = True

    def fail(self: Store) -> AbstractContextManager[Snapshot]:
        if is_saved:
            raise Unavailable("the database does not answer")
        return read(self)

    monkeypatch.setattr(OpenRehearsals, "renew", renew_and_fail_later)
    monkeypatch.setattr(Store, "read", fail)
    assert play(service) == SPOILED
    assert is_saved
