"""Documents of every version, StartRequests, and error bodies."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.basic_types import EventStatus, EventType, GroupName
from forewarn.core.errors import Invalid
from forewarn.core.guests.document import document, entity_tag, resource_names, tag
from forewarn.wire import azure
from tests import ROOT
from tests.unit.documents import GOLDEN, NOT_BEFORE, event, files, group

SAMPLES = sorted((ROOT / "tests/unit/samples").glob("*.json"))
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7170001"


@pytest.mark.parametrize(("name", "content"), [pytest.param(*case, id=case[0]) for case in files()])
def test_a_document_is_the_golden_file_byte_for_byte(name: str, content: bytes) -> None:
    assert content == (GOLDEN / name).read_bytes()


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in GOLDEN.glob("*.json")} == {name for name, _ in files()}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_document_has_the_shape_of_a_real_response(path: Path) -> None:
    real = json.loads(path.read_bytes())
    version = azure.VERSIONS[azure.VERSION_INDEX[path.name[:10]]]
    shown = [event(EventType(each["EventType"]), EventStatus(each["EventStatus"])) for each in real["Events"]]
    ours = json.loads(azure.write_document(document(group(), shown), version))
    assert list(ours) == list(real)
    assert type(ours["DocumentIncarnation"]) is type(real["DocumentIncarnation"])
    for our_event, real_event in zip(ours["Events"], real["Events"], strict=True):
        assert list(our_event) == list(real_event)
        assert [type(value) for value in our_event.values()] == [type(value) for value in real_event.values()]
        assert (our_event["NotBefore"] == "") == (real_event["NotBefore"] == "")
        assert our_event["Resources"][0].startswith("_") == real_event["Resources"][0].startswith("_")


@pytest.mark.parametrize(
    ("version", "visible"),
    [
        ("2017-03-01", ["Freeze", "Reboot", "Redeploy"]),
        ("2017-08-01", ["Freeze", "Reboot", "Redeploy"]),
        ("2017-11-01", ["Freeze", "Reboot", "Redeploy", "Preempt"]),
        ("2019-01-01", ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]),
        ("2019-04-01", ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]),
        ("2019-08-01", ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]),
        ("2020-07-01", ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]),
        (
            "2024-07-09",
            ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "SpotRebalanceRecommendation"],
        ),
    ],
)
def test_a_version_leaves_out_the_types_it_does_not_know(version: str, visible: list[str]) -> None:
    told = json.loads((GOLDEN / f"{version}-one-of-each.json").read_bytes())
    assert [each["EventType"] for each in told["Events"]] == visible
    assert told["DocumentIncarnation"] == 7


def test_the_example_of_the_contract_is_written_as_it_stands_there() -> None:
    shown = event(EventType.REBOOT, names=("web-0",))
    told = azure.write_document(document(group(), (shown,)), azure.VERSIONS[-1])
    assert told.decode() == (
        '{"DocumentIncarnation":7,"Events":[{"EventId":"602D9444-D2CD-49C7-8624-8643E7170001",'
        '"EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine",'
        '"Resources":["web-0"],"NotBefore":"Mon, 19 Sep 2016 18:29:47 GMT",'
        '"Description":"Virtual machine is going to be restarted as requested by authorized user.",'
        '"EventSource":"User","DurationInSeconds":-1}]}'
    )


def test_events_come_in_the_order_of_their_creation() -> None:
    events = [event(EventType.FREEZE, number=number) for number in (3, 1, 2)]
    assert [each.number for each in document(group(), events).events] == [1, 2, 3]


def test_an_event_that_is_over_is_not_in_the_document() -> None:
    over = replace(event(EventType.FREEZE), ended_at=NOT_BEFORE)
    assert document(group(), (over,)).events == ()


def test_resources_come_by_name_without_regard_to_case() -> None:
    names = ("b", "C", "a", "B", "A")
    assert resource_names(event(EventType.FREEZE, names=names)) == ("A", "a", "B", "b", "C")


def test_the_tag_differs_between_groups_and_between_stores() -> None:
    web, db = GroupName("web"), GroupName("db")
    tags = {
        tag(web, born=1, lineage="one"),
        tag(db, born=1, lineage="one"),
        tag(web, born=2, lineage="one"),
        tag(web, born=1, lineage="two"),
    }
    assert len(tags) == 4
    assert entity_tag(7, "abc") == "7-abc"


def test_a_date_is_in_gmt_whatever_zone_it_is_given_in() -> None:
    moment = datetime(2026, 1, 1, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    assert azure.http_date(moment) == "Wed, 31 Dec 2025 23:02:03 GMT"
    assert azure.http_date(datetime(2024, 2, 5, tzinfo=UTC)) == "Mon, 05 Feb 2024 00:00:00 GMT"


def test_error_texts_are_those_of_the_contract() -> None:
    assert azure.NO_HEADER == b'{ "error": "Bad request: . Required metadata header not specified" }'
    assert azure.VERSION_UNKNOWN == b'{ "error": "Not found. Invalid version requested" }'
    assert azure.NOT_FOUND == b'{ "error": "Not found" }'
    assert azure.VERSION_INVALID[False] == (
        b'{"error":"Bad request. api-version is invalid or was not specified in the request. '
        b'For more information refer to aka.ms/azureimds",'
        b'"newest-versions":["2020-07-01","2019-08-01","2019-04-01"]}'
    )
    assert azure.VERSION_LIST[False] == (
        b'{"apiVersions":["2017-03-01","2017-08-01","2017-11-01","2019-01-01",'
        b'"2019-04-01","2019-08-01","2020-07-01"]}'
    )


def test_a_preview_is_among_the_versions_only_where_it_is_offered() -> None:
    assert azure.VERSION_INVALID[True].endswith(b'["2024-07-09","2020-07-01","2019-08-01"]}')
    assert azure.VERSION_LIST[True].endswith(b'"2020-07-01","2024-07-09"]}')
    assert [version.name for version in azure.VERSIONS if version.preview] == ["2024-07-09"]


@pytest.mark.parametrize("text", ["2020-07-01", "1999-12-31", "2024-02-29"])
def test_a_date_is_a_version_date(text: str) -> None:
    assert azure.is_version_date(text)


@pytest.mark.parametrize(
    "text",
    ["", "latest", "2020-7-1", "20200701", "2020-13-01", "2023-02-29", "2020-07-01 ", "2020-07-01-preview",
     "\u0662020-07-01", "2020/07/01", "+020-07-01", "2020-W27-3"],
)  # fmt: skip
def test_other_texts_are_not_version_dates(text: str) -> None:
    assert not azure.is_version_date(text)


def body(*ids: object, **more: object) -> bytes:
    return json.dumps({"StartRequests": [{"EventId": each} for each in ids], **more}).encode()


def test_ids_are_read_in_upper_case_and_each_once() -> None:
    other = EVENT_ID.replace("0001", "0002")
    assert azure.read_start_requests(body(EVENT_ID.lower(), other, EVENT_ID)) == (EVENT_ID, other)


@pytest.mark.parametrize("incarnation", [7, "7", None, 7.5])
def test_an_incarnation_beside_the_requests_is_ignored(incarnation: object) -> None:
    assert azure.read_start_requests(body(EVENT_ID, DocumentIncarnation=incarnation)) == (EVENT_ID,)


def test_a_byte_order_mark_is_tolerated() -> None:
    assert azure.read_start_requests(b"\xef\xbb\xbf" + body(EVENT_ID)) == (EVENT_ID,)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "the body is empty"),
        (b" \r\n", "the body is empty"),
        (b"\xff\xfe{", "the body is not UTF-8"),
        (b"StartRequests=1", "the body is not JSON"),
        (b'{"StartRequests":[{"EventId":NaN}]}', "the body is not JSON"),
        (b'{"DocumentIncarnation":' + b"9" * 5000 + b"}", "the body is not JSON"),
        (b"[" * 65536, "the body is nested too deeply"),
        (b'{"a":' * 10000, "the body is nested too deeply"),
        (b"[]", "the body must be a JSON object, not a list"),
        (b"null", "the body must be a JSON object, not null"),
        (b"{}", "StartRequests is missing"),
        (b'{"StartRequests":{}}', "StartRequests must be a list, not an object"),
        (b'{"StartRequests":true}', "StartRequests must be a list, not a boolean"),
        (b'{"StartRequests":[]}', "StartRequests is empty"),
        (b'{"StartRequests":["x"]}', "StartRequests[0] must be an object, not a string"),
        (b'{"StartRequests":[{}]}', "StartRequests[0].EventId is missing"),
        (body(7), "StartRequests[0].EventId must be a string, not a number"),
        (body(False), "StartRequests[0].EventId must be a string, not a boolean"),
        (body(EVENT_ID, "x"), "StartRequests[1].EventId is not a GUID"),
        (body(EVENT_ID[:-1] + "\0"), "StartRequests[0].EventId is not a GUID"),
        (body(EVENT_ID + "-"), "StartRequests[0].EventId is not a GUID"),
    ],
)  # fmt: skip
def test_a_faulty_body_is_refused_by_the_name_of_its_fault(content: bytes, fault: str) -> None:
    with pytest.raises(Invalid) as refused:
        azure.read_start_requests(content)
    assert str(refused.value) == fault


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(Invalid):
        assert azure.read_start_requests(content)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["StartRequests", "EventId", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values)
def test_any_json_is_read_or_refused(value: object) -> None:
    with suppress(Invalid):
        assert azure.read_start_requests(json.dumps(value).encode())


def test_the_newest_version_shows_events_of_every_type() -> None:
    assert azure.VERSIONS[-1].types == frozenset(EventType)
