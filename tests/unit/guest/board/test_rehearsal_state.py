"""The state of a machine in a rehearsal: altered documents and counted faults."""

from datetime import timedelta
from typing import Any

from forewarn.core.basic_types import EventStatus, EventType
from forewarn.core.guests.document import GroupDocument
from forewarn.core.guests.document import document as document_of
from forewarn.core.model.event import Event
from forewarn.core.rehearsal_ledger import GuestLedger
from forewarn.core.rehearsal_rules import Fault, FaultKind
from forewarn.guest.board.rehearsal_state import RehearsalState, ShownDocuments
from tests.unit import documents

NOW = documents.NOT_BEFORE - timedelta(minutes=15)


def event(status: str = "Scheduled") -> Event:
    return documents.event(EventType.FREEZE, EventStatus(status))


def document(incarnation: int, *events: Event) -> GroupDocument:
    return document_of(documents.group(incarnation=incarnation), events)


def fault(kind: FaultKind, **more: Any) -> Fault:
    return Fault(kind=kind, **more)


def role(*faults: Fault) -> RehearsalState:
    playing = RehearsalState("web-0", GuestLedger())
    playing.faults = faults
    return playing


def test_a_fault_applies_to_its_number_of_calls_even_after_its_times_change() -> None:
    twice = fault(FaultKind.ERROR, calls=2, number=3)
    playing = role(twice)
    assert playing.take_faults(NOW) == [twice]
    timed = Fault(kind=FaultKind.ERROR, calls=2, number=3, since=NOW)
    playing.faults = (timed,)
    assert (playing.still(twice), playing.take_faults(NOW)) == (timed, [timed])
    assert not playing.has_fault(NOW)
    assert playing.take_faults(NOW) == []


def test_a_fault_applies_to_its_machines_during_its_time() -> None:
    later, end = NOW + timedelta(minutes=1), NOW + timedelta(minutes=2)
    mine = fault(FaultKind.HANG, since=later, until=end, machines=("web-0",), number=1)
    playing = role(mine, fault(FaultKind.HANG, machines=("web-1",), number=2))
    assert not playing.has_fault(NOW)
    assert playing.next_change(NOW) == later
    assert playing.take_faults(later) == [mine]
    assert playing.next_change(later) == end
    assert not playing.has_fault(end)
    assert playing.next_change(end) is None


def test_a_fault_describes_its_kind_and_its_machines() -> None:
    assert str(fault(FaultKind.HANG)) == "fault hang"
    assert str(fault(FaultKind.ERROR, machines=("web-0", "web-1"))) == "fault 500 for web-0, web-1"


def test_without_faults_the_document_is_unchanged() -> None:
    shown = ShownDocuments()
    assert shown.instead_of(document(4, event()), [], now=NOW) is None
    assert not shown.altered


def test_a_vanished_event_and_its_return_change_the_incarnation() -> None:
    shown, vanished = ShownDocuments(), fault(FaultKind.VANISHED)
    shown.instead_of(document(4, event()), [], now=NOW)
    assert shown.instead_of(document(4, event()), [vanished], now=NOW) == document(5)
    assert shown.instead_of(document(4, event()), [vanished], now=NOW) == document(5)
    assert shown.instead_of(document(4, event()), [], now=NOW) == document(6, event())


def test_an_event_born_started_is_hidden_while_scheduled() -> None:
    shown, born = ShownDocuments(), fault(FaultKind.BORN_STARTED)
    shown.instead_of(document(1), [born], now=NOW)
    assert shown.instead_of(document(2, event()), [born], now=NOW) == document(1)
    assert shown.instead_of(document(3, event("Started")), [born], now=NOW) == document(2, event("Started"))


def test_an_event_with_short_notice_is_hidden_until_little_is_left() -> None:
    shown, short = ShownDocuments(), fault(FaultKind.SHORT_NOTICE, notice=timedelta(minutes=1))
    shown.instead_of(document(1), [short], now=NOW)
    assert shown.instead_of(document(2, event()), [short], now=NOW) == document(1)
    later = NOW + timedelta(minutes=14)
    assert shown.instead_of(document(2, event()), [short], now=later) == document(2, event())


def test_an_incarnation_restarts_once_and_continues_from_there() -> None:
    shown, restart = ShownDocuments(), fault(FaultKind.INCARNATION_RESTART)
    shown.instead_of(document(7), [], now=NOW)
    assert shown.instead_of(document(7), [restart], now=NOW) == document(1)
    assert shown.instead_of(document(7), [restart], now=NOW) == document(1)
    assert shown.instead_of(document(8, event()), [restart], now=NOW) == document(2, event())
