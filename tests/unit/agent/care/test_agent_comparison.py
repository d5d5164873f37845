"""Comparing a document with the tracked events."""

from datetime import datetime, timedelta

import pytest

from forewarn.agent.care.comparison import (
    RESTART_SECONDS,
    DocumentDifference,
    Doubt,
    SeenDocuments,
    compare,
    held_by_another,
    seen,
)
from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Begun, Left, TakenUp
from forewarn.agent.journal.tracked_events import TrackedEvent, replay
from forewarn.core.basic_types import EventStatus
from forewarn.sdk.documents import Document, Event, UnreadableEvent
from tests.helpers.programs.agents import MACHINE, NOW, event, started


def knowing(*events: Event) -> dict[str, TrackedEvent]:
    return replay(TakenUp(event=each, at=NOW) for each in events)


def document(*events: Event, incarnation: int = 1) -> Document:
    return Document(incarnation=incarnation, events=events)


class Watch:
    """A sequence of documents and the tracked events."""

    def __init__(self, *known: Event, machine: str = MACHINE, settle: float = 5.0) -> None:
        self.tracked_events = knowing(*known)
        self.machine = machine
        self.settle = settle
        self.now = 100.0
        self.booted: datetime | None = None
        self.answers = True
        self._seen: SeenDocuments | None = None
        self._document = document()

    def see(self, shown: Document) -> DocumentDifference:
        self._document = shown
        self._seen = seen(self._seen, shown, self.tracked_events, machine=self.machine, now=self.now)
        return self.look()

    def look(self) -> DocumentDifference:
        """Compare the last document again."""
        assert self._seen is not None
        return compare(
            self.tracked_events,
            self._document,
            machine=self.machine,
            seen=self._seen,
            doubt=Doubt(settle=self.settle, booted=self.booted, answers=self.answers),
            now=self.now,
        )


def test_an_event_of_this_machine_is_new() -> None:
    assert Watch(machine="WEB-0").see(document(event())).take_up == (event(),)


def test_an_event_that_is_already_started_is_new() -> None:
    assert Watch().see(document(started())).take_up == (started(),)


def test_an_event_of_other_machines_is_ignored() -> None:
    assert not Watch().see(document(event(resources=("web-1",)))).take_up


def test_an_event_with_an_unknown_status_is_new_and_not_over() -> None:
    odd = event(status="Pondered")
    assert Watch().see(document(odd)).take_up == (odd,)
    difference = Watch(event()).see(document(odd))
    assert (difference.change, difference.leave, difference.doubted) == ((odd,), {}, {})


@pytest.mark.parametrize(("id_", "unread"), [("a", {"A"}), ("", {"A"}), ("B", set())])
def test_an_event_that_may_be_unreadable_is_not_over(id_: str, unread: set[str]) -> None:
    shown = Document(incarnation=2, unreadable=(UnreadableEvent(why="no time", id=id_),))
    difference = Watch(event()).see(shown)
    assert difference.unread == unread
    assert {*difference.leave, *difference.doubted} == {"A"} - unread


def test_the_same_document_changes_nothing() -> None:
    difference = Watch(event()).see(document(event()))
    assert (difference.take_up, difference.change, difference.leave) == ((), (), {})


def test_an_event_with_a_new_not_before_has_changed() -> None:
    moved = event(not_before=NOW + timedelta(hours=1))
    assert Watch(event()).see(document(moved)).change == (moved,)


def test_event_ids_are_case_insensitive() -> None:
    difference = Watch(event("aBc")).see(document(event("ABC")))
    assert not difference.take_up
    assert not difference.leave


def test_an_event_that_is_no_longer_listed_is_over() -> None:
    assert Watch(event(), settle=0).see(document()).leave == {"A": "it is no longer listed"}
    assert Watch(started(), settle=0).see(document()).leave == {"A": "it is over"}


