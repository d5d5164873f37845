"""A signal between threads whose sender never blocks."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Signal:
    """Calls every listener when it is sent, on the sender's thread: listeners must be quick."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[object, Callable[[], None]] = {}  # lock: self._lock

    @property
    def heard(self) -> bool:
        """Whether the signal has a listener."""
        return bool(self._listeners)

    def send(self) -> None:
        """Call every listener."""
        with self._lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            listener()

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call a listener for each signal during the block."""
        key = object()
        with self._lock:
            self._listeners[key] = listener
        try:
            yield
        finally:
            with self._lock:
                del self._listeners[key]


def waking(event: asyncio.Event) -> Callable[[], None]:
    """Return a listener that sets an event of the running loop from any thread."""
    loop = asyncio.get_running_loop()

    def listener() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(event.set)

    return listener
