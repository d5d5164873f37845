"""A process at its thread limit: starting a thread fails, as in a container."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def no_thread() -> Iterator[None]:
    """Make every start of a thread fail with Python's error."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        yield
