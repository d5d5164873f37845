"""Which attempts of the OpenStack driver may send requests to nova."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

import pytest

from forewarn.control.driver import DriverTask, Failed
from forewarn.core.basic_types import Work
from forewarn.drivers.openstack import attempts
from forewarn.drivers.openstack.attempts import ARRIVED_WITHIN, ServerAttempts
from forewarn.drivers.openstack.decisions import UniqueRequest
from tests.helpers.service.racing import at_once
from tests.unit.drivers.openstack.test_openstack_decisions import task

FIRST, FORCED = UniqueRequest.FIRST, UniqueRequest.FORCED
STEP = task(Work.REBOOT)


class Process:
    """A process whose clock the test sets."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.attempts = ServerAttempts(lambda: self.time)

    def sends(self, token: str, request: UniqueRequest = FIRST, *, step: DriverTask = STEP) -> bool:
        """Send a request if allowed, and get the answer."""
        is_sent = self.attempts.spend(step, token, request)
        if is_sent:
            self.attempts.note_answered(step)
        return is_sent


def test_a_token_is_valid_once_for_each_request() -> None:
    process = Process()
    token = process.attempts.new_token()
    assert [process.sends(token) for _ in range(2)] == [True, False]
    assert [process.sends(token, FORCED) for _ in range(2)] == [True, False]


def test_a_token_is_valid_only_in_its_process() -> None:
    token = Process().attempts.new_token()
    assert not Process().sends(token)
    assert not Process().attempts.may_send(STEP, "", FIRST)  # from a version without tokens


def test_a_refused_request_may_be_sent_again_with_the_same_token() -> None:
    process = Process()
    token = process.attempts.new_token()
    assert process.attempts.spend(STEP, token, FIRST)
    process.attempts.give_back(STEP, token, FIRST)
    process.attempts.note_answered(STEP)
    assert process.attempts.is_quiet(STEP, token)
    assert process.sends(token)


def test_a_request_in_transit_is_waited_for() -> None:
    process = Process()
    token = process.attempts.new_token()
    assert process.attempts.is_quiet(STEP, token)
    process.attempts.spend(STEP, token, FIRST)
    process.time += 10 * ARRIVED_WITHIN  # without an answer yet
    assert not process.attempts.is_quiet(STEP, token)
    process.attempts.note_answered(STEP)
    process.time += ARRIVED_WITHIN - 1
    assert not process.attempts.is_quiet(STEP, token)
    process.time += 1
    assert process.attempts.is_quiet(STEP, token)


def test_another_processs_requests_are_waited_for_from_the_first_check() -> None:
    process, token = Process(), Process().attempts.new_token()
    assert not process.attempts.is_quiet(STEP, token)
    process.time += ARRIVED_WITHIN
    assert process.attempts.is_quiet(STEP, token)
    new_token = process.attempts.new_token()
    assert process.attempts.is_quiet(STEP, new_token)
    assert process.sends(new_token)


def test_a_cancelled_attempt_is_never_sent() -> None:
    process = Process()
    token = process.attempts.new_token()
    assert process.attempts.cancel(STEP)
    assert not process.sends(token)
    assert process.attempts.refusal(STEP) == Failed("the attempt was cancelled")
    other = replace(STEP, attempt=3)
    assert process.attempts.refusal(other) is None
    assert process.sends(process.attempts.new_token(), step=other)


def _being_sent(process: Process, token: str) -> None:
    process.attempts.spend(STEP, token, FIRST)


def _just_sent(process: Process, token: str) -> None:
    process.sends(token)


@pytest.mark.parametrize("sent", [_being_sent, _just_sent])
def test_an_attempt_with_a_request_in_transit_is_not_cancelled(sent: Callable[[Process, str], None]) -> None:
    process = Process()
    token = process.attempts.new_token()
    since = process.attempts.quiet_since(STEP, token)
    sent(process, token)
    assert not process.attempts.cancel(STEP, quiet_since=since)
    assert not process.attempts.cancel(STEP, quiet_since=process.attempts.quiet_since(STEP, token))


def test_an_attempt_that_was_sent_since_the_view_is_not_cancelled() -> None:
    process = Process()
    token = process.attempts.new_token()
    looked = process.attempts.quiet_since(STEP, token)
    process.sends(token)
    process.time += 10 * ARRIVED_WITHIN
    assert not process.attempts.cancel(STEP, quiet_since=looked)
    assert process.attempts.cancel(STEP, quiet_since=process.attempts.quiet_since(STEP, token))


def test_an_outdated_attempt_is_refused() -> None:
    process = Process()
    assert process.attempts.refusal(STEP) is None
    assert process.attempts.refusal(replace(STEP, attempt=1)) == Failed(
        "attempt 1 is outdated: attempt 2 of the step has begun"
    )


def test_a_forgotten_token_counts_as_another_processs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "REMEMBERED", 2)
    process = Process()
    first = process.attempts.new_token()
    for _ in range(2):
        process.attempts.new_token()
    assert not process.sends(first)
    assert not process.attempts.is_quiet(STEP, first)


class Met(str):
    """A request at whose lookup two threads meet, if they can."""

    both = threading.Barrier(2, timeout=0.5)

    def __hash__(self) -> int:
        with suppress(threading.BrokenBarrierError):
            self.both.wait()
        return super().__hash__()


def test_one_of_two_threads_may_spend_a_token() -> None:
    attempts = Process().attempts
    spend = partial(attempts.spend, STEP, attempts.new_token(), cast("UniqueRequest", Met(FIRST)))
    assert sorted(at_once([spend, spend])) == [False, True]


def test_concurrent_sending_and_cancelling_never_both_succeed() -> None:
    for number in range(1, 51):
        attempts, step = Process().attempts, replace(STEP, attempt=number)
        token = attempts.new_token()
        sent, called_off = at_once(
            [partial(attempts.spend, step, token, FIRST), partial(attempts.cancel, step)]
        )
        assert sent != called_off
