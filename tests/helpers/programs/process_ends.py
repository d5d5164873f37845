"""Wait for processes that are not children of the tests."""

import os
import select


def await_end(pid: int) -> None:
    """Wait for the end of a process that is not a child."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        waiting = select.poll()
        waiting.register(watched, select.POLLIN)
        assert waiting.poll(60_000), f"{pid} lives"
    finally:
        os.close(watched)
