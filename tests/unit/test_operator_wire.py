"""What operators are shown: times, and what is null."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from forewarn.core.errors import Invalid
from forewarn.core.model.event import Event, Resource
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.record import Record
from forewarn.core.words import (
    Action,
    EventId,
    EventStatus,
    EventType,
    GroupKind,
    GroupName,
    Kind,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
    Source,
    Work,
)
from forewarn.wire.answers.coding import ANSWERS
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.fleet_answers import MachineAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.record_answers import RecordAnswer
from forewarn.wire.times import read_time, write_time

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ALONE = GroupName("standalone/9a1dd13f-2236-44f4-8626-0c374daa3f1b")


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (NOON, "2026-01-05T12:00:00Z"),
        (NOON + timedelta(milliseconds=250), "2026-01-05T12:00:00.25Z"),
        (NOON.astimezone(timezone(timedelta(hours=2))), "2026-01-05T12:00:00Z"),
    ],
)
def test_times_are_utc_with_no_more_digits_than_needed(moment: datetime, written: str) -> None:
    assert write_time(moment) == written
    assert read_time(written) == moment


@pytest.mark.parametrize("text", ["2026-01-05T14:00:00+02:00", "2026-01-05T14:00:00 02:00", "20260105T12Z"])
def test_times_are_read_with_any_offset_escaped_or_not(text: str) -> None:
    assert read_time(text) == NOON


@pytest.mark.parametrize("text", ["", "noon", "2026-01-05T12:00:00", "2026-13-05T12:00:00Z", "1767614400"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="expected a time such as"):
        read_time(text)


def test_what_is_not_known_of_a_standalone_machine_is_null() -> None:
    group = Group(name=ALONE, project=ProjectName("default"), kind=GroupKind.STANDALONE)
    machine = Machine(
        id=MachineId("9a1dd13f-2236-44f4-8626-0c374daa3f1b"),
        name=MachineName("db"),
        project=group.project,
        group=group.name,
        host=None,
    )
    shown = ANSWERS.write(MachineAnswer.of(machine, group, last_seen=None))
    nulls = {key for key, value in shown.items() if value is None}
    assert nulls == {"group", "host", "address", "port", "last_seen"}


def test_an_event_names_its_machines_in_order_and_hides_a_group_of_one() -> None:
    event = Event(
        id=EventId("602D9444-D2CD-49C7-8624-8643E7171297"),
        number=1,
        order=OrderId("A"),
        stage=0,
        group=ALONE,
        update_domain=0,
        type=EventType.REBOOT,
        status=EventStatus.STARTED,
        source=Source.USER,
        description="",
        duration_seconds=-1,
        resources=tuple(Resource(machine=MachineId(name), name=MachineName(name)) for name in ("b", "A")),
        announced_at=NOON,
        not_before=NOON + timedelta(minutes=15),
        started_at=NOON,
    )
    shown = ANSWERS.write(EventAnswer.of(event))
    assert (shown["resources"], shown["group"]) == (["A", "b"], None)
    assert (shown["not_before"], shown["ended_at"], shown["why"]) == ("2026-01-05T12:15:00Z", None, None)


def test_an_order_on_a_host_has_no_machine_and_no_project() -> None:
    order = Order(
        id=OrderId("A"),
        number=1,
        action=Action.MAINTENANCE,
        work=Work.FREEZE,
        source=Source.PLATFORM,
        project=None,
        machine=None,
        machine_name=None,
        host=None,
        by="operator",
        created_at=NOON,
    )
    shown = ANSWERS.write(OrderAnswer.of(order))
    assert (shown["machine"], shown["project"], shown["reason"]) == (None, None, None)
    assert (shown["waiting"], shown["stages"], shown["steps"]) == ([], [], [])


def test_a_record_says_nothing_of_what_it_is_not_about() -> None:
    shown = ANSWERS.write(RecordAnswer.of(Record(number=7, at=NOON, kind=Kind.CLOCK_JUMPED, group=ALONE)))
    assert {key: value for key, value in shown.items() if value is not None} == {
        "number": 7,
        "at": "2026-01-05T12:00:00Z",
        "kind": "clock-jumped",
    }
