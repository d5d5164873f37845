"""What a client asks, and when it asks again; without a network and without a clock."""

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
from forewarn.sdk.guest_errors import GuestError, Refused, Unavailable
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
SILENCE = NoAnswer(why="nobody is there")


class Endpoint:
    """Answers calls with replies that take some time each, and keeps what was asked."""

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


def test_what_passes_is_asked_again_with_growing_pauses() -> None:
    endpoint = Endpoint(SILENCE, refused(404), refused(410), HttpAnswer(status=200), refused(503), told(7))
    assert events(endpoint) == Document(incarnation=7)
    assert endpoint.pauses == [0, 1, 2, 4, 6, 6]


def test_the_endpoint_may_ask_for_a_longer_pause() -> None:
    endpoint = Endpoint(refused(429, retry_after="5"), told(1))
    events(endpoint)
    assert endpoint.pauses == [0, 5]


def evicting(incarnation: int, *, seconds: float) -> HttpAnswer:
    """Tell of an eviction in so many seconds."""
    event = {
        "EventId": "A",
        "EventStatus": "Scheduled",
        "EventType": "Preempt",
        "Resources": ["web-0"],
        "NotBefore": format_datetime(START + timedelta(seconds=seconds), usegmt=True),
    }
    body = json.dumps({"DocumentIncarnation": incarnation, "Events": [event]}).encode()
    return HttpAnswer(status=200, headers={"date": format_datetime(START, usegmt=True)}, body=body)


def test_an_endpoint_that_asks_for_more_time_than_an_eviction_leaves_does_not_get_it() -> None:
    endpoint = Endpoint(refused(429, retry_after="60"), told(1))
    events(endpoint)
    assert endpoint.pauses == [0, 6]


def test_the_less_notice_is_left_the_shorter_are_the_pauses_before_an_approval_is_sent_again() -> None:
    calls, endpoint = GuestCalls(), Endpoint(evicting(1, seconds=20), *[refused(503, retry_after="60")] * 50)
    endpoint.run(calls.events(now=endpoint.now))
    announced = endpoint.now
    with pytest.raises(Unavailable) as raised:
        endpoint.run(calls.approve(("A",), now=endpoint.now, within=19.0))
    assert raised.value.retry_after == 60
    assert endpoint.pauses[2:5] == pytest.approx([4, 3.2, 2.56])
    assert endpoint.now - announced < 20


def test_a_watch_asks_again_soon_when_an_event_is_about_to_start() -> None:
    endpoint = Endpoint(evicting(1, seconds=2), SILENCE, SILENCE, told(2))
    watch(endpoint, 2)
    assert endpoint.pauses == pytest.approx([0, 1, 0.2, 0.2], abs=0.05)


def test_what_a_client_says_about_timeouts_holds_for_every_request() -> None:
    calls, endpoint = GuestCalls(timeout=3), Endpoint(told(1), HttpAnswer(status=200), HttpAnswer(status=404))
    endpoint.run(calls.events(now=endpoint.now))
    endpoint.run(calls.approve(("A",), now=endpoint.now))
    with pytest.raises(Unavailable):
        endpoint.run(calls.instance(within=0))
    assert [request.seconds for request in endpoint.asked] == [3, 3, 3]
    assert calls.poll(now=0, etag="1", wait=60).seconds == 63


def test_what_does_not_pass_in_time_is_raised() -> None:
    endpoint = Endpoint(*[refused(500)] * 20)
    with pytest.raises(Unavailable, match="500"):
        events(endpoint, within=10)
    assert endpoint.pauses == [0, 1, 2, 4]


def test_what_stays_is_raised_at_once() -> None:
    endpoint = Endpoint(refused(403))
    with pytest.raises(Refused, match="403"):
        events(endpoint)


def test_an_answer_without_a_question_is_no_document() -> None:
    with pytest.raises(Unavailable):
        events(Endpoint(UNCHANGED), within=0)


def test_a_lease_that_comes_while_it_is_looked_for_is_seen() -> None:
    endpoint = Endpoint(SILENCE, refused(429), SILENCE)
    leased = (LeaseSource(where="/run/lease", leases=(Lease(address="10.0.0.7"),)),)
    sights = [Surroundings(now=START, lease_sources=leased if look == 2 else ()) for look in range(3)]
    looking = discover(GuestCalls(), lambda: sights.pop(0), now=endpoint.now, within=60.0)
    found = endpoint.run(looking)
    assert isinstance(found, Discovery)
    assert found.url == "http://10.0.0.7"
    assert len(endpoint.asked) == 2


def test_the_first_answer_may_take_long_and_the_next_may_not() -> None:
    calls, endpoint = GuestCalls(), Endpoint(told(1), told(1), takes=120)
    for _ in range(2):
        endpoint.run(calls.events(now=endpoint.now))
    assert [request.seconds for request in endpoint.asked] == [150, 6]


