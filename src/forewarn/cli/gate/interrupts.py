"""Signals that stop a gate, and calls that are retried until the server answers."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any, TypeVar

from forewarn.cli import terminal
from forewarn.cli.live.change_stream import is_temporary
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import may_have_taken_effect, unknown_outcome_message
from forewarn.clock import monotonic

# SIGHUP reports a closed terminal, on POSIX systems only.
SIGNALS = tuple(number for number in signal.Signals if number.name in {"SIGINT", "SIGTERM", "SIGHUP"})

DEFERRED = b"forewarn: interrupted; finishing the current call to the server first\n"

T = TypeVar("T")
RETRY_SECONDS = 1.0
# The limit for the last calls of a gate that exits.
LAST_SECONDS = 8.0


class Interrupts:
    """A block in which signals raise KeyboardInterrupt only where that is safe.

    A signal that arrives elsewhere is deferred to the next safe place. Later signals change nothing.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._raising = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in SIGNALS:
            # A signal that is ignored, such as by nohup, stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    @property
    def first(self) -> int | None:
        """The first signal, if any."""
        return self._first

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise KeyboardInterrupt for a signal in this block, and for a deferred one."""
        before, self._raising = self._raising, True
        try:
            if self._first is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._raising = before

    def _take(self, number: int, _: FrameType | None) -> None:
        if self._first is not None:
            return
        self._first = number
        if self._raising:
            raise KeyboardInterrupt
        # print is not reentrant, and the signal may have interrupted it.
        os.write(2, DEFERRED)


class RetryingCaller:
    """Retries calls while the server is unreachable, and prints when that begins and ends."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self.trouble = ""  # why the server is unreachable; "" if it is not
        self._may_happen = False  # whether a try without an answer may still take effect

    def call(self, call: Callable[[], T], *, within: float | None = None, interruptible: bool = True) -> T:
        """Call until the server answers; raise ServerUnreachable after `within` seconds.

        If `interruptible`, an interrupt ends it between two calls.
        """
        begun, self._may_happen = monotonic(), False
        while (answer := self._try(call)) is None:
            if within is not None and monotonic() - begun >= within:
                raise ServerUnreachable(self._given_up())
            with self._interrupts.raising() if interruptible else nullcontext():
                threading.Event().wait(RETRY_SECONDS)
        return answer

    def call_last(self, call: Callable[[], T]) -> T:
        """Make a last call of a gate that exits: briefly, and without interrupts."""
        return self.call(call, within=LAST_SECONDS, interruptible=False)

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
