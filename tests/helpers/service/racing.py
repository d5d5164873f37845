"""Calls that threads make at the same moment."""

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
# Python's thread switch interval in seconds, far shorter than usual so that steps interleave.
SWITCH_EVERY = 1e-6


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make each call in its own thread, once all threads have started. Return the results in order."""
    line = threading.Barrier(len(calls), timeout=PATIENCE)

    def made(call: Callable[[], T]) -> T:
        line.wait()
        return call()

    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_EVERY)
    try:
        with ThreadPoolExecutor(len(calls)) as threads:
            return list(threads.map(made, calls))
    finally:
        sys.setswitchinterval(usual)
