"""A process that supervises the program of a handler, so that both outlive the agent.

The agent starts this file as a script. It imports nothing of forewarn, to start fast. It reads an order from
stdin, which the agent sends after it has written the keeper's process to the journal. Without an order it
ends and runs nothing. If the output grows large, it keeps only the last line. At the end it writes the exit
code to a file, for this agent or the next one. It also exits with that code, so that the running agent can
read it even if the disk is full.

Programs without a keeper use the functions of this module, too.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

# The agent logs far less than this.
MOST_BYTES = 4 * 1024 * 1024
LAST_BYTES = 4 * 1024
LOOK_EVERY = 0.1
OUTPUT = 1
# The exceptions of Python for a program that cannot be started.
START_ERRORS = (OSError, ValueError, subprocess.SubprocessError, LookupError)


def main() -> None:
    """Read the order, run the program, write the result."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        sys.exit("no order received; nothing was run")
    order = json.loads(line)
    # The signals that end the program are sent to both processes, and the keeper must outlive the program.
    # A handler does that. Ignored signals would be inherited by the program.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    result = _run(order)
    if order["result"] is not None:
        with contextlib.suppress(OSError):
            _write(order["result"], result)
    sys.exit(_exit_code(result))


def _run(order: dict[str, Any]) -> dict[str, Any]:
    try:
        process = subprocess.Popen(order["words"], stdin=subprocess.PIPE, **order["how"])
    except START_ERRORS as error:
        return {"error": why_not_run(order["words"], error)}
    cut, last, stdin = 0, b"", order["input"].encode()
    while process.returncode is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(stdin, timeout=LOOK_EVERY)
        stdin = None
        dropped, line = _truncate_output()
        cut, last = cut + dropped, line or last
    return {"code": process.returncode, "cut": cut, "last": last.decode(errors="replace")}


def _truncate_output() -> tuple[int, bytes]:
    """Empty the output file if it is large; return the number of bytes removed and their last line."""
    with contextlib.suppress(OSError):
        size = os.fstat(OUTPUT).st_size
        if size > MOST_BYTES and hasattr(os, "pread"):
            last = last_line(os.pread(OUTPUT, LAST_BYTES, size - LAST_BYTES))
            size = os.fstat(OUTPUT).st_size  # it may have grown
            os.ftruncate(OUTPUT, 0)
            return size, last
    return 0, b""


def last_line(output: bytes) -> bytes:
    """Return the last line that is not empty."""
    return next((line for line in reversed(output.splitlines()) if line.strip()), b"")


def why_not_run(words: Sequence[str], error: BaseException) -> str:
    """Return the message for a program that cannot be started."""
    return f"{words[0]} cannot be run: {getattr(error, 'strerror', None) or error}"


def _exit_code(result: dict[str, Any]) -> int:
    """Return the exit code as a shell reports it: 127 if not run, 128 + N after signal N."""
    code = result.get("code", 127)
    return int(code if code >= 0 else 128 - code)


def _write(path: str, result: dict[str, Any]) -> None:
    """Write the result atomically."""
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(f"{path}.part", path)


if __name__ == "__main__":
    main()
