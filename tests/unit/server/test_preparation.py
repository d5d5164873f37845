"""Tests of the listeners that the store calls after a commit."""

import pytest

from forewarn.server.preparation import CommitListeners
from forewarn.store.saved import Saved


def test_a_listener_that_fails_is_logged_and_the_others_are_called(caplog: pytest.LogCaptureFixture) -> None:
    called: list[str] = []

    def fail(_: Saved) -> None:
        raise RuntimeError("injected")

    listeners = CommitListeners(lambda _: called.append("before"), fail)
    listeners.add(lambda _: called.append("after"))
    listeners.notify(())  # must not raise: the caller has to learn that its transaction is committed
    assert called == ["before", "after"]
    assert "a listener failed after a commit" in caplog.text
    assert "RuntimeError: injected" in caplog.text