@pytest.mark.parametrize("shown", [event(), started()])
def test_one_document_without_an_event_does_not_end_it(shown: Event) -> None:
    watch = Watch(shown)
    missing = watch.see(document(incarnation=2))
    assert (missing.leave, missing.look_again_in) == ({}, 5.0)
    back = watch.see(document(shown, incarnation=3))
    assert (back.leave, back.look_again_in) == ({}, None)
    # Afterwards, the count begins again.
    assert not watch.see(document(incarnation=4)).leave


def test_two_documents_without_an_event_end_it() -> None:
    watch = Watch(event())
    watch.see(document(incarnation=2))
    assert watch.see(document(event("B"), incarnation=3)).leave == {"A": "it is no longer listed"}


def test_an_event_missing_for_the_settle_time_is_over() -> None:
    watch = Watch(event())
    watch.see(document())
    watch.now += 4.0
    assert watch.look().look_again_in == 1.0
    watch.now += 1.0
    assert watch.look().leave == {"A": "it is no longer listed"}


def test_a_silent_endpoint_ends_no_event() -> None:
    watch = Watch(event())
    watch.see(document())
    watch.now, watch.answers = watch.now + 60.0, False
    assert (watch.look().leave, watch.look().look_again_in) == ({}, 5.0)


def test_an_event_that_no_longer_names_this_machine_is_over_at_once() -> None:
    left = Watch(event()).see(document(event(resources=("web-1",)))).leave
    assert left == {"A": "it no longer names web-0"}


def test_an_event_is_over_at_once_after_the_machines_restart() -> None:
    watch = Watch(event())
    watch.booted = NOW + timedelta(minutes=1)
    assert watch.see(document()).leave == {"A": "it is no longer listed"}


def test_an_event_in_recovery_is_left_alone() -> None:
    watch = Watch()
    watch.tracked_events = replay([TakenUp(event=event(), at=NOW), Left(event="A", at=NOW, why="")])
    for shown in (document(), document(event()), document(started())):
        difference = watch.see(shown)
        assert (difference.take_up, difference.change, difference.leave) == ((), (), {})
        assert not difference.doubted


def test_a_restarted_incarnation_does_not_end_events() -> None:
    watch = Watch(event())
    watch.see(document(event(), incarnation=7))
    assert watch.see(document(incarnation=1)).look_again_in == RESTART_SECONDS
    # Not even after several documents.
    assert not watch.see(document(event("B"), incarnation=2)).leave


def test_an_event_still_missing_after_a_while_is_over() -> None:
    watch = Watch(event())
    watch.see(document(event(), incarnation=7))
    watch.see(document(incarnation=1))
    watch.now += RESTART_SECONDS
    assert watch.look().leave == {"A": "it is no longer listed"}


def test_a_new_event_after_a_restart_of_the_endpoint_is_seen_at_once() -> None:
    watch = Watch(event())
    watch.see(document(event(), incarnation=7))
    difference = watch.see(document(event("B"), incarnation=1))
    assert difference.take_up == (event("B"),)
    assert not difference.leave


def test_a_preparation_that_another_event_needs_is_left_to_it() -> None:
    begun = Begun(event="B", side=Side.PREPARE, handler="drain", attempt=1, at=NOW)
    taken = [TakenUp(event=event(each), at=NOW) for each in "AB"]
    assert held_by_another(replay(taken), "A", "drain") is None
    assert held_by_another(replay([*taken, begun]), "A", "drain") == "B"
    assert held_by_another(replay([*taken, begun]), "A", "stop") is None
    over = Left(event="B", at=NOW, why="")
    assert held_by_another(replay([*taken, begun, over]), "A", "drain") is None


def test_an_approval_is_in_the_journal() -> None:
    tracked_events = replay([TakenUp(event=event(), at=NOW), Approved(event="a", at=NOW)])
    assert tracked_events["A"].approved == NOW
    assert tracked_events["A"].event.status == EventStatus.SCHEDULED
