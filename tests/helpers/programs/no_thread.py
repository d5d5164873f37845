"""A process that may have no more threads: starting one fails, as it does at the limit of a container."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def no_thread() -> Iterator[None]:
    """Let no thread start, with the error of Python."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        yield
