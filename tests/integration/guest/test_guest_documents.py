"""Polls: documents, entity tags and long polls."""

import json
import socket

import pytest

from forewarn.core.basic_types import EventStatus, EventType
from forewarn.guest.settings import EndpointSettings
from tests.integration.guest.guest_face import (
    EVENTS,
    Face,
    event,
    group,
    machine,
    request,
    serving,
    with_limits,
)
from tests.unit.documents import GOLDEN

FREEZE = event(EventType.FREEZE)


def test_a_poll_gets_the_golden_document_of_its_version() -> None:
    with serving(groups=(group(incarnation=6),)) as face:
        face.show(event(EventType.REBOOT))
        for version in ("2017-03-01", "2019-04-01", "2020-07-01"):
            answer = face.get(f"/metadata/scheduledevents?api-version={version}")
            assert answer.body == (GOLDEN / f"{version}-reboot-scheduled.json").read_bytes()


def test_a_cached_request_sees_a_change_at_once() -> None:
    with serving() as face, face.connect() as client:
        bodies = [client.get().body, client.get().body]
        face.show(FREEZE)
        bodies += [client.get().body]
        face.show(event(EventType.FREEZE, EventStatus.STARTED))
        bodies += [client.get().body]
    told = [json.loads(body) for body in bodies]
    assert [document["DocumentIncarnation"] for document in told] == [1, 1, 2, 3]
    assert [len(document["Events"]) for document in told] == [0, 0, 1, 1]


def test_the_date_is_service_time() -> None:
    with serving() as face, face.connect() as client:
        for seconds in (0, 59, 86400):
            face.clock.set(face.clock.now().replace(second=seconds % 60))
            client.get()
            assert client.get().headers["date"].endswith(f":{seconds % 60:02} GMT")


def test_two_groups_with_the_same_incarnation_have_different_tags() -> None:
    machines = (machine("web-0", address="127.0.0.1"), machine("db-0", group="db", address="127.0.0.2"))
    with serving(*machines, groups=(group("web"), group("db"))) as face:
        tags = {face.get(source=source).headers["etag"] for source in ("127.0.0.1", "127.0.0.2")}
    assert len(tags) == 2


# If-None-Match


@pytest.mark.parametrize(
    "form", ["{}", "W/{}", '"0", {}', '{} , "x"', "*", "0,*", "bare", "W/bare"], ids=lambda form: form
)
def test_a_caller_that_has_the_document_gets_304(form: str) -> None:
    with serving() as face, face.connect() as client:
        etag = client.get().headers["etag"]
        value = form.replace("bare", etag.strip('"')).format(etag)
        for _ in range(2):  # parsed, then cached
            answer = client.get(EVENTS, f"If-None-Match: {value}")
            assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", etag)
            assert "content-length" not in answer.headers


@pytest.mark.parametrize("value", ["0", '"1"', "", '""', '"1-000000000000"', "x" * 3000])
def test_a_caller_with_another_tag_gets_the_document(value: str) -> None:
    with serving() as face, face.connect() as client:
        for _ in range(2):
            assert client.get(EVENTS, f"If-None-Match: {value}").status == 200


def test_tags_on_several_header_lines_are_combined() -> None:
    with serving() as face, face.connect() as client:
        etag = client.get().headers["etag"]
        assert client.get(EVENTS, "If-None-Match: 0", f"If-None-Match: {etag}").status == 304


def test_a_tag_is_stale_after_a_change() -> None:
    with serving() as face, face.connect() as client:
        etag = client.get().headers["etag"]
        assert client.get(EVENTS, f"If-None-Match: {etag}").status == 304
        face.show(FREEZE)
        assert client.get(EVENTS, f"If-None-Match: {etag}").status == 200


# Held requests (`Prefer: wait`)


def hold(face: Face, *headers: str, source: str | None = None, match: str | None = None) -> "Held":
    return Held(face, headers, source, match)


class Held:
    """A long poll on its own connection."""

    def __init__(self, face: Face, headers: tuple[str, ...], source: str | None, match: str | None) -> None:
        self.client = face.connect(source)
        etag = match or self.client.get().headers["etag"]
        self.client.send(
            request(
                "GET", EVENTS, "Metadata: true", f"If-None-Match: {etag}", *(headers or ("Prefer: wait=60",))
            )
        )

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.socket.close()


@pytest.mark.parametrize("match", [None, "*"])
def test_a_long_poll_is_answered_when_the_document_changes(match: str | None) -> None:
    with serving() as face, hold(face, match=match) as held:
        face.waiting(1)
        face.show(FREEZE)
        answer = held.client.read()
        assert (answer.status, answer.headers["preference-applied"]) == (200, "wait=60")
        assert json.loads(answer.body)["DocumentIncarnation"] == 2
        assert len(face.board.waiting) == 0


