"""Limits of each caller of the operator API."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from starlette.exceptions import HTTPException

from forewarn.api import limits
from forewarn.api.limits import (
    MOST_CALLERS,
    BodyBudget,
    BodyLimits,
    CallerLimits,
    CallerTable,
    CallLimit,
    CallRefusals,
    LimitedCaller,
    LimitExceeded,
    caller_at,
)

CI, BOB = LimitedCaller("token", "ci"), LimitedCaller("token", "bob")
HERE = caller_at("127.0.0.1", is_local=True)


class Time:
    """A clock that the test advances."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


def table(time: Time, **wanted: float) -> CallerTable:
    return CallerTable(CallerLimits(**wanted), CallRefusals(monotonic=time), monotonic=time)  # type: ignore[arg-type]


def admitted(act: Callable[[], object], *, tries: int) -> int:
    """Return how many of several requests are accepted."""
    count = 0
    for _ in range(tries):
        try:
            act()
        except LimitExceeded:
            continue
        count += 1
    return count


def test_a_burst_is_twice_the_rate_and_then_the_rate_holds(time: Time) -> None:
    callers = table(time, rate=10)
    assert admitted(lambda: callers.admit(CI), tries=50) == 20
    time.seconds += 1
    assert admitted(lambda: callers.admit(CI), tries=50) == 10


def test_the_limits_of_callers_are_independent(time: Time) -> None:
    callers = table(time, rate=10)
    admitted(lambda: callers.admit(CI), tries=50)
    assert admitted(lambda: callers.admit(BOB), tries=50) == 20


def test_a_refusal_names_the_caller_the_wait_and_the_setting(time: Time) -> None:
    callers = table(time, rate=0.1)
    callers.admit(CI)
    with pytest.raises(LimitExceeded) as refused:
        callers.admit(CI)
    assert refused.value.detail == (
        "rate of token 'ci' is exceeded (0.1 a second): try again in 10 s; [operator] rate raises it"
    )
    assert refused.value.headers == {"Retry-After": "10"}


def test_concurrent_requests_are_limited(time: Time) -> None:
    callers = table(time, rate=0, calls=2)
    with callers.call(CI):
        with callers.call(CI):
            with pytest.raises(
                LimitExceeded, match=r"token 'ci' has 2 open requests, .*; \[operator\] calls raises it"
            ):
                callers.call(CI).__enter__()
            with callers.call(BOB), callers.call(CI, is_stream=True):
                pass
        with callers.call(CI):
            pass


def test_open_streams_are_limited(time: Time) -> None:
    callers = table(time, rate=0, streams=1)
    with callers.call(CI, is_stream=True):
        with pytest.raises(LimitExceeded, match="token 'ci' has 1 open streams"):
            callers.call(CI, is_stream=True).__enter__()
        with callers.call(CI):
            pass
    with callers.call(CI, is_stream=True):
        pass


def test_a_limit_of_zero_is_no_limit(time: Time) -> None:
    callers = table(time, rate=0, calls=0, streams=0)
    with ExitStack() as open_calls:
        for is_stream in (False, True):
            for _ in range(1000):
                open_calls.enter_context(callers.call(CI, is_stream=is_stream))


def test_without_tokens_local_operators_have_ten_times_the_limits(time: Time) -> None:
    callers = table(time, rate=10)
    assert admitted(lambda: callers.admit(HERE), tries=500) == 200
    assert admitted(lambda: callers.admit(caller_at("127.0.0.1")), tries=500) == 20


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8::1", "2001:db8::2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::1", True),
        ("", "", True),
    ],
)
def test_a_caller_is_its_address_or_its_ipv6_network(one: str, other: str, same: bool) -> None:
    assert (caller_at(one) == caller_at(other)) is same


def test_idle_addresses_are_forgotten(time: Time) -> None:
    callers = table(time, rate=100)
    with callers.call(BOB):
        for number in range(3 * MOST_CALLERS):
            time.seconds += 0.02
            callers.admit(LimitedCaller("address", str(number)))
        assert len(callers) <= MOST_CALLERS + 1


def test_addresses_beyond_the_maximum_share_one_allowance(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_CALLERS", 10)
    callers = table(time, rate=10)
    for number in range(10):
        callers.admit(LimitedCaller("address", str(number)))
    strangers = (LimitedCaller("address", f"late-{number}") for number in range(100))
    assert admitted(lambda: callers.admit(next(strangers)), tries=100) == 20
    assert len(callers) == 11
    # A caller with a token is not affected.
    assert admitted(lambda: callers.admit(CI), tries=50) == 20


def test_refusals_are_counted_and_logged_once(time: Time, caplog: pytest.LogCaptureFixture) -> None:
    refusals = CallRefusals(monotonic=time)
    for seconds in (0, 30, 30, 61):
        time.seconds += seconds
        refusals.note(CallLimit.RATE, "rate of token 'ci' is exceeded")
    assert refusals.counts[CallLimit.RATE] == 4
    assert [record.getMessage() for record in caplog.records] == [
        "operator requests are refused: rate of token 'ci' is exceeded"
    ] * 2


# Bodies

SIZES = BodyLimits(usual=100, fleet=1000, free=10, all_of_projects=150, all_of_fleet=1000)


def test_a_body_is_refused_at_the_first_byte_too_many() -> None:
    bodies = BodyBudget(SIZES, CallRefusals())
    with bodies.reading(100, of_project=True) as take:
        take(100)
        with pytest.raises(HTTPException, match="larger than 100 bytes") as refused:
            take(1)
    assert refused.value.status_code == 413


def test_the_total_size_of_bodies_is_limited_until_the_responses_end() -> None:
    bodies = BodyBudget(SIZES, CallRefusals())
    with bodies.reading(100, of_project=True) as first, bodies.reading(100, of_project=True) as second:
        first(100)
        second(70)
        with pytest.raises(LimitExceeded, match="exceed 150 bytes, the maximum: try again in 1 s"):
            second(30)
    with bodies.reading(100, of_project=True) as third:
        third(100)


def test_projects_cannot_use_up_the_room_for_small_bodies_and_for_operators() -> None:
    bodies = BodyBudget(SIZES, CallRefusals())
    with bodies.reading(200, of_project=True) as large:
        large(160)
        with bodies.reading(100, of_project=True) as small:
            small(10)
        with bodies.reading(1000, of_project=False) as fleet:
            fleet(1000)