def test_an_approval_is_sent_again_until_it_is_saved() -> None:
    endpoint = Endpoint(refused(503), SILENCE, HttpAnswer(status=200))
    endpoint.run(GuestCalls().approve(("A", "B"), now=endpoint.now))
    assert [request.method for request in endpoint.asked] == ["POST"] * 3
    assert json.loads(endpoint.asked[-1].body or b"") == {
        "StartRequests": [{"EventId": "A"}, {"EventId": "B"}]
    }


def test_an_approval_of_what_never_was_is_refused() -> None:
    error = HttpAnswer(status=400, body=b'{"error":"Bad request. event A is not known"}')
    with pytest.raises(Refused, match="event A is not known"):
        Endpoint(error).run(GuestCalls().approve(("A",), now=0))


def test_a_machine_learns_who_it_is() -> None:
    said = {"name": "web-0", "vmId": "1", "platformUpdateDomain": "2", "tags": "a:1;b:2"}
    endpoint = Endpoint(HttpAnswer(status=200, body=json.dumps(said).encode()))
    instance = endpoint.run(GuestCalls().instance())
    assert (instance.name, instance.vm_id, instance.update_domain) == ("web-0", "1", "2")  # type: ignore[attr-defined]
    assert instance.tags == {"a": "1", "b": "2"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"name":7}'])
def test_an_instance_without_a_name_is_none(body: bytes) -> None:
    with pytest.raises(GuestError, match="instance metadata"):
        Endpoint(HttpAnswer(status=200, body=body)).run(GuestCalls().instance(within=0))


# Watching


def test_a_watch_gives_the_document_and_then_what_differs() -> None:
    endpoint = Endpoint(told(1), HELD, told(2), told(1), takes=60)
    assert watch(endpoint, 3) == [Document(incarnation=number) for number in (1, 2, 1)]


def test_a_server_that_holds_is_asked_again_at_once() -> None:
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


def test_a_server_that_does_not_hold_is_asked_once_a_second() -> None:
    endpoint = Endpoint(told(1), UNCHANGED, UNCHANGED, told(2), UNCHANGED, told(3), takes=0.25)
    watch(endpoint, 3)
    assert endpoint.pauses == [0] + [0.75] * 5
    # Another server may have answered with the news.
    assert ["Prefer" in request.headers for request in endpoint.asked] == [
        False,
        True,
        False,
        False,
        True,
        False,
    ]


def test_a_server_that_says_it_holds_and_does_not_is_asked_once_a_second() -> None:
    endpoint = Endpoint(told(1), HELD, HELD, told(2))
    watch(endpoint, 2)
    assert endpoint.pauses == [0, 1, 1, 1]


def test_a_server_without_tags_is_compared_with() -> None:
    plain = [replace(told(number), headers={}) for number in (1, 1, 1, 2)]
    endpoint = Endpoint(*plain)
    assert watch(endpoint, 2) == [Document(incarnation=1), Document(incarnation=2)]
    assert endpoint.pauses == [0, 1, 1, 1]
    assert all(not request.headers for request in endpoint.asked)


def test_a_watcher_may_ask_not_to_be_held() -> None:
    endpoint = Endpoint(told(1), UNCHANGED, told(2))
    watch(endpoint, 2, wait=0)
    assert all("Prefer" not in request.headers for request in endpoint.asked)


def test_a_watch_outlives_any_trouble_and_tells_of_it_once() -> None:
    said: list[str] = []
    away = [SILENCE] * 400
    endpoint = Endpoint(told(1), *away, HttpAnswer(status=200), refused(404), UNCHANGED, told(2))
    watch(endpoint, 2, trouble=lambda error: said.append("over" if error is None else str(error)))
    assert said == ["nobody is there", "over"]
    assert max(endpoint.pauses) == 6


def test_after_trouble_the_endpoint_is_to_say_at_once_that_it_is_back() -> None:
    endpoint = Endpoint(told(1), SILENCE, UNCHANGED, told(2))
    watch(endpoint, 2)
    assert ["Prefer" in request.headers for request in endpoint.asked] == [False, True, False, True]


def test_a_watch_ends_with_what_stays() -> None:
    with pytest.raises(Refused):
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
def test_whatever_comes_a_watch_gives_each_new_document_once_and_asks_in_measure(
    came: list[Reply], takes: float
) -> None:
    endpoint = Endpoint(*came, told(99), takes=takes)
    documents = DocumentWatch(GuestCalls())
    seen: list[object] = []
    while not seen or seen[-1] != Document(incarnation=99):
        seen.append(endpoint.run(documents.next(now=endpoint.now)))
    bodies = [reply.body for reply in came if isinstance(reply, HttpAnswer) and b"Events" in reply.body]
    told_one_by_one = [json.loads(body)["DocumentIncarnation"] for body, _ in groupby(bodies)]
    assert seen == [Document(incarnation=number) for number in (*told_one_by_one, 99)]
    # At most once a second, and never later than an eviction's notice allows.
    assert all(pause + takes >= SECOND - 1e-6 for pause in endpoint.pauses[1:])
    assert max(endpoint.pauses) <= 30
