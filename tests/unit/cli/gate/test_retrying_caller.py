"""The gate's calls, which are repeated until the server answers or nobody can wait any longer."""

from collections.abc import Callable

import pytest

from forewarn.cli.gate import interrupts as interrupts_module
from forewarn.cli.gate.interrupts import Interrupts, RetryingCaller
from forewarn.client.replies import RequestRefused, ServerUnreachable

SILENT = RequestRefused(
    "fleet does not answer; nothing was done by this call", status=503, code="Unavailable"
)
UNCERTAIN = RequestRefused("fleet is too slow", status=503, code="Uncertain")
CUT = ServerUnreachable("No server answers at http://here (reset).", may_have_changed=True)


@pytest.fixture(autouse=True)
def three_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look at the clock take a second, and a pause none."""
    seconds = iter(range(1000))
    monkeypatch.setattr(interrupts_module, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(interrupts_module, "monotonic", lambda: float(next(seconds)))


def failing(*errors: Exception) -> Callable[[], object]:
    left = list(errors)

    def call() -> object:
        raise left.pop(0)

    return call


@pytest.mark.parametrize("first", [UNCERTAIN, CUT])
def test_what_may_still_happen_is_why_it_was_given_up(first: Exception) -> None:
    caller = RetryingCaller(Interrupts())
    with pytest.raises(ServerUnreachable, match="it may still happen; the last try ended with: fleet"):
        caller.call(failing(first, SILENT, SILENT), within=3)
    assert caller.trouble.startswith("it is not known whether this was done")


def test_a_call_is_not_doubted_because_of_the_one_before() -> None:
    caller = RetryingCaller(Interrupts())
    with pytest.raises(ServerUnreachable):
        caller.call(failing(UNCERTAIN, SILENT, SILENT), within=3)
    with pytest.raises(ServerUnreachable, match=r"^fleet does not answer"):
        caller.call(failing(SILENT, SILENT, SILENT), within=3)
