"""Programs that outlive the agent: each has a keeper, whose files the next agent reads."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from forewarn.platform import system
from forewarn.programs.keeper import last_line
from forewarn.programs.program import (
    Exited,
    Invocation,
    NotRun,
    ProcessId,
    Unwatched,
    end_group,
    last_line_of,
)

# The path must not change between releases: a running agent whose package is upgraded uses the new file.
KEEPER = Path(__file__).with_name("keeper.py")
# How often a program is polled. It may be a child of another agent, so its end is not signalled here.
LOOK_EVERY = 0.05
# Further lines are not logged; a program with more output should write a file of its own.
MOST_LINES = 1000
# The rest of a longer line is not logged.
LONGEST_LINE = 2000
# Bytes read at once.
PIECE = 64 * 1024


class KeptProgram:
    """A started program."""

    def __init__(
        self,
        base: Path | None,
        process: ProcessId,
        child: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        """Take the base path of its output and result files; None if the disk cannot be written."""
        self.process = process
        self._base = base
        self._child = child
        self._output = None if base is None else Output(_file(base, "output"))

    @property
    def keeps_output(self) -> bool:
        """Whether its output is kept."""
        return self._base is not None

    @property
    def last_line(self) -> str:
        """The last line of the output that has been read."""
        return "" if self._output is None else self._output.last_line

    @property
    def runs(self) -> bool:
        """Whether it is running."""
        if self._child is not None:
            return self._child.poll() is None
        return system.process_started(self.process.pid) == self.process.started

    @property
    def has_result(self) -> bool:
        """Whether its exit code is known."""
        return not isinstance(self._result(), Unwatched)

    async def wait(self, on_line: Callable[[str], None]) -> Exited | NotRun | Unwatched:
        """Wait for its end, and call `on_line` with each line of output."""
        while self.runs:
            if self._output is not None:
                self._output.read_new(on_line)
            await asyncio.sleep(LOOK_EVERY)
        if self._output is not None:
            result = self._read_result()
            self._output.finish(on_line, cut=int(result.get("cut", 0)), last=str(result.get("last", "")))
        return self._result()

    async def end(self, on_line: Callable[[str], None] = lambda _: None) -> None:
        """End it and its process group."""
        await end_group(self.process.pid, lambda: self.wait(on_line))
        if self._child is not None:
            self._child.wait()

    def leave(self) -> None:
        """Let it run on after this agent has ended."""
        if self._child is not None:
            self._child.returncode = 0  # prevents Python's warning about a child that was not awaited

    def _result(self) -> Exited | NotRun | Unwatched:
        match self._read_result():
            case {"error": why}:
                return NotRun(str(why))
            case {"code": int(code)}:
                return Exited(code=code, last_line=self.last_line)
            case _:
                # The keeper exits with the code of the program, unless a signal ended the keeper.
                ended = None if self._child is None else self._child.returncode
                if ended is None or ended < 0:
                    return Unwatched("its process has ended with an unknown exit code")
                return Exited(code=ended, last_line=self.last_line)

    def _read_result(self) -> Mapping[str, Any]:
        """Read the file of the keeper; return nothing if it is missing or broken."""
        if self._base is None:
            return {}
        try:
            result: Mapping[str, Any] = json.loads(_file(self._base, "result").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return result


class KeptPrograms:
    """Starts and finds programs; their files are in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(
        self, name: str, invocation: Invocation, *, written_down: Callable[[ProcessId], None]
    ) -> KeptProgram:
        """Start a keeper, call `written_down` with its process, then let it run the program.

        If the disk cannot be written, the program runs but its output is lost.
        """
        base: Path | None = self._folder / name
        with contextlib.ExitStack() as stack:
            try:
                output: IO[bytes] | int = stack.enter_context(self._new_output(name))
            except OSError:
                base, output = None, subprocess.DEVNULL
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(KEEPER)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                **system.own_group(),
            )
        process = ProcessId(child.pid, system.process_started(child.pid) or "")
        written_down(process)
        result = None if base is None else str(_file(base, "result"))
        input_ = invocation.input.decode()
        _send(
            child, {"words": list(invocation.words), "input": input_, "how": invocation.how, "result": result}
        )
        return KeptProgram(base, process, child)

    def _new_output(self, name: str) -> IO[bytes]:
        """Remove the files of an earlier attempt, and open the output file."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        base = self._folder / name
        for kind in ("output", "result"):
            _file(base, kind).unlink(missing_ok=True)
        # In append mode, so that a truncation by the keeper leaves no hole in the file.
        return _file(base, "output").open("a+b")

    def find(self, name: str, process: ProcessId) -> KeptProgram:
        """Return a program that another agent has started; all its output counts as unread."""
        return KeptProgram(self._folder / name, process)

    def forget(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Remove the files of programs."""
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if wanted(file.name):
                    file.unlink(missing_ok=True)


def _send(child: "subprocess.Popen[bytes]", order: Mapping[str, Any]) -> None:
    # If the keeper has ended, `wait` reports an unknown exit code.
    with contextlib.suppress(OSError):
        if child.stdin is not None:
            child.stdin.write(json.dumps(order).encode() + b"\n")
            child.stdin.close()


def _file(base: Path, kind: str) -> Path:
    return base.with_name(f"{base.name}.{kind}")


class Output:
    """Reads the output file of a program, which the keeper may truncate."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0  # how far the file has been read
        self._read_bytes = 0  # all bytes that have been read, including truncated ones
        self._lines = 0
        self._last = b""

    @property
    def last_line(self) -> str:
        """The last line so far that is not empty."""
        return last_line_of(self._last, longest=LONGEST_LINE)

    def read_new(self, on_line: Callable[[str], None], *, ended: bool = False) -> None:
        """Read the new lines."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < self._offset:
                self._offset = 0  # the keeper has truncated the file
            while self._lines < MOST_LINES and self._read_piece(file, on_line, ended=ended):
                pass

    def finish(self, on_line: Callable[[str], None], *, cut: int, last: str) -> None:
        """Read the rest after the program has ended; if there is too much, only its size and last line.

        `cut` is the number of bytes that the keeper has removed, and `last` their last line.
        """
        self.read_new(on_line, ended=True)
        with contextlib.suppress(OSError):
            whole = self._path.stat().st_size
            if (skipped := whole + cut - self._read_bytes) > 0:
                on_line(f"({skipped} more bytes of output are not shown; the last line is:)")
                self._emit(self._unread_last_line(whole) or last.encode(), on_line)

    def _unread_last_line(self, whole: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(max(self._offset, whole - PIECE))
            return last_line(file.read(PIECE))

    def _read_piece(self, file: IO[bytes], on_line: Callable[[str], None], *, ended: bool) -> bool:
        """Read the lines of the next piece; return False if it has none."""
        file.seek(self._offset)
        piece = file.read(PIECE)
        # A line that is longer than a piece is split. At the end the last line may lack its newline.
        whole = len(piece) if ended or len(piece) == PIECE else 0
        lines = piece[: piece.rfind(b"\n") + 1 or whole].splitlines(keepends=True)
        for line in lines[: MOST_LINES - self._lines]:
            self._offset += len(line)
            self._read_bytes += len(line)
            self._lines += 1
            self._emit(line, on_line)
        return bool(lines)

    def _emit(self, line: bytes, on_line: Callable[[str], None]) -> None:
        # Shorten it first: a line may be as long as the file.
        self._last = line.strip()[: 4 * LONGEST_LINE] or self._last
        on_line(line.rstrip(b"\r\n").decode(errors="replace")[:LONGEST_LINE])
