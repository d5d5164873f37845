"""Approvals, and how the first request of a guest enables its group."""

import json
import socket
from datetime import timedelta

import pytest

from forewarn.clock import ScaledClock
from forewarn.core.basic_types import EventType
from forewarn.core.errors import Conflict, Invalid, Unavailable
from tests.integration.guest.guest_face import (
    EVENTS,
    START,
    Client,
    Face,
    event,
    group,
    machine,
    request,
    serving,
)

FREEZE = event(EventType.FREEZE)
POST = ("POST", EVENTS, "Metadata: true")
GET = request("GET", EVENTS, "Metadata: true")
WEB = "id-of-web-0"


def body(*ids: str) -> bytes:
    return json.dumps({"StartRequests": [{"EventId": each} for each in ids]}).encode()


# Approving


def test_an_approval_has_an_empty_answer_after_it_is_saved() -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        answer = client.request(*POST, body=body(FREEZE.id.lower()))
        assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "0")
        assert face.desk.approved == [(WEB, (FREEZE.id,), "127.0.0.1")]


@pytest.mark.parametrize(
    "header", ["Content-Type: application/json", "Content-Type: text/plain", "If-None-Match: *", "X: y",
               "Content-Type: application/x-www-form-urlencoded"]
)  # fmt: skip
def test_an_approval_is_parsed_as_json_whatever_its_content_type(header: str) -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        assert client.request(*POST, header, body=body(FREEZE.id)).status == 200


def test_a_client_may_poll_with_one_version_and_approve_with_another() -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        assert client.get("/metadata/scheduledevents?api-version=2019-08-01").status == 200
        old = "/metadata/scheduledevents?api-version=2017-03-01"
        assert client.request("POST", old, body=body(FREEZE.id)).status == 200


def test_several_events_may_be_approved_at_once_and_repeatedly() -> None:
    reboot = event(EventType.REBOOT, number=2)
    with serving() as face, face.connect() as client:
        face.show(FREEZE, reboot)
        for _ in range(2):
            assert client.request(*POST, body=body(FREEZE.id, reboot.id)).status == 200


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b"[" * 65536, b'{"StartRequests":[{"EventId":true}]}'])
def test_an_invalid_approval_names_its_error_and_changes_nothing(content: bytes) -> None:
    with serving() as face, face.connect() as client:
        answer = client.request(*POST, body=content)
        assert answer.status == 400
        assert json.loads(answer.body)["error"].startswith("Bad request. ")
        assert face.desk.approved == []


def test_an_unknown_event_id_is_refused() -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        answer = client.request(*POST, body=body(FREEZE.id, FREEZE.id.replace("0001", "0009")))
        assert answer.status == 400
        assert face.desk.approved == []


def test_an_invalid_command_is_refused() -> None:
    with serving() as face, face.connect() as client:
        face.desk.failure = Invalid("that is wrong")
        answer = client.request(*POST, body=body(FREEZE.id))
        assert (answer.status, json.loads(answer.body)) == (400, {"error": "Bad request. that is wrong"})


@pytest.mark.parametrize(
    "failure", [Unavailable("/srv/fleet.db is full"), Conflict("/srv/fleet.db is locked")]
)
def test_an_approval_that_cannot_be_saved_is_answered_with_a_retry(failure: Exception) -> None:
    with serving() as face, face.connect() as client:
        face.desk.failure = failure
        answer = client.request(*POST, body=body(FREEZE.id))
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert b"fleet.db" not in answer.body
        assert client.get().status == 200


def test_an_internal_error_is_logged_and_answered() -> None:
    with serving() as face, face.connect() as client:
        face.desk.failure = RuntimeError("a bug")
        answer = client.request(*POST, body=body(FREEZE.id))
        assert (answer.status, json.loads(answer.body)) == (500, {"error": "Internal error"})
        assert client.get().status == 200
        assert face.faults == ["a guest's request failed"]
        face.faults.clear()


def test_later_answers_on_a_connection_wait_for_an_approval() -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        post = request(*POST, body=body(FREEZE.id))
        client.send(post + request("GET", EVENTS, "Metadata: true") + post)
        assert [len(client.read().body) > 0 for _ in range(3)] == [False, True, False]


def test_an_unknown_caller_approves_nothing() -> None:
    with serving() as face, face.connect("127.0.0.99") as client:
        face.show(FREEZE)
        assert client.request(*POST, body=body(FREEZE.id)).status == 404
        assert face.desk.approved == []


# Enabling


OFF = group(enabled=False)


def test_only_the_first_poll_enables_the_group() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client:
        assert [client.get().status for _ in range(3)] == [200] * 3
        assert face.desk.enabled == ["web"]


def test_the_first_approval_enables_the_group_even_if_it_is_invalid() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client:
        assert client.request(*POST, body=b"{}").status == 400
        assert face.desk.enabled == ["web"]


