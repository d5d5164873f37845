"""Documents that tell less than is so."""

from datetime import UTC, datetime, timedelta
from typing import Any

from forewarn.rehearsal.scenario import Fault, FaultKind, Step
from forewarn.rehearsal.twist import Telling

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
QUARTER = "Mon, 05 Jan 2026 12:15:00 GMT"


def event(status: str = "Scheduled") -> dict[str, Any]:
    return {"EventId": "E1", "EventStatus": status, "NotBefore": QUARTER if status == "Scheduled" else ""}


def document(incarnation: int, *events: dict[str, Any]) -> dict[str, Any]:
    return {"DocumentIncarnation": incarnation, "Events": list(events)}


def fault(kind: FaultKind, **more: Any) -> Step:
    return Step(at=timedelta(), does=Fault(kind=kind, **more))


def test_without_faults_a_document_is_told_as_it_is() -> None:
    telling = Telling()
    assert telling.tell(document(4, event()), [], now=NOW) is None
    assert not telling.twisted


def test_a_vanished_event_moves_the_incarnation_and_so_does_its_return() -> None:
    telling, vanished = Telling(), fault(FaultKind.VANISHED)
    telling.tell(document(4, event()), [], now=NOW)
    assert telling.tell(document(4, event()), [vanished], now=NOW) == document(5)
    assert telling.tell(document(4, event()), [vanished], now=NOW) == document(5)
    assert telling.tell(document(4, event()), [], now=NOW) == document(6, event())


def test_an_event_born_started_is_not_shown_before() -> None:
    telling, born = Telling(), fault(FaultKind.BORN_STARTED)
    telling.tell(document(1), [born], now=NOW)
    assert telling.tell(document(2, event()), [born], now=NOW) == document(1)
    assert telling.tell(document(3, event("Started")), [born], now=NOW) == document(2, event("Started"))


def test_a_short_notice_is_shown_when_little_of_it_is_left() -> None:
    telling, short = Telling(), fault(FaultKind.SHORT_NOTICE, notice=timedelta(minutes=1))
    telling.tell(document(1), [short], now=NOW)
    assert telling.tell(document(2, event()), [short], now=NOW) == document(1)
    later = NOW + timedelta(minutes=14)
    assert telling.tell(document(2, event()), [short], now=later) == document(2, event())


def test_an_incarnation_restarts_once_and_goes_on_from_there() -> None:
    telling, restart = Telling(), fault(FaultKind.INCARNATION_RESTART)
    telling.tell(document(7), [], now=NOW)
    assert telling.tell(document(7), [restart], now=NOW) == document(1)
    assert telling.tell(document(7), [restart], now=NOW) == document(1)
    assert telling.tell(document(8, event()), [restart], now=NOW) == document(2, event())
