"""Supervises a program that a handler runs, as a process of its own, so that both outlive the agent.

It is started as a script, by its path, and imports nothing of forewarn: it must be quick. It waits for its
order on stdin, which comes when the agent has written its process to the journal; without one it ends, and
nothing was run. Of much output it keeps the last line alone. When the program is over it leaves its exit code
in a file, for this agent or the next, and ends with that code itself: on a disk that takes no file, this
agent still knows.

Programs that run without a keeper use its functions too.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

# Far more than any log takes of it.
MOST_BYTES = 4 * 1024 * 1024
LAST_BYTES = 4 * 1024
LOOK_EVERY = 0.1
OUTPUT = 1
# What Python raises if a program cannot be started.
START_ERRORS = (OSError, ValueError, subprocess.SubprocessError, LookupError)


def main() -> None:
    """Take the order, run the program, leave the result."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        sys.exit("no order came, nothing was run")
    order = json.loads(line)
    # A signal that ends the program is sent to both; the one that reports must end after it. A handler of
    # signals, unlike ignoring them, is not inherited by the program.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    result = _run(order)
    if order["result"] is not None:
        with contextlib.suppress(OSError):
            _leave(order["result"], result)
    sys.exit(_exit_code(result))


def _run(order: dict[str, Any]) -> dict[str, Any]:
    try:
        process = subprocess.Popen(order["words"], stdin=subprocess.PIPE, **order["how"])
    except START_ERRORS as error:
        return {"error": why_not_run(order["words"], error)}
    cut, last, given = 0, b"", order["input"].encode()  # whether it reads that or not
    while process.returncode is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(given, timeout=LOOK_EVERY)
        given = None
        gone, line = _emptied()
        cut, last = cut + gone, line or last
    return {"code": process.returncode, "cut": cut, "last": last.decode(errors="replace")}


def _emptied() -> tuple[int, bytes]:
    """Drop the output so far, if that is much; returns how much it was, and its last line."""
    with contextlib.suppress(OSError):
        size = os.fstat(OUTPUT).st_size
        if size > MOST_BYTES and hasattr(os, "pread"):
            last = last_line(os.pread(OUTPUT, LAST_BYTES, size - LAST_BYTES))
            size = os.fstat(OUTPUT).st_size  # with what came meanwhile
            os.ftruncate(OUTPUT, 0)
            return size, last
    return 0, b""


def last_line(said: bytes) -> bytes:
    """Return the last line that is not empty."""
    return next((line for line in reversed(said.splitlines()) if line.strip()), b"")


def why_not_run(words: Sequence[str], error: BaseException) -> str:
    """Return why a program cannot be started."""
    return f"{words[0]} cannot be run: {getattr(error, 'strerror', None) or error}"


def _exit_code(result: dict[str, Any]) -> int:
    """Return a code as shells do: a program that was not run, and one that a signal ended, have codes too."""
    code = result.get("code", 127)
    return int(code if code >= 0 else 128 - code)


def _leave(path: str, result: dict[str, Any]) -> None:
    """Write the result whole, or not at all."""
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(f"{path}.part", path)


if __name__ == "__main__":
    main()