@pytest.mark.parametrize(
    "target", ["/metadata/instance?api-version=2021-02-01", "/metadata/versions", "/nowhere"]
)
def test_no_other_request_enables_the_group(target: str) -> None:
    with serving(groups=(OFF,)) as face:
        face.get(target)
        face.get("/metadata/scheduledevents?api-version=latest")
        assert face.desk.enabled == []


def test_concurrent_polls_enable_the_group_once() -> None:
    machines = [machine(f"web-{n}", address=f"127.0.0.{n + 1}") for n in range(5)]
    with serving(*machines, groups=(OFF,)) as face:
        clients = [face.connect(f"127.0.0.{n + 1}") for n in range(5)]
        for client in clients:
            client.send(request("GET", EVENTS, "Metadata: true"))
        assert {client.read().status for client in clients} == {200}
        assert face.desk.enabled == ["web"]
        for client in clients:
            client.socket.close()


def test_a_poll_whose_group_cannot_be_enabled_is_answered_with_a_retry() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client:
        face.desk.failure = Unavailable("/srv/fleet.db is full")
        answer = client.get()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert b"fleet.db" not in answer.body
        face.desk.failure = None
        assert client.get().status == 200


def test_the_next_poll_enables_a_disabled_group_again() -> None:
    with serving() as face, face.connect() as client:
        assert client.get().status == 200
        face.desk.groups[OFF.name] = OFF
        face.run(face.server.apply([face.desk.delta(OFF.name)]))
        assert client.get().status == 200
        assert face.desk.enabled == ["web"]


def first(face: Face, client: Client, *, method: str = "GET", content: bytes = b"") -> None:
    """Send the first request of a group that takes two minutes to be ready."""
    face.desk.delay = timedelta(minutes=2)
    client.send(request(method, EVENTS, "Metadata: true", body=content))
    face.waiting(1)


def test_the_first_poll_is_answered_when_the_group_is_ready() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client:
        first(face, client)
        face.clock.set(START + timedelta(seconds=119))
        face.do(face.server.time_moved)
        face.waiting(1)
        face.clock.set(START + timedelta(seconds=120))
        face.do(face.server.time_moved)
        assert client.read().status == 200


def test_the_first_approval_is_answered_when_the_group_is_ready() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client:
        face.desk.events[OFF.name] = (FREEZE,)
        first(face, client, method="POST", content=body(FREEZE.id))
        assert face.desk.approved == []
        face.clock.set(START + timedelta(seconds=120))
        face.do(face.server.time_moved)
        assert client.read().status == 200
        assert len(face.desk.approved) == 1


def test_other_polls_also_wait_until_the_group_is_ready() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client, face.connect() as other:
        first(face, client)
        other.send(request("GET", EVENTS, "Metadata: true"))
        face.waiting(2)
        face.clock.set(START + timedelta(seconds=120))
        face.do(face.server.time_moved)
        assert (client.read().status, other.read().status) == (200, 200)


def test_a_running_clock_makes_the_group_ready() -> None:
    clock = ScaledClock(2400)
    clock.allow(clock.now() + timedelta(days=1))
    with serving(groups=(OFF,), clock=clock) as face:
        face.desk.delay = timedelta(minutes=2)
        assert face.get().status == 200
        assert face.desk.enabled == ["web"]


def test_a_stop_answers_callers_whose_group_is_not_ready() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client:
        first(face, client)
        face.run(face.server.stop())
        assert client.read().status == 503
        assert client.is_closed()


def test_a_client_that_disconnects_before_its_group_is_ready_is_released() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client:
        first(face, client)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.read().status == 503
        face.waiting(0)


# Activity


def test_only_polls_and_approvals_count_as_activity() -> None:
    with serving(groups=(OFF,)) as face, face.connect() as client:
        client.get("/metadata/instance?api-version=2021-02-01")
        assert face.take() == ({}, {})
        for data in (GET, GET, request(*POST, body=b"{}")):
            face.clock.set(face.clock.now() + timedelta(seconds=1))
            client.send(data)
            client.read()
            now = face.clock.now()
            assert face.take() == ({"web": now}, {WEB: now})
        assert face.take() == ({}, {})


def test_a_long_poll_counts_as_activity_until_it_ends() -> None:
    with serving() as face, face.connect() as client:
        etag = client.get().headers["etag"]
        client.send(request("GET", EVENTS, "Metadata: true", f"If-None-Match: {etag}", "Prefer: wait=60"))
        face.waiting(1)
        for _ in range(2):
            face.clock.set(face.clock.now() + timedelta(hours=1))
            now = face.clock.now()
            assert face.take() == ({"web": now}, {WEB: now})
        face.clock.set(face.clock.now() + timedelta(hours=1))
        face.show(FREEZE)
        client.read()
        now = face.clock.now()
        assert face.take() == ({"web": now}, {WEB: now})
        assert face.take() == ({}, {})