def test_a_long_poll_ends_after_its_wait() -> None:
    with serving() as face, hold(face, "Prefer: wait=1") as held:
        answer = held.client.read()
        assert (answer.status, answer.headers["preference-applied"]) == (304, "wait=1")
        assert held.client.get().status == 200


def test_a_change_that_guests_cannot_see_does_not_end_a_long_poll() -> None:
    with serving() as face, hold(face) as held:
        face.waiting(1)
        face.apply(groups=(face.desk.groups["web"],), events={"web": ()})  # type: ignore[index]
        face.apply(machines=(machine("web-0", location="north"),))
        face.waiting(1)
        face.show(FREEZE)
        assert held.client.read().status == 200


@pytest.mark.parametrize(
    ("prefer", "applied"),
    [
        ("wait=0", "wait=0"),
        ("respond-async, wait=0; x=y", "wait=0"),
        ('Wait = "0"', "wait=0"),
        ("wait=0, wait=60", "wait=0"),
        ("wait=-1", None),
        ("wait=x", None),
        ("wait", None),
        ("return=minimal", None),
    ],
)
def test_preferences_are_parsed_in_all_forms(prefer: str, applied: str | None) -> None:
    with serving() as face, face.connect() as client:
        answer = client.get(EVENTS, "If-None-Match: *", f"Prefer: {prefer}")
        assert (answer.status, answer.headers.get("preference-applied")) == (304, applied)


@pytest.mark.parametrize("seconds", ["301", "9" * 5000])
def test_a_long_poll_waits_at_most_five_minutes(seconds: str) -> None:
    with serving() as face, hold(face, f"Prefer: wait={seconds}") as held:
        face.waiting(1)
        face.show(FREEZE)
        assert held.client.read().headers["preference-applied"] == "wait=300"


def test_a_poll_without_a_tag_does_not_wait() -> None:
    with serving() as face, face.connect() as client:
        answer = client.get(EVENTS, "Prefer: wait=60")
        assert answer.status == 200
        assert "preference-applied" not in answer.headers


def test_a_poll_with_a_stale_tag_does_not_wait() -> None:
    with serving() as face, face.connect() as client:
        answer = client.get(EVENTS, "If-None-Match: 0", "Prefer: wait=60")
        assert (answer.status, answer.headers["preference-applied"]) == (200, "wait=60")


def test_a_machine_may_have_eight_long_polls() -> None:
    with serving() as face:
        held = [hold(face) for _ in range(8)]
        face.waiting(8)
        with hold(face) as one_more:
            answer = one_more.client.read()
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert one_more.client.get().status == 200
        face.show(FREEZE)
        assert [each.client.read().status for each in held] == [200] * 8
        for each in held:
            each.client.socket.close()


def test_a_long_poll_ends_when_its_client_disconnects() -> None:
    with serving(settings=with_limits(held=1)) as face:
        for _ in range(3):
            with hold(face):
                face.waiting(1)
            face.waiting(0)


def test_a_long_poll_on_a_half_closed_connection_is_answered_at_once() -> None:
    with serving() as face, hold(face) as held:
        face.waiting(1)
        held.client.socket.shutdown(socket.SHUT_WR)
        assert held.client.read().status == 304
        assert held.client.is_closed()


def test_a_long_poll_of_a_removed_machine_is_not_found() -> None:
    with serving() as face, hold(face) as held:
        face.waiting(1)
        face.apply(removed_machines=("id-of-web-0",))
        assert held.client.read().status == 404


def test_a_long_poll_of_a_regrouped_machine_gets_the_new_groups_document() -> None:
    with serving(groups=(group("web"), group("db", incarnation=9))) as face, hold(face) as held:
        face.waiting(1)
        face.apply(machines=(machine("web-0", group="db"),))
        assert json.loads(held.client.read().body)["DocumentIncarnation"] == 9


def test_a_long_poll_from_an_address_that_the_machine_no_longer_has_is_not_found() -> None:
    with serving() as face, hold(face) as held:
        face.waiting(1)
        face.apply(machines=(machine("web-0", address="127.0.0.7"),))
        assert held.client.read().status == 404


def test_a_stop_answers_long_polls_and_closes() -> None:
    with serving() as face, hold(face) as held, face.connect() as idle:
        face.waiting(1)
        face.connections(2)
        face.run(face.server.stop())
        answer = held.client.read()
        assert (answer.status, answer.headers["connection"]) == (304, "close")
        assert held.client.is_closed()
        assert idle.is_closed()


def test_the_rate_limit_applies_to_cached_requests() -> None:
    with serving(settings=EndpointSettings(rate=2)) as face, face.connect() as client:
        assert [client.get().status for _ in range(5)] == [200] * 4 + [429]
