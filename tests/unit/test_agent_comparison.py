"""What an agent makes of a document, given what it knew."""

from datetime import timedelta

from forewarn.agent.care.comparison import SETTLING_SECONDS, SeenIncarnation, compare, held_by_another, seen
from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Begun, Left, TakenUp
from forewarn.agent.journal.tracked_events import TrackedEvent, replay
from forewarn.core.words import EventStatus
from forewarn.sdk.documents import Document, Event
from tests.agents import MACHINE, NOW, event, started


def knowing(*events: Event) -> dict[str, TrackedEvent]:
    return replay(TakenUp(event=each, at=NOW) for each in events)


def document(*events: Event, incarnation: int = 1) -> Document:
    return Document(incarnation=incarnation, events=events)


def test_an_event_of_this_machine_is_taken_up() -> None:
    difference = compare({}, document(event()), machine="WEB-0")
    assert difference.take_up == (event(),)


def test_an_event_that_comes_without_warning_is_taken_up() -> None:
    assert compare({}, document(started()), machine=MACHINE).take_up == (started(),)


def test_an_event_of_others_is_not() -> None:
    difference = compare({}, document(event(resources=("web-1",))), machine=MACHINE)
    assert not difference.take_up


def test_an_event_in_a_state_that_nobody_knows_is_not() -> None:
    assert not compare({}, document(event(status="Pondered")), machine=MACHINE).take_up


def test_the_same_document_asks_for_nothing() -> None:
    difference = compare(knowing(event()), document(event()), machine=MACHINE)
    assert (difference.take_up, difference.change, difference.leave) == ((), (), {})


def test_an_event_that_moves_is_followed() -> None:
    moved = event(not_before=NOW + timedelta(hours=1))
    assert compare(knowing(event()), document(moved), machine=MACHINE).change == (moved,)


def test_an_id_is_the_same_in_any_case() -> None:
    difference = compare(knowing(event("aBc")), document(event("ABC")), machine=MACHINE)
    assert not difference.take_up
    assert not difference.leave


def test_what_is_no_longer_listed_is_left() -> None:
    assert compare(knowing(event()), document(), machine=MACHINE).leave == {"A": "it is no longer listed"}
    assert compare(knowing(started()), document(), machine=MACHINE).leave == {"A": "it is over"}


def test_an_event_that_no_longer_names_this_machine_is_left() -> None:
    left = compare(knowing(event()), document(event(resources=("web-1",))), machine=MACHINE).leave
    assert left == {"A": "web-0 is no longer named in it"}


def test_what_is_being_left_is_left_alone() -> None:
    tracked_events = replay([TakenUp(event=event(), at=NOW), Left(event="A", at=NOW, why="")])
    for shown in (document(), document(event()), document(started())):
        difference = compare(tracked_events, shown, machine=MACHINE)
        assert (difference.take_up, difference.change, difference.leave) == ((), (), {})


def test_a_restarted_incarnation_does_not_mean_that_all_is_over() -> None:
    before = seen(SeenIncarnation(incarnation=7), document(incarnation=1), now=100.0)
    doubt = before.doubted_for(100.0)
    difference = compare(knowing(event()), document(), machine=MACHINE, doubted_for=doubt)
    assert (difference.leave, difference.look_again_in) == ({}, SETTLING_SECONDS)


def test_what_is_still_missing_after_a_while_is_over() -> None:
    before = seen(SeenIncarnation(incarnation=7), document(incarnation=1), now=100.0)
    assert before.doubted_for(100.0 + SETTLING_SECONDS) == 0.0


def test_what_is_new_after_a_restart_is_taken_up_at_once() -> None:
    difference = compare(knowing(event()), document(event("B")), machine=MACHINE, doubted_for=9.0)
    assert difference.take_up == (event("B"),)
    assert not difference.leave


def test_incarnations_that_grow_are_not_doubted() -> None:
    first = seen(None, document(incarnation=5), now=1.0)
    assert seen(first, document(incarnation=6), now=2.0).doubted_for(2.0) == 0.0


def test_what_another_event_still_needs_is_left_to_it() -> None:
    begun = Begun(event="B", side=Side.PREPARE, handler="drain", attempt=1, at=NOW)
    taken = [TakenUp(event=event(each), at=NOW) for each in "AB"]
    assert held_by_another(replay(taken), "A", "drain") is None
    assert held_by_another(replay([*taken, begun]), "A", "drain") == "B"
    assert held_by_another(replay([*taken, begun]), "A", "stop") is None
    over = Left(event="B", at=NOW, why="")
    assert held_by_another(replay([*taken, begun, over]), "A", "drain") is None


def test_an_approval_is_remembered() -> None:
    tracked_events = replay([TakenUp(event=event(), at=NOW), Approved(event="a", at=NOW)])
    assert tracked_events["A"].approved == NOW
    assert tracked_events["A"].event.status == EventStatus.SCHEDULED
