"""The first time at which each machine received each event."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.basic_types import EventStatus, EventType, MachineId, MachineName
from forewarn.core.model.event import Event, Resource
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

WEB = MachineId("id-of-web-0")
SECOND = timedelta(seconds=1)
GET = request("GET", EVENTS, "Metadata: true")


def naming(*names: str, type_: EventType = EventType.FREEZE, number: int = 1) -> Event:
    """Make an event with the endpoint's ids of machines."""
    named = tuple(Resource(machine=MachineId(f"id-of-{name}"), name=MachineName(name)) for name in names)
    return replace(event(type_, number=number), resources=named)


FREEZE = naming("web-0")
PREEMPT = naming("web-0", type_=EventType.PREEMPT, number=2)
OLD = "/metadata/scheduledevents?api-version=2017-08-01"


def ask(client: Client) -> None:
    client.send(GET)
    assert client.read().status == 200


def sent(face: Face) -> object:
    return face.do(face.board.take_notices)


def pass_(face: Face, span: timedelta = SECOND) -> None:
    face.clock.set(face.clock.now() + span)


def test_an_event_counts_as_sent_when_a_machine_that_it_names_first_gets_it() -> None:
    with serving() as face, face.connect() as client:
        ask(client)
        assert sent(face) == {}
        face.show(FREEZE)
        for _ in range(3):
            pass_(face)
            ask(client)
        assert sent(face) == {FREEZE.id: {WEB: START + SECOND}}
        ask(client)
        assert sent(face) == {}


def test_an_event_counts_as_sent_for_a_request_that_is_not_cached() -> None:
    with serving() as face:
        face.show(FREEZE)
        face.get()
        assert sent(face) == {FREEZE.id: {WEB: START}}


def test_an_event_does_not_count_as_sent_to_a_machine_that_it_does_not_name() -> None:
    with serving() as face, face.connect() as client:
        face.show(naming("web-1"))
        ask(client)
        assert sent(face) == {}


def test_each_machine_of_a_group_counts_by_its_own_request() -> None:
    members = (machine("web-0", address="127.0.0.1"), machine("web-1", address="127.0.0.2"))
    with serving(*members) as face:
        face.show(naming("web-0", "web-1"))
        face.get(source="127.0.0.2")
        assert sent(face) == {FREEZE.id: {MachineId("id-of-web-1"): START}}


def test_an_event_does_not_count_as_sent_in_a_version_without_its_type() -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE, PREEMPT)
        for _ in range(2):
            client.get(OLD)
        assert sent(face) == {FREEZE.id: {WEB: START}}
        pass_(face)
        client.get()
        assert sent(face)[PREEMPT.id] == {WEB: START + SECOND}  # type: ignore[index]


@pytest.mark.parametrize("tag", ["*", None])
def test_a_304_does_not_count_as_sending(tag: str | None) -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        etag = face.do(lambda: face.board.etag(face.board.groups["web"]))  # type: ignore[arg-type]
        for _ in range(2):
            given = tag or f'"{etag.decode()}"'
            assert client.get(EVENTS, f"If-None-Match: {given}").status == 304
        assert sent(face) == {}
        ask(client)
        assert sent(face) == {FREEZE.id: {WEB: START}}


def test_a_long_poll_counts_when_it_is_answered() -> None:
    with serving() as face, face.connect() as client:
        etag = client.get().headers["etag"]
        client.send(request("GET", EVENTS, "Metadata: true", f"If-None-Match: {etag}", "Prefer: wait=60"))
        face.waiting(1)
        pass_(face, timedelta(hours=1))
        face.show(FREEZE)
        assert client.read().status == 200
        assert sent(face) == {FREEZE.id: {WEB: START + timedelta(hours=1)}}


def test_a_refused_request_does_not_count_as_sending() -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        assert client.request("GET", EVENTS).status == 400
        assert sent(face) == {}


def test_a_second_event_counts_separately() -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        ask(client)
        sent(face)
        face.show(FREEZE, PREEMPT)
        pass_(face)
        ask(client)
        assert sent(face)[PREEMPT.id] == {WEB: START + SECOND}  # type: ignore[index]


def test_an_event_first_seen_as_started_counts_as_sent_then() -> None:
    with serving() as face, face.connect() as client:
        face.show(FREEZE)
        face.show(replace(FREEZE, status=EventStatus.STARTED))
        pass_(face)
        ask(client)
        assert sent(face) == {FREEZE.id: {WEB: START + SECOND}}


def test_a_regrouped_machine_counts_for_the_events_of_its_new_group() -> None:
    with serving(groups=(group("web"), group("db"))) as face, face.connect() as client:
        face.show(FREEZE)
        face.show(PREEMPT, name="db")
        ask(client)
        sent(face)
        face.apply(machines=(machine(group="db"),))
        ask(client)
        assert sent(face) == {PREEMPT.id: {WEB: START}}
