"""The requests of a client and its retries, without a network or a clock."""

import json
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.platform.leases import Lease, LeaseSource
from forewarn.sdk.discovery import Discovery, Surroundings, discover
from forewarn.sdk.documents import Document
from forewarn.sdk.guest_calls import Call, DocumentWatch, GuestCalls
from forewarn.sdk.guest_errors import EndpointRefused, EndpointUnavailable, GuestError
from forewarn.sdk.transport.exchange import GuestRequest, HttpAnswer, NoAnswer, Reply
from tests.helpers.service.harness import START

SECOND = 1.0


def told(incarnation: int, **headers: str) -> HttpAnswer:
    body = json.dumps({"DocumentIncarnation": incarnation, "Events": []}).encode()
    return HttpAnswer(status=200, headers={"etag": f'"{incarnation}"', **headers}, body=body)


def refused(status: int, **headers: str) -> HttpAnswer:
    return HttpAnswer(
        status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


UNCHANGED = HttpAnswer(status=304)
HELD = HttpAnswer(status=304, headers={"preference-applied": "wait=60"})
SILENCE = NoAnswer(why="connection refused")


class Endpoint:
    """Answers calls with scripted replies that take some time each, and records the requests."""

    def __init__(self, *replies: Reply, takes: float = 0.0) -> None:
        self.replies = list(replies)
        self.takes = takes
        self.now = 1000.0
        self.asked: list[GuestRequest] = []

    @property
    def pauses(self) -> list[float]:
        return [request.after for request in self.asked]

    def run(self, call: Call[object]) -> object:
        request = next(call)
        while True:
            self.asked.append(request)
            sent = self.now + request.after
            self.now = sent + self.takes
            reply = replace(self.replies.pop(0), sent=sent, received=self.now)
            try:
                request = call.send(reply)
            except StopIteration as end:
                return end.value


def events(endpoint: Endpoint, *, within: float = 60.0) -> object:
    return endpoint.run(GuestCalls().events(now=endpoint.now, within=within))


def watch(endpoint: Endpoint, documents: int, **more: object) -> list[object]:
    watched = DocumentWatch(GuestCalls(), **more)  # type: ignore[arg-type]
    return [endpoint.run(watched.next(now=endpoint.now)) for _ in range(documents)]


def test_a_temporary_error_is_retried_with_growing_pauses() -> None:
    endpoint = Endpoint(SILENCE, refused(404), refused(410), HttpAnswer(status=200), refused(503), told(7))
    assert events(endpoint) == Document(incarnation=7)
    assert endpoint.pauses == [0, 1, 2, 4, 6, 6]


def test_retry_after_may_lengthen_the_pause() -> None:
    endpoint = Endpoint(refused(429, retry_after="5"), told(1))
    events(endpoint)
    assert endpoint.pauses == [0, 5]


def evicting(incarnation: int, *, seconds: float) -> HttpAnswer:
    """Return an answer with an eviction in so many seconds."""
    event = {
        "EventId": "A",
        "EventStatus": "Scheduled",
        "EventType": "Preempt",
        "Resources": ["web-0"],
        "NotBefore": format_datetime(START + timedelta(seconds=seconds), usegmt=True),
    }
    body = json.dumps({"DocumentIncarnation": incarnation, "Events": [event]}).encode()
    return HttpAnswer(status=200, headers={"date": format_datetime(START, usegmt=True)}, body=body)


def test_retry_after_is_limited_by_the_notice_of_an_eviction() -> None:
    endpoint = Endpoint(refused(429, retry_after="60"), told(1))
    events(endpoint)
    assert endpoint.pauses == [0, 6]


def test_retries_of_an_approval_speed_up_as_the_notice_runs_out() -> None:
    calls, endpoint = GuestCalls(), Endpoint(evicting(1, seconds=20), *[refused(503, retry_after="60")] * 50)
    endpoint.run(calls.events(now=endpoint.now))
    announced = endpoint.now
    with pytest.raises(EndpointUnavailable) as raised:
        endpoint.run(calls.approve(("A",), now=endpoint.now, within=19.0))
    assert raised.value.retry_after == 60
    assert endpoint.pauses[2:5] == pytest.approx([4, 3.2, 2.56])
    assert endpoint.now - announced < 20


def test_a_watch_retries_sooner_when_an_event_is_about_to_start() -> None:
    endpoint = Endpoint(evicting(1, seconds=2), SILENCE, SILENCE, told(2))
    watch(endpoint, 2)
    assert endpoint.pauses == pytest.approx([0, 1, 0.2, 0.2], abs=0.05)


def test_the_timeout_of_a_client_applies_to_every_request() -> None:
    calls, endpoint = GuestCalls(timeout=3), Endpoint(told(1), HttpAnswer(status=200), HttpAnswer(status=404))
    endpoint.run(calls.events(now=endpoint.now))
    endpoint.run(calls.approve(("A",), now=endpoint.now))
    with pytest.raises(EndpointUnavailable):
        endpoint.run(calls.instance(within=0))
    assert [request.seconds for request in endpoint.asked] == [3, 3, 3]
    assert calls.poll(now=0, etag="1", wait=60).seconds == 63


def test_an_error_that_lasts_too_long_is_raised() -> None:
    endpoint = Endpoint(*[refused(500)] * 20)
    with pytest.raises(EndpointUnavailable, match="500"):
        events(endpoint, within=10)
    assert endpoint.pauses == [0, 1, 2, 4]


def test_a_permanent_error_is_raised_at_once() -> None:
    endpoint = Endpoint(refused(403))
    with pytest.raises(EndpointRefused, match="403"):
        events(endpoint)


def test_a_304_without_an_etag_is_unavailable() -> None:
    with pytest.raises(EndpointUnavailable):
        events(Endpoint(UNCHANGED), within=0)


def test_discovery_finds_a_lease_that_appears_meanwhile() -> None:
    endpoint = Endpoint(SILENCE, refused(429), SILENCE)
    leased = (LeaseSource(where="/run/lease", leases=(Lease(address="10.0.0.7"),)),)
    sights = [Surroundings(now=START, lease_sources=leased if look == 2 else ()) for look in range(3)]
    looking = discover(GuestCalls(), lambda: sights.pop(0), now=endpoint.now, within=60.0)
    found = endpoint.run(looking)
    assert isinstance(found, Discovery)
    assert found.url == "http://10.0.0.7"
    assert len(endpoint.asked) == 2


def test_only_the_first_answer_may_take_long() -> None:
    calls, endpoint = GuestCalls(), Endpoint(told(1), told(1), takes=120)
    for _ in range(2):
        endpoint.run(calls.events(now=endpoint.now))
    assert [request.seconds for request in endpoint.asked] == [150, 6]


def test_an_approval_is_retried_until_it_is_saved() -> None:
    endpoint = Endpoint(refused(503), SILENCE, HttpAnswer(status=200))
    endpoint.run(GuestCalls().approve(("A", "B"), now=endpoint.now))
    assert [request.method for request in endpoint.asked] == ["POST"] * 3
    assert json.loads(endpoint.asked[-1].body or b"") == {
        "StartRequests": [{"EventId": "A"}, {"EventId": "B"}]
    }


def test_an_approval_of_an_unknown_event_is_refused() -> None:
    error = HttpAnswer(status=400, body=b'{"error":"Bad request. event A is not known"}')
    with pytest.raises(EndpointRefused, match="event A is not known"):
        Endpoint(error).run(GuestCalls().approve(("A",), now=0))


def test_instance_metadata_is_read() -> None:
    said = {"name": "web-0", "vmId": "1", "platformUpdateDomain": "2", "tags": "a:1;b:2"}
    endpoint = Endpoint(HttpAnswer(status=200, body=json.dumps(said).encode()))
    instance = endpoint.run(GuestCalls().instance())
    assert (instance.name, instance.vm_id, instance.update_domain) == ("web-0", "1", "2")  # type: ignore[attr-defined]
    assert instance.tags == {"a": "1", "b": "2"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"name":7}'])
def test_instance_metadata_without_a_name_is_unreadable(body: bytes) -> None:
    with pytest.raises(GuestError, match="instance metadata"):
        Endpoint(HttpAnswer(status=200, body=body)).run(GuestCalls().instance(within=0))


# Watching


def test_a_watch_yields_the_document_and_each_change() -> None:
    endpoint = Endpoint(told(1), HELD, told(2), told(1), takes=60)
    assert watch(endpoint, 3) == [Document(incarnation=number) for number in (1, 2, 1)]


def test_a_server_that_holds_requests_is_polled_again_at_once() -> None:
    endpoint = Endpoint(told(1), HELD, HELD, told(2), takes=60)
    watch(endpoint, 2)
    assert endpoint.pauses == [0, 0, 0, 0]
    assert [request.headers.get("Prefer") for request in endpoint.asked] == [
        None,
        "wait=60",
        "wait=60",
        "wait=60",
    ]
    assert [request.headers.get("If-None-Match") for request in endpoint.asked] == [None, '"1"', '"1"', '"1"']
    assert endpoint.asked[1].seconds > 60


def test_a_server_that_does_not_hold_requests_is_polled_once_a_second() -> None:
    endpoint = Endpoint(told(1), UNCHANGED, UNCHANGED, told(2), UNCHANGED, told(3), takes=0.25)
    watch(endpoint, 3)
    assert endpoint.pauses == [0] + [0.75] * 5
    # Another server may have sent the new document.
    assert ["Prefer" in request.headers for request in endpoint.asked] == [
        False,
        True,
        False,
        False,
        True,
        False,
    ]


def test_a_server_that_falsely_claims_to_hold_is_polled_once_a_second() -> None:
    endpoint = Endpoint(told(1), HELD, HELD, told(2))
    watch(endpoint, 2)
    assert endpoint.pauses == [0, 1, 1, 1]


def test_without_etags_a_watch_compares_documents() -> None:
    plain = [replace(told(number), headers={}) for number in (1, 1, 1, 2)]
    endpoint = Endpoint(*plain)
    assert watch(endpoint, 2) == [Document(incarnation=1), Document(incarnation=2)]
    assert endpoint.pauses == [0, 1, 1, 1]
    assert all(not request.headers for request in endpoint.asked)


def test_a_watch_can_poll_without_holding() -> None:
    endpoint = Endpoint(told(1), UNCHANGED, told(2))
    watch(endpoint, 2, wait=0)
    assert all("Prefer" not in request.headers for request in endpoint.asked)


def test_a_watch_survives_an_outage_and_reports_it_once() -> None:
    said: list[str] = []
    away = [SILENCE] * 400
    endpoint = Endpoint(told(1), *away, HttpAnswer(status=200), refused(404), UNCHANGED, told(2))
    watch(endpoint, 2, trouble=lambda error: said.append("over" if error is None else str(error)))
    assert said == ["connection refused", "over"]
    assert max(endpoint.pauses) == 6


def test_after_a_failure_a_watch_polls_without_holding() -> None:
    endpoint = Endpoint(told(1), SILENCE, UNCHANGED, told(2))
    watch(endpoint, 2)
    assert ["Prefer" in request.headers for request in endpoint.asked] == [False, True, False, True]


def test_a_permanent_error_ends_a_watch() -> None:
    with pytest.raises(EndpointRefused):
        watch(Endpoint(told(1), refused(401)), 2)


replies = st.one_of(
    st.builds(told, st.integers(1, 3)),
    st.sampled_from(
        [UNCHANGED, HELD, SILENCE, HttpAnswer(status=200), HttpAnswer(status=200, body=b"<html>")]
    ),
    st.builds(
        refused, st.sampled_from([404, 410, 429, 500, 503]), retry_after=st.sampled_from(["1", "60", "x"])
    ),
)


@given(st.lists(replies), st.floats(0, 70))
def test_a_watch_yields_each_new_document_once_and_limits_its_rate(came: list[Reply], takes: float) -> None:
    endpoint = Endpoint(*came, told(99), takes=takes)
    documents = DocumentWatch(GuestCalls())
    seen: list[object] = []
    while not seen or seen[-1] != Document(incarnation=99):
        seen.append(endpoint.run(documents.next(now=endpoint.now)))
    bodies = [reply.body for reply in came if isinstance(reply, HttpAnswer) and b"Events" in reply.body]
    told_one_by_one = [json.loads(body)["DocumentIncarnation"] for body, _ in groupby(bodies)]
    assert seen == [Document(incarnation=number) for number in (*told_one_by_one, 99)]
    # At most once a second, and never later than the notice of an eviction allows.
    assert all(pause + takes >= SECOND - 1e-6 for pause in endpoint.pauses[1:])
    assert max(endpoint.pauses) <= 30
