"""Both guest clients against the guest endpoint and against other servers."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forewarn import Closed, EndpointRefused, EndpointUnavailable, Event, GuestClient, GuestError, NoEndpoint
from forewarn.core.basic_types import EventStatus, EventType
from forewarn.guest.settings import EndpointSettings
from forewarn.platform.leases import Lease, LeaseSource
from forewarn.sdk import answer_reading
from forewarn.sdk.discovery import Surroundings
from forewarn.wire.azure import offered
from tests.helpers.programs.guests import BOTH, Client, Time, discovered
from tests.helpers.service.scripted import answer, dripping, scripted
from tests.integration.guest.guest_face import START, Face, event, group, machine, serving
from tests.unit.documents import NOT_BEFORE

Connect = Callable[..., Any]
# The pauses of a client whose calls fail for a minute.
GIVING_UP = [1, 2, 4, *[6] * 8]

EMPTY = b'{"DocumentIncarnation":1,"Events":[]}'
REBOOT = event(EventType.REBOOT)
OTHER = event(EventType.FREEZE, number=2)


def url_of(face: Face) -> str:
    host, port = face.server.listeners.addresses[0]
    return f"http://{host}:{port}"


def later(act: Callable[[], object]) -> threading.Thread:
    """Run a function in a thread while the test waits for its effect."""
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@contextmanager
def talking(connect: Connect, *machines: Any, **more: Any) -> Iterator[tuple[Face, Client]]:
    with serving(*machines, **more) as face, connect(url_of(face), time=Time()) as client:
        yield face, client


# Calls


@BOTH
def test_the_document_can_be_read(connect: Connect) -> None:
    with talking(connect) as (face, client):
        face.show(REBOOT)
        document = client.events()
    assert document.incarnation == 2
    (seen,) = document.events
    assert (seen.id, seen.type, seen.status) == (REBOOT.id, "Reboot", "Scheduled")
    assert seen.resources == ("Web-0", "web-1")
    assert seen.not_before == NOT_BEFORE
    assert (seen.source, seen.duration) == ("User", None)


@BOTH
@pytest.mark.parametrize("version", [version.name for version in offered(preview=False)])
def test_every_api_version_works(connect: Connect, version: str) -> None:
    with serving() as face, connect(url_of(face), api_version=version) as client:
        face.show(REBOOT)
        (seen,) = client.events().events
    assert seen.names("web-0")
    assert seen.not_before == NOT_BEFORE


@BOTH
def test_an_approval_is_saved_when_it_returns(connect: Connect) -> None:
    with talking(connect) as (face, client):
        face.show(REBOOT, OTHER)
        client.approve(*client.events().events)
        client.approve(OTHER.id.lower())
        assert [ids for _, ids, _ in face.desk.approved] == [(REBOOT.id, OTHER.id), (OTHER.id,)]


@BOTH
def test_approving_nothing_is_an_error(connect: Connect) -> None:
    with (
        connect("127.0.0.1:1", persistence=0) as client,
        pytest.raises(ValueError, match="at least one event"),
    ):
        client.approve()


@BOTH
def test_an_answer_after_the_timeout_is_unavailable(connect: Connect) -> None:
    with (
        dripping() as url,
        connect(url, persistence=0, timeout=0.5) as client,
        pytest.raises(EndpointUnavailable, match="takes too long"),
    ):
        client.events()


@BOTH
def test_a_timeout_must_be_positive(connect: Connect) -> None:
    with pytest.raises(ValueError, match="timeout: expected more than 0 seconds"), connect("a:1", timeout=0):
        pass


@BOTH
def test_the_refusal_of_an_unknown_event_has_the_message_of_the_endpoint(connect: Connect) -> None:
    unknown = "11111111-2222-4333-8444-555555555555"
    with (
        talking(connect) as (_, client),
        pytest.raises(EndpointRefused, match=f"event {unknown} is not known"),
    ):
        client.approve(unknown)


@BOTH
def test_instance_metadata_is_read(connect: Connect) -> None:
    own = machine("web-0", update_domain=2, tags={"role": "front"})
    with talking(connect, own) as (_, client):
        instance = client.instance()
    assert (instance.name, instance.vm_id, instance.update_domain) == ("web-0", "id-of-web-0", "2")
    assert instance.tags == {"role": "front"}


@BOTH
def test_instance_metadata_may_be_limited_or_missing(connect: Connect) -> None:
    with talking(connect, settings=EndpointSettings(rate=0, instance="name")) as (_, client):
        assert client.instance().name == "web-0"
    off = EndpointSettings(rate=0, instance="off")
    with (
        talking(connect, settings=off) as (_, client),
        pytest.raises(EndpointUnavailable, match="Set its name"),
    ):
        client.instance()


@BOTH
def test_seconds_left_use_the_clock_of_the_server(connect: Connect) -> None:
    time = Time()
    with serving() as face, connect(url_of(face), time=time) as client:
        face.show(replace(REBOOT, not_before=START + timedelta(minutes=15)))
        (seen,) = client.events().events
        assert client.seconds_left(seen) == 900
        time.now += 60
        assert client.seconds_left(seen) == 840


@BOTH
def test_the_first_call_may_take_two_minutes(connect: Connect) -> None:
    with talking(connect, groups=(group(enabled=False),)) as (face, client):
        face.desk.delay = timedelta(minutes=2)

        def two_minutes_later() -> None:
            face.waiting(1)
            face.clock.set(START + timedelta(minutes=2))
            face.do(face.server.time_moved)

        turning = later(two_minutes_later)
        assert client.events().incarnation == 1
        turning.join()


@BOTH
def test_a_429_is_retried_after_the_requested_pause(connect: Connect) -> None:
    time = Time()
    with serving(settings=EndpointSettings(rate=1)) as face, connect(url_of(face), time=time) as client:
        while True:
            try:
                client.events()
            except EndpointUnavailable as error:
                said = str(error)
                break
    assert "429: this machine sends too many requests" in said
    assert time.pauses[-11:] == GIVING_UP


@BOTH
def test_no_proxy_is_used(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with talking(connect) as (_, client):
        assert client.events().incarnation == 1


# Watching


@BOTH
def test_a_watch_yields_each_document(connect: Connect) -> None:
    with talking(connect) as (face, client):
        documents = client.watch()
        assert next(documents).events == ()
        for listed in ((REBOOT,), (event(EventType.REBOOT, EventStatus.STARTED),), ()):

            def change(listed: tuple[Any, ...] = listed) -> None:
                face.waiting(1)
                face.show(*listed)

            changing = later(change)
            assert [each.status for each in next(documents).events] == [each.status for each in listed]
            changing.join()


@BOTH
def test_a_watch_polls_a_server_that_does_not_hold_once_a_second(connect: Connect) -> None:
    time = Time()
    news = answer(200, b'{"DocumentIncarnation":2,"Events":[]}', 'ETag: "2"')
    answers = [answer(200, EMPTY, 'ETag: "1"'), *[answer(304)] * 5, news]
    with scripted(*answers) as azure, connect(azure.url, time=time) as client:
        documents = client.watch()
        assert [next(documents).incarnation for _ in range(2)] == [1, 2]
    assert time.pauses == [1] * 6
    assert [request.lower().count('if-none-match: "1"') for request in azure.requests] == [0] + [1] * 6


@BOTH
def test_a_watch_continues_after_an_outage(connect: Connect) -> None:
    said: list[GuestError | None] = []
    rough = [b"", b"rubbish\r\n\r\n", answer(410), answer(200), answer(200, b"<html>"), answer(503)]
    news = answer(200, b'{"DocumentIncarnation":2,"Events":[]}')
    with scripted(answer(200, EMPTY), *rough, news) as azure, connect(azure.url, time=Time()) as client:
        documents = client.watch(trouble=said.append)
        assert [next(documents).incarnation for _ in range(2)] == [1, 2]
    assert len(said) == 2
    assert isinstance(said[0], EndpointUnavailable)
    assert said[1] is None


def test_a_watch_ends_when_another_thread_closes_the_client() -> None:
    with serving() as face:
        client = GuestClient(url_of(face))

        def close() -> None:
            face.waiting(1)
            client.close()

        closing = later(close)
        assert [document.incarnation for document in client.watch()] == [1]
        closing.join()
        with pytest.raises(Closed):
            client.events()


def test_close_ends_a_watch_that_pauses() -> None:
    client = GuestClient("127.0.0.1:1")
    assert list(client.watch(trouble=lambda error: client.close())) == []


# Other servers


@BOTH
@pytest.mark.parametrize("status", [401, 403])
def test_a_403_or_401_is_a_permanent_error(connect: Connect, status: int) -> None:
    with scripted(answer(status)) as closed, connect(closed.url, time=Time()) as client:
        with pytest.raises(EndpointRefused, match=str(status)):
            client.events()
        with pytest.raises(EndpointRefused, match=str(status)):
            next(client.watch())
    assert len(closed.requests) == 2


@BOTH
@pytest.mark.parametrize(
    "rough", [b"", b"\x00\xff", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", answer(200, b"\xff" * 99)]
)
def test_garbage_is_retried_and_then_unavailable(connect: Connect, rough: bytes) -> None:
    time = Time()
    with (
        scripted(rough) as wrong,
        connect(wrong.url, time=time) as client,
        pytest.raises(EndpointUnavailable),
    ):
        client.events()
    assert time.pauses == GIVING_UP


@BOTH
def test_an_endless_answer_is_unavailable(connect: Connect) -> None:
    endless = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"fffff\r\n" + b" " * 0xFFFFF + b"\r\n"
    )
    more = b"fffff\r\n" + b" " * 0xFFFFF + b"\r\n"
    with (
        scripted(endless + more * 8) as wrong,
        connect(wrong.url, persistence=0) as client,
        pytest.raises(EndpointUnavailable, match="the answer is too long"),
    ):
        client.events()


@BOTH
def test_an_endless_header_is_unavailable(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_reading, "FIRST_ANSWER_SECONDS", 0.1)
    with (
        dripping() as url,
        connect(url, persistence=0) as client,
        pytest.raises(EndpointUnavailable, match="the answer takes too long"),
    ):
        client.events()


@BOTH
def test_a_failed_connection_names_the_address(connect: Connect) -> None:
    says = re.escape("at http://127.0.0.1:1: the connection failed")
    with connect("127.0.0.1:1", persistence=0) as client, pytest.raises(EndpointUnavailable, match=says):
        client.events()


@BOTH
def test_an_unknown_host_name_is_reported(connect: Connect) -> None:
    says = re.escape("at http://unknown.invalid: the host name cannot be resolved (")
    with connect("unknown.invalid", persistence=0) as client, pytest.raises(EndpointUnavailable, match=says):
        client.events()


@BOTH
def test_a_connection_closed_by_the_server_is_replaced(connect: Connect) -> None:
    kept, ended = answer(200, EMPTY), b""
    with scripted(kept, ended, kept) as shy, connect(shy.url, persistence=0) as client:
        client.events()
        client.approve("602D9444-D2CD-49C7-8624-8643E7171297")
    assert [request.split()[0] for request in shy.requests] == ["GET", "POST", "POST"]
    assert len(shy.connections) == 2


@BOTH
def test_a_new_connection_that_breaks_is_not_replaced(connect: Connect) -> None:
    with scripted(answer(200, EMPTY), b"") as shy, connect(shy.url, persistence=0) as client:
        client.events()
        with pytest.raises(EndpointUnavailable):
            client.events()
        assert len(shy.requests) == 3


@pytest.mark.parametrize(
    "wrong",
    ["", "a b", "ftp://a", "http://", "http://a:99999", "http://[::1", "http://a/\0", "http://a/\udcff"],
)
def test_an_invalid_address_is_reported_at_once(wrong: str) -> None:
    with pytest.raises(NoEndpoint, match="expected http://HOST"):
        GuestClient(wrong)


@pytest.mark.parametrize(
    "written",
    ["127.0.0.1:80", " http://127.0.0.1:80/ ", "http://127.0.0.1:80/metadata/scheduledEvents?api-version=1"],
)
def test_an_address_may_be_abbreviated(written: str) -> None:
    with GuestClient(written) as client:
        assert client.url in ("http://127.0.0.1", "http://127.0.0.1:80")


@BOTH
def test_a_path_is_encoded(connect: Connect) -> None:
    with (
        scripted(answer(200, EMPTY)) as azure,
        connect(f'{azure.url}/p\xe2th/%7Eme/"x"', persistence=0) as client,
    ):
        client.events()
    assert azure.requests[0].split()[1].startswith("/p%C3%A2th/%7Eme/%22x%22/metadata/")


# Discovery

LEASED = LeaseSource(where="/run/lease", leases=(Lease(address="10.0.0.7"),))
NOWHERE = "http://127.0.0.1:1"
KINDS = pytest.mark.parametrize("kind", ["blocking", "awaited"])


def around(**more: Any) -> Surroundings:
    return Surroundings(**{"now": START, "default_url": NOWHERE, **more})


@KINDS
@pytest.mark.parametrize("name", ["FOREWARN_ENDPOINT", "SCHEDULEDEVENTSIP"])
def test_an_address_in_the_environment_is_used_unchecked(kind: str, name: str) -> None:
    found = discovered(kind, around(environ={name: "10.0.0.9"}, lease_sources=[LEASED]))
    assert found == "http://10.0.0.9"


@KINDS
def test_the_default_address_is_used_if_it_answers(kind: str) -> None:
    with serving() as face:
        assert discovered(kind, around(default_url=url_of(face), lease_sources=[LEASED])) == url_of(face)


@KINDS
@pytest.mark.parametrize(
    "said", [answer(404), answer(200, b"<html>"), answer(200, b'{"compute":{}}'), answer(403)]
)
def test_a_server_without_documents_is_not_the_endpoint(kind: str, said: bytes) -> None:
    with scripted(said) as other:
        assert discovered(kind, around(default_url=other.url, lease_sources=[LEASED])) == "http://10.0.0.7"


@KINDS
def test_discovery_is_repeated_until_the_endpoint_appears(kind: str) -> None:
    document = answer(200, b'{"DocumentIncarnation":1,"Events":[]}')
    time = Time()
    with scripted(answer(429), answer(404), answer(503), answer(200), document) as booting:
        assert discovered(kind, around(default_url=booting.url), time=time) == booting.url
    assert time.pauses == sorted(time.pauses)
    assert len(time.pauses) == 4


@KINDS
def test_discovery_is_not_repeated_after_a_permanent_error(kind: str) -> None:
    time = Time()
    with scripted(answer(403)) as closed, pytest.raises(NoEndpoint):
        discovered(kind, around(default_url=closed.url), time=time)
    assert time.pauses == []


@KINDS
def test_the_newest_lease_is_used(kind: str) -> None:
    old = LeaseSource(where="/run/old", leases=(Lease(address="10.0.0.6"),))
    gone = LeaseSource(
        where="/run/gone", leases=(Lease(address="10.0.0.8", expires=datetime(2026, 1, 1, tzinfo=UTC)),)
    )
    closed = LeaseSource(where="/run/closed", trouble="Permission denied")
    assert discovered(kind, around(lease_sources=[old, LEASED, gone, closed])) == "http://10.0.0.7"


@KINDS
def test_no_endpoint_lists_the_places_searched(kind: str) -> None:
    empty, time = LeaseSource(where="/run/empty"), Time()
    with pytest.raises(NoEndpoint) as caught:
        discovered(kind, around(lease_sources=[empty]), time=time)
    said = str(caught.value)
    for line in (
        "FOREWARN_ENDPOINT: not set",
        f"{NOWHERE}: ",
        "/run/empty: no option 245",
        "Set its address",
    ):
        assert line in said
    assert len(caught.value.looked) == 4
    assert 30 < time.now - Time().now <= 60, "it was looked for again, for as long as was allowed"


@KINDS
def test_a_wrong_variable_is_named(kind: str) -> None:
    with pytest.raises(NoEndpoint, match="SCHEDULEDEVENTSIP: 'a b' is not the address"):
        discovered(kind, around(environ={"SCHEDULEDEVENTSIP": "a b"}))


def test_events_are_comparable_and_hashable() -> None:
    one = Event(id="A", type="Reboot", status="Scheduled", resources=("a",))
    assert {one: 1}[Event(id="A", type="Reboot", status="Scheduled", resources=("a",))] == 1
