"""Parsing documents of every version and of every server."""

import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.basic_types import EventStatus, EventType, Source
from forewarn.sdk.documents import Document, Event, parse_document, parse_moment
from forewarn.sdk.guest_errors import Unreadable
from tests import ROOT
from tests.unit.documents import GOLDEN

SAMPLES = ROOT / "tests/unit/samples"
ID = "CA9C0DC4-1B7E-4D0A-9C3F-5E2B8A7D6F10"
MOMENT = datetime(2016, 9, 19, 18, 29, 47, tzinfo=UTC)


def sample(name: str) -> Document:
    return parse_document((SAMPLES / f"{name}.json").read_bytes(), version=name[:10])


def document(**changes: Any) -> bytes:
    """Return a document with one event; changes replace members, and None removes them."""
    said = {
        "EventId": ID,
        "EventStatus": "Scheduled",
        "EventType": "Reboot",
        "ResourceType": "VirtualMachine",
        "Resources": ["web-0"],
        "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
        "Description": "",
        "EventSource": "User",
        "DurationInSeconds": -1,
    } | changes
    event = {name: value for name, value in said.items() if value is not None}
    return json.dumps({"DocumentIncarnation": 7, "Events": [event]}).encode()


def only(body: bytes, **more: Any) -> Event:
    (event,) = parse_document(body, **more).events
    return event


def test_a_document_of_the_newest_version_is_parsed() -> None:
    assert sample("2020-07-01-reboot-user-scheduled") == Document(
        incarnation=2,
        events=(
            Event(
                id="CA9C0DC4-1B7E-4D0A-9C3F-5E2B8A7D6F10",
                type=EventType.REBOOT,
                status=EventStatus.SCHEDULED,
                resources=("longevity-db-eastus-2",),
                not_before=datetime(2023, 3, 16, 14, 1, 28, tzinfo=UTC),
                description="Virtual machine is going to be restarted as requested by authorized user.",
                source=Source.USER,
                duration=None,
            ),
        ),
    )


def test_a_started_event_has_no_not_before() -> None:
    (event,) = sample("2020-07-01-freeze-started").events
    assert event.started
    assert event.not_before is None
    assert event.duration == timedelta(seconds=6)


def test_the_underscore_of_the_first_version_is_removed() -> None:
    (event,) = sample("2017-03-01-redeploy-scheduled").events
    assert event.resources == ("mysrv",)
    assert (event.description, event.source, event.duration) == ("", "", None)


@pytest.mark.parametrize(
    ("name", "type_", "machine"),
    [
        ("2017-08-01-freeze-scheduled", "Freeze", "app-vm-3"),
        ("2017-11-01-preempt-scheduled", "Preempt", "pool_12"),
        ("2019-01-01-terminate-scheduled", "Terminate", "web-vmss_7"),
        ("2019-04-01-reboot-user-empty-description", "Reboot", "flatcar-vm1"),
        ("2019-08-01-preempt-empty-description", "Preempt", "myspotvm"),
    ],
)
def test_recorded_answers_of_real_services_are_parsed(name: str, type_: str, machine: str) -> None:
    (event,) = sample(name).events
    assert (event.type, event.status) == (type_, "Scheduled")
    assert event.names(machine.upper())
    assert event.not_before is not None


def test_an_empty_document_may_have_incarnation_zero() -> None:
    assert sample("2017-08-01-empty") == Document(incarnation=0, events=())


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_every_document_of_forewarn_is_parsed(path: Path) -> None:
    version = path.name[:10]
    said = json.loads(path.read_bytes())
    read = parse_document(path.read_bytes(), version=version)
    assert read.incarnation == said["DocumentIncarnation"]
    assert [event.id for event in read.events] == [event["EventId"] for event in said["Events"]]
    assert not any(name.startswith("_") for event in read.events for name in event.resources)
    assert all((event.not_before is None) == event.started for event in read.events)


@pytest.mark.parametrize(
    "written",
    [
        "Mon, 19 Sep 2016 18:29:47 GMT",
        "2016-09-19T18:29:47Z",
        "2016-09-19T18:29:47",
        "2016-09-19T18:29:47.0000000Z",
        "2016-09-19T20:29:47+02:00",
        "Mon, 19 Sep 2016 18:29:47 +0000",
        " Mon, 19 Sep 2016 18:29:47 GMT ",
    ],
)
def test_both_date_formats_are_parsed(written: str) -> None:
    assert only(document(NotBefore=written)).not_before == MOMENT


@pytest.mark.parametrize("nothing", ["", None])
def test_not_before_may_be_missing(nothing: str | None) -> None:
    event = only(document(NotBefore=nothing))
    assert event.not_before is None
    assert event.seconds_left(MOMENT) is None


def test_enum_words_match_in_any_case_and_unknown_ones_stay_strings() -> None:
    event = only(document(EventType="REBOOT", EventStatus="scheduled", EventSource="Weather"))
    assert event.type is EventType.REBOOT
    assert event.status is EventStatus.SCHEDULED
    assert event.source == "Weather"
    assert only(document(EventType="Defragment")).type == "Defragment"


