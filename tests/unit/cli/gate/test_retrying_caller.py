"""The gate retries its calls until the server answers or the time is over."""

from collections.abc import Callable

import pytest

from forewarn.cli.gate import interrupts as interrupts_module
from forewarn.cli.gate.interrupts import Interrupts, RetryingCaller
from forewarn.client.replies import RequestRefused, ServerUnreachable

UNAVAILABLE = RequestRefused(
    "fleet does not answer; nothing was done by this call", status=503, code="Unavailable"
)
UNCERTAIN = RequestRefused("fleet is too slow", status=503, code="Uncertain")
CUT = ServerUnreachable("No server answers at http://here (reset).", may_have_changed=True)


@pytest.fixture(autouse=True)
def three_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading of the clock takes a second, and pauses take no time."""
    seconds = iter(range(1000))
    monkeypatch.setattr(interrupts_module, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(interrupts_module, "monotonic", lambda: float(next(seconds)))


def failing(*errors: Exception) -> Callable[[], object]:
    left = list(errors)

    def call() -> object:
        raise left.pop(0)

    return call


@pytest.mark.parametrize("first", [UNCERTAIN, CUT])
def test_the_error_says_that_a_call_may_still_take_effect(first: Exception) -> None:
    caller = RetryingCaller(Interrupts())
    with pytest.raises(ServerUnreachable, match="it may still happen; the last try ended with: fleet"):
        caller.call(failing(first, UNAVAILABLE, UNAVAILABLE), within=3)
    assert caller.trouble.startswith("it is not known whether this was done")


def test_an_uncertain_call_does_not_affect_the_next_one() -> None:
    caller = RetryingCaller(Interrupts())
    with pytest.raises(ServerUnreachable):
        caller.call(failing(UNCERTAIN, UNAVAILABLE, UNAVAILABLE), within=3)
    with pytest.raises(ServerUnreachable, match=r"^fleet does not answer"):
        caller.call(failing(UNAVAILABLE, UNAVAILABLE, UNAVAILABLE), within=3)
