"""The meaning of answers, and the pauses and timeouts of a client."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.sdk import answer_reading
from forewarn.sdk.answer_reading import NewDocument, Unchanged, answer_timeout, backoff, read_poll
from forewarn.sdk.documents import Document, Event
from forewarn.sdk.guest_errors import EndpointRefused, EndpointUnavailable, GuestError, Unreadable
from forewarn.sdk.transport.exchange import HttpAnswer, ServerTime, read_date

EMPTY = b'{"DocumentIncarnation":1,"Events":[]}'
NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
NOON_HEADER = "Mon, 05 Jan 2026 12:00:00 GMT"


def answer(status: int, body: bytes = b"", **headers: str) -> HttpAnswer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status=status, headers=named, body=body)


def failure(status: int, body: bytes = b"", **headers: str) -> GuestError:
    with pytest.raises(GuestError) as caught:
        read_poll(answer(status, body, **headers))
    return caught.value


def test_a_200_is_a_new_document() -> None:
    news = read_poll(answer(200, EMPTY, etag='"1-a"', content_type="text/plain"))
    assert news == NewDocument(document=Document(incarnation=1), etag='"1-a"')


def test_a_document_without_etag_is_accepted() -> None:
    assert read_poll(answer(200, EMPTY)) == NewDocument(document=Document(incarnation=1), etag=None)


def test_a_304_is_unchanged() -> None:
    assert read_poll(answer(304)) == Unchanged()


def test_an_empty_answer_is_unreadable() -> None:
    assert isinstance(failure(200), Unreadable)


@pytest.mark.parametrize("status", [302, 404, 408, 410, 429, 500, 502, 503, 504, 599])
def test_a_temporary_error_is_unavailable(status: int) -> None:
    assert isinstance(failure(status), EndpointUnavailable)


@pytest.mark.parametrize("status", [400, 401, 403, 405])
def test_a_permanent_error_is_refused_with_advice(status: int) -> None:
    error = failure(status, b'{ "error": "Because" }')
    assert isinstance(error, EndpointRefused)
    assert str(error).startswith(f"{status}: ")
    assert "Because" in str(error)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{ "error": "Not found. Invalid version requested" }', "does not support this api-version"),
        (
            b'{"error":{"code":"NotFound","message":"nothing at /x; /openapi.json lists what there is"}}',
            "this is the operator API, not a metadata endpoint",
        ),
    ],
)
def test_a_permanent_404_is_refused(body: bytes, said: str) -> None:
    error = failure(404, body)
    assert isinstance(error, EndpointRefused)
    assert said in str(error)
    assert "Its message: " in str(error)
    assert "{" not in str(error)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("1", 1.0),
        (" 7 ", 7.0),
        ("3600", 3600.0),
        ("soon", None),
        (NOON_HEADER, None),
    ],
)
def test_retry_after_is_read(header: str, seconds: float | None) -> None:
    error = failure(429, retry_after=header)
    assert isinstance(error, EndpointUnavailable)
    assert error.retry_after == seconds


def test_the_error_shows_retry_after() -> None:
    assert str(failure(429, retry_after="3600")).endswith("It asks for a pause of 3600 s")


@given(
    st.integers(100, 599),
    st.binary(),
    st.dictionaries(st.sampled_from(["etag", "retry-after", "date"]), st.text()),
)
def test_any_answer_is_a_result_or_an_error(status: int, body: bytes, headers: dict[str, str]) -> None:
    whole = HttpAnswer(status=status, headers=headers, body=body)
    with suppress(GuestError):
        assert isinstance(read_poll(whole), NewDocument | Unchanged)
    assert whole.server_time is None or whole.server_time.date.tzinfo is UTC


@pytest.mark.parametrize(
    ("header", "waited"),
    [("wait=60", True), ("respond-async, Wait = 60", True), ("", False), ("waiting", False)],
)
def test_preference_applied_is_read(header: str, waited: bool) -> None:
    assert answer(304, preference_applied=header).waited is waited


def test_the_pause_grows_up_to_a_limit() -> None:
    waits = [backoff(failures) for failures in range(1, 8)]
    assert waits == [1, 2, 4, 6, 6, 6, 6]
    assert backoff(10_000) == 6
    assert backoff(1, named=5) == 5
    assert backoff(1, named=30) == 6
    assert backoff(5, named=1) == 6


@given(st.integers(1, 100), st.none() | st.floats(0, 1e9), st.floats(1, 1e6))
def test_a_pause_takes_at_most_a_fifth_of_the_notice(failures: int, named: float | None, left: float) -> None:
    assert 0 < backoff(failures, named=named, left=left) <= left / 5
    assert backoff(failures, named=named, left=left) <= 6


def test_the_first_answer_and_one_after_a_day_may_take_two_minutes() -> None:
    assert answer_timeout(None, now=5.0) > 120
    assert answer_timeout(5.0, now=6.0) == answer_reading.ANSWER_SECONDS
    assert answer_timeout(5.0, now=24 * 3600.0) > 120


def test_server_time_advances_with_the_monotonic_clock() -> None:
    time = read_date(NOON_HEADER, received=100.0)
    assert time == ServerTime(date=NOON, received=100.0)
    assert time.now(130.5) == NOON + timedelta(seconds=30.5)
    assert time.now(99.0) == NOON


def test_seconds_left_use_server_time() -> None:
    time = ServerTime(date=NOON, received=100.0)
    event = Event(
        id="A", type="Reboot", status="Scheduled", resources=("m",), not_before=NOON + timedelta(minutes=15)
    )
    assert event.seconds_left(time.now(100.0)) == 900
    assert event.seconds_left(time.now(400.0)) == 600


def test_server_time_stops_at_the_largest_datetime() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert ServerTime(date=last, received=100.0).now(500.0) >= last


@pytest.mark.parametrize("header", [None, "", "yesterday"])
def test_an_answer_without_a_valid_date_has_no_server_time(header: str | None) -> None:
    assert read_date(header, received=0.0) is None
