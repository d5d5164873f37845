"""Calls that are repeated until the server answers, and the signals that may end the waiting."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any, TypeVar

from forewarn.cli import terminal
from forewarn.cli.following.change_stream import is_temporary
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import may_have_taken_effect, unknown_outcome_message
from forewarn.clock import monotonic

# SIGHUP, when a terminal is gone, is sent on POSIX systems only.
SIGNALS = tuple(number for number in signal.Signals if number.name in {"SIGINT", "SIGTERM", "SIGHUP"})

HELD_BACK = b"forewarn: interrupted: what has been asked of the server is seen through first\n"

T = TypeVar("T")
# Between two tries.
PAUSE = 1.0
# A gate that is interrupted or at its end does not wait for long.
LAST_SECONDS = 8.0


class Interrupts:
    """Takes the signals that end a program until the block ends: one stops it where it may be stopped.

    One that comes elsewhere is held back, and any after the first changes nothing.
    """

    def __init__(self) -> None:
        self._came: int | None = None
        self._heeded = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in SIGNALS:
            # A signal that was ignored from the start, as by nohup, stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    @property
    def came(self) -> int | None:
        """The signal that came first, if one has come."""
        return self._came

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Let an interrupt end the block with KeyboardInterrupt, also one that came before."""
        before, self._heeded = self._heeded, True
        try:
            if self._came is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._heeded = before

    def _take(self, number: int, _: FrameType | None) -> None:
        if self._came is not None:
            return
        self._came = number
        if self._heeded:
            raise KeyboardInterrupt
        # Not print, which this may have come in the middle of.
        os.write(2, HELD_BACK)


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

    def insist(self, call: Callable[[], T]) -> T:
        """Call for a gate that ends: not for long, and no interrupt ends it."""
        return self.call(call, within=LAST_SECONDS, heed=False)

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
            self.trouble = unknown_outcome_message(self.trouble)
        return self.trouble

    def _lost(self, error: RequestRefused | ServerUnreachable) -> None:
        self._may_happen = self._may_happen or may_have_taken_effect(error)
        known, self.trouble = self.trouble, str(error).splitlines()[0]
        if not known:
            terminal.try_print_error(f"reconnecting: {self.trouble}")

    def _back(self) -> None:
        if self.trouble:
            self.trouble = ""
            terminal.try_print_error("connected again")
