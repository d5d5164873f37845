"""Answers of the operator API: keys, times, nulls, and reading them back."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.basic_types import (
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
    Priority,
    ProjectName,
    Source,
    Work,
)
from forewarn.core.errors import Invalid
from forewarn.core.model.event import Event, Resource
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.record import Record
from forewarn.core.rehearsal_rules import Fault, FaultKind
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.coding import ANSWER_CODEC, read_body, read_page, write_body, write_json
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.fleet_answers import MachineAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.record_answers import RecordAnswer
from forewarn.wire.answers.rehearsal_answers import FaultAnswer
from forewarn.wire.texts import read_time, write_time

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
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="expected a time such as"):
        read_time(text)


def test_unknown_fields_of_a_standalone_machine_are_null() -> None:
    group = Group(name=ALONE, project=ProjectName("default"), kind=GroupKind.STANDALONE)
    machine = Machine(
        id=MachineId("9a1dd13f-2236-44f4-8626-0c374daa3f1b"),
        name=MachineName("db"),
        project=group.project,
        group=group.name,
        host=None,
    )
    shown = ANSWER_CODEC.write(MachineAnswer.of(machine, group, last_seen=None))
    nulls = {key for key, value in shown.items() if value is None}
    assert nulls == {"group", "host", "bound_for", "address", "mac", "port", "last_seen"}


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
    shown = ANSWER_CODEC.write(EventAnswer.of(event))
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
    shown = ANSWER_CODEC.write(OrderAnswer.of(order))
    assert (shown["machine"], shown["project"], shown["reason"]) == (None, None, None)
    assert (shown["waiting"], shown["stages"], shown["steps"]) == ([], [], [])


def test_unrelated_fields_of_a_record_are_null() -> None:
    shown = ANSWER_CODEC.write(
        RecordAnswer.of(Record(number=7, at=NOON, kind=Kind.CLOCK_JUMPED, group=ALONE))
    )
    assert {key: value for key, value in shown.items() if value is not None} == {
        "number": 7,
        "at": "2026-01-05T12:00:00Z",
        "kind": "clock-jumped",
        "topics": ["events", "orders", "rollouts", "clock"],
    }


MACHINE = {
    "vm_id": "9a1dd13f-2236-44f4-8626-0c374daa3f1b",
    "name": "web-0",
    "project": "default",
    "group": "web",
    "host": "host-1",
    "update_domain": 2,
    "fault_domain": 1,
    "priority": "spot",
    "state": "running",
    "network": "",
    "address": "10.0.0.7",
    "mac": None,
    "port": None,
    "tags": {"tier": "front"},
    "location": "",
    "zone": "",
    "size": "",
    "os": "",
    "mobility": "cold",
    "resources": {},
    "labels": {},
    "enabled": True,
    "last_seen": "2026-01-05T12:00:00.25Z",
    "source": "declared",
    "bound_for": None,
}


def test_an_answer_is_read_and_written_with_its_keys_in_their_order() -> None:
    machine = read_body(MachineAnswer, {"machine": MACHINE})
    assert (machine.priority, machine.last_seen) == (Priority.SPOT, NOON + timedelta(milliseconds=250))
    assert json.dumps(write_body(machine)) == json.dumps({"machine": MACHINE})


def test_a_page_has_a_list_named_after_its_items_and_a_cursor() -> None:
    body = {"machines": [MACHINE], "next": "abc"}
    page = read_page(MachineAnswer, body)
    assert [machine.name for machine in page.items] == ["web-0"]
    assert write_body(page) == body
    assert write_body(Page(kind=MachineAnswer, items=[])) == {"machines": [], "next": None}


def test_keys_and_values_of_a_later_version_are_accepted() -> None:
    later = MACHINE | {"colour": "red", "state": "dreaming"}
    assert read_body(MachineAnswer, {"machine": later}).state == "dreaming"


def test_an_answer_that_lacks_a_key_is_refused() -> None:
    lacking = {key: value for key, value in MACHINE.items() if key != "enabled"}
    with pytest.raises(KeyError):
        read_body(MachineAnswer, {"machine": lacking})


def test_an_answer_is_built_from_attributes_with_spans_in_seconds() -> None:
    fault = Fault(kind=FaultKind.SLOW, delay=timedelta(minutes=2), notice=timedelta(seconds=1.5))
    made = FaultAnswer.of(fault, now=NOON)
    assert (made.delay_seconds, made.notice_seconds, made.on) == (120.0, 1.5, True)
    with pytest.raises(AttributeError):
        RecordAnswer.like(fault)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(body=st.dictionaries(st.text(), JSON_VALUES))
def test_a_body_encoded_item_by_item_equals_one_encoded_at_once(body: dict[str, Any]) -> None:
    assert write_json(body) == json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
