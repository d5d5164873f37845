"""The iCalendar feed, compared with a golden file."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core.basic_types import (
    ApprovedBy,
    EventId,
    EventStatus,
    EventType,
    GroupName,
    MachineId,
    MachineName,
    OrderId,
    Source,
)
from forewarn.core.model.event import Approval, Event, Resource
from forewarn.wire.icalendar import LONGEST_LINE, calendar, escaped, folded
from tests import ROOT

GOLDEN = ROOT / "tests/unit/golden" / "calendar.ics"
NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def event(number: int, *names: str, **more: object) -> Event:
    plain = Event(
        id=EventId(f"602D9444-D2CD-49C7-8624-{number:012X}"),
        number=number,
        order=OrderId("AAAAAAAA-0000-4000-8000-000000000001"),
        stage=0,
        group=GroupName("web"),
        update_domain=0,
        type=EventType.REBOOT,
        status=EventStatus.SCHEDULED,
        source=Source.PLATFORM,
        description="Host server is undergoing maintenance.",
        duration_seconds=-1,
        resources=tuple(Resource(machine=MachineId(name), name=MachineName(name)) for name in names),
        announced_at=NOON,
        not_before=NOON + timedelta(minutes=15),
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def test_a_calendar_has_an_entry_for_each_event() -> None:
    approval = Approval(by="web-0", kind=ApprovedBy.GUEST, at=NOON)
    events = [
        event(1, "web-0", description="Kernel 6.1; reboot, then check\\verify.\nThank you."),
        event(2, *(f"wörker-{n}" for n in range(12)), type=EventType.FREEZE, duration_seconds=9),
        event(3, "db", approvals=(approval,), type=EventType.REDEPLOY, source=Source.USER),
        event(
            4,
            "spot-0",
            type=EventType.PREEMPT,
            status=EventStatus.STARTED,
            started_at=NOON + timedelta(minutes=1, microseconds=5),
        ),
    ]
    assert calendar("forewarn: default", [(each, ()) for each in events]) == GOLDEN.read_bytes()


def revision(written: bytes) -> tuple[str, ...]:
    """The lines that tell a calendar about a changed entry."""
    lines = (line.partition(":") for line in written.decode().split("\r\n"))
    values = {name: value for name, _, value in lines}
    return tuple(values[name] for name in ("SEQUENCE", "DTSTAMP", "LAST-MODIFIED", "DTSTART"))


def test_a_deferred_event_moves_in_calendars() -> None:
    once, twice = NOON + timedelta(minutes=3), NOON + timedelta(minutes=5)
    later = event(1, "web-0", not_before=NOON + timedelta(minutes=40))
    moved = calendar("x", [(later, (once, twice))])
    assert revision(moved) == ("2", "20260105T120500Z", "20260105T120500Z", "20260105T124000Z")
    began = NOON + timedelta(minutes=41)
    started = replace(later, status=EventStatus.STARTED, started_at=began)
    begun = calendar("x", [(started, (once, twice))])
    assert revision(begun) == ("3", "20260105T124100Z", "20260105T124100Z", "20260105T124100Z")


def test_long_lines_are_folded_without_loss() -> None:
    written = calendar("x" * 400, [(event(1, *(f"wörker-{n}" for n in range(90))), ())])
    lines = written.split(b"\r\n")
    assert max(map(len, lines)) <= LONGEST_LINE
    unfolded = written.replace(b"\r\n ", b"").decode()
    assert "SUMMARY:Reboot of wörker-0\\, wörker-1\\, " in unfolded
    assert unfolded.count("wörker-") == 90


@pytest.mark.parametrize("length", [74, 75, 76, 150, 151])
def test_folded_lines_unfold_to_the_original(length: int) -> None:
    line = "é" * (length // 2) + "x" * (length % 2)
    assert folded(line).replace(b"\r\n ", b"").decode() == line


def test_separators_are_escaped() -> None:
    assert escaped("a,b;c\\d\ne") == "a\\,b\\;c\\\\d\\ne"
