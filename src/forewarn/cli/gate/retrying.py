"""Calls that are repeated until the server answers, for commands that outlive its restarts."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from forewarn.cli import terminal
from forewarn.cli.following.change_stream import is_temporary
from forewarn.cli.gate.interrupts import Interrupts
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import may_happen_after, uncertain_after
from forewarn.clock import monotonic

T = TypeVar("T")

# Between two tries.
PAUSE = 1.0


class RetryingCaller:
    """Repeats calls of a server that is away; prints once that it is, and once that it is back."""

    def __init__(self, interrupts: Interrupts) -> None:
        """Take what may interrupt the waiting."""
        self._interrupts = interrupts
        self.trouble = ""  # why the server cannot be asked, if that is so
        self._may_happen = False  # what is being called for, by a try that had no answer

    def call(self, call: Callable[[], T], *, within: float | None = None, heed: bool = True) -> T:
        """Call until there is an answer; ServerUnreachable if there is none within so many seconds.

        An interrupt ends it between two calls, if it is to be heeded.
        """
        begun, self._may_happen = monotonic(), False
        while (answer := self._try(call)) is None:
            if within is not None and monotonic() - begun >= within:
                raise ServerUnreachable(self._given_up())
            with self._interrupts.heeded() if heed else nullcontext():
                threading.Event().wait(PAUSE)
        return answer

    def _try(self, call: Callable[[], T]) -> T | None:
        try:
            answer = call()
        except ServerUnreachable as error:
            self._lost(error)
        except RequestRefused as refusal:
            if not is_temporary(refusal):
                self._back()
                raise
            self._lost(refusal)
        else:
            self._back()
            return answer
        return None

    def _given_up(self) -> str:
        """Return why there is no answer, for those who say what is to be done about that too."""
        if self._may_happen:
            self.trouble = uncertain_after(self.trouble)
        return self.trouble

    def _lost(self, error: RequestRefused | ServerUnreachable) -> None:
        self._may_happen = self._may_happen or may_happen_after(error)
        known, self.trouble = self.trouble, str(error).splitlines()[0]
        if not known:
            terminal.try_print_error(f"reconnecting: {self.trouble}")

    def _back(self) -> None:
        if self.trouble:
            self.trouble = ""
            terminal.try_print_error("connected again")