def test_keys_match_in_any_case_and_unknown_ones_are_ignored() -> None:
    body = b'\xef\xbb\xbf{"documentIncarnation":"3","events":[],"Weather":{}}\n'
    assert parse_document(body) == Document(incarnation=3, events=())


@pytest.mark.parametrize("seconds", [-1, None, "soon", 10**30, True])
def test_an_invalid_duration_is_none(seconds: object) -> None:
    assert only(document(DurationInSeconds=seconds)).duration is None


@pytest.mark.parametrize("seconds", [9, 9.0, "9"])
def test_a_duration_may_be_a_number_or_a_string(seconds: object) -> None:
    assert only(document(DurationInSeconds=seconds)).duration == timedelta(seconds=9)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "an empty answer"),
        (b" \r\n", "an empty answer"),
        (b"<html>Sign in</html>", "not JSON: <html>Sign in"),
        (b"[]", "not a JSON object"),
        (b'{"DocumentIncarnation":1}', "without Events"),
        (b'{"DocumentIncarnation":1,"Events":{}}', "not a list"),
        (b'{"DocumentIncarnation":"new","Events":[]}', "not a number"),
        (b'{"Events":[]}', "not a number"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_an_unreadable_document_has_a_reason(body: bytes, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        parse_document(body)


@pytest.mark.parametrize(
    ("odd", "says", "id_"),
    [
        (7, "not a JSON object", ""),
        ({}, "without EventId", ""),
        ({"EventId": 7}, "eventid is 7, not a string", ""),
        ({"EventId": "B", "NotBefore": "tomorrow"}, "NotBefore is 'tomorrow'", "B"),
        ({"EventId": "B", "NotBefore": 7}, "NotBefore is 7", "B"),
        ({"EventId": "B", "Resources": [1]}, "not a list of names", "B"),
        ({"EventId": "B", "EventType": ["Reboot"]}, "not a string", "B"),
        ({"EventId": "B", "Description": "a \ud800"}, "description is .* lone surrogate", "B"),
        ({"EventId": "B", "Resources": ["web-\udfff"]}, "Resources is .* lone surrogate", "B"),
    ],
)
def test_an_unreadable_event_does_not_hide_others(odd: object, says: str, id_: str) -> None:
    sound = json.loads(document())["Events"][0]
    body = json.dumps({"DocumentIncarnation": 4, "Events": [odd, sound]}).encode()
    read = parse_document(body)
    assert [each.id for each in read.events] == [ID]
    (unreadable,) = read.unreadable
    assert re.search(says, unreadable.why)
    assert unreadable.id == id_


def test_an_unknown_status_has_no_seconds_left() -> None:
    event = only(document(EventStatus="Pondered"))
    assert (event.status, event.status_is_known, event.started) == ("Pondered", False, False)
    assert event.not_before is not None
    assert event.seconds_left(MOMENT) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = json.loads(document())["Events"][0]
events = st.dictionaries(st.sampled_from(sorted(KEYS)), json_values | st.sampled_from([ID, "Started"]))


@given(st.binary())
def test_random_bytes_are_unreadable(body: bytes) -> None:
    read_or_refuse(body)


@given(
    st.builds(
        lambda number, events: {"DocumentIncarnation": number, "Events": events}, json_values, json_values
    )
)
def test_a_wrong_structure_is_unreadable(shape: object) -> None:
    read_or_refuse(json.dumps(shape).encode())


@given(st.lists(events, min_size=1))
def test_wrong_events_are_unreadable_one_by_one(wrong: list[dict[str, object]]) -> None:
    read_or_refuse(json.dumps({"DocumentIncarnation": 1, "Events": wrong}).encode())


def read_or_refuse(body: bytes) -> None:
    try:
        read = parse_document(body)
    except Unreadable:
        return
    assert isinstance(read, Document)
    # Every event is in one of the two lists.
    assert len(read.events) + len(read.unreadable) == len(json.loads(body)["Events"])


@given(
    st.text()
    | st.from_regex(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{1,6} \d+:\d+:\d+ ([A-Z]{3}|[+-]\d{1,6})")
)
def test_any_text_parses_to_utc_or_none(text: str) -> None:
    moment = parse_moment(text)
    assert moment is None or moment.utcoffset() == timedelta(0)


@given(st.datetimes(min_value=datetime(2016, 1, 1), max_value=datetime(9999, 1, 1)))  # noqa: DTZ001 - made aware below
def test_both_time_formats_agree(naive: datetime) -> None:
    moment = naive.replace(microsecond=0, tzinfo=UTC)
    written = format_datetime(moment, usegmt=True)
    assert parse_moment(written) == parse_moment(moment.isoformat()) == moment


def test_seconds_left_are_never_negative() -> None:
    event = only(document())
    assert event.seconds_left(MOMENT - timedelta(minutes=15)) == 900
    assert event.seconds_left(MOMENT + timedelta(minutes=1)) == 0
    assert only(document(EventStatus="Started")).seconds_left(MOMENT - timedelta(days=1)) == 0


def test_events_are_found_by_id_and_by_machine_in_any_case() -> None:
    read = parse_document(document())
    assert read.event(ID.lower()) == read.events[0]
    assert read.event("another") is None
    assert read.naming("WEB-0") == read.events
    assert read.naming("web-1") == ()
