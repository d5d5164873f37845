"""Ctrl-C, SIGTERM and SIGHUP, obeyed only where the work can be left."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# SIGHUP, when a terminal is gone, is sent on POSIX systems only.
SIGNALS = tuple(number for number in signal.Signals if number.name in {"SIGINT", "SIGTERM", "SIGHUP"})

HELD_BACK = b"forewarn: interrupted: what has been asked of the server is seen through first\n"


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
