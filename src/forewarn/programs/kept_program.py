"""Programs that outlive the agent: each has a keeper, and the next agent finds what it has left."""

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

# Its path stays: an agent that runs on while its package is replaced starts programs by it.
KEEPER = Path(__file__).with_name("keeper.py")
# How often a program is looked at. It may be another agent's child, whose end is not signalled here.
LOOK_EVERY = 0.05
# A program that prints more than this wants a file of its own for it.
MOST_LINES = 1000
# As much of a line as is worth a log entry.
LONGEST_LINE = 2000
# Read at once: so little takes no time.
PIECE = 64 * 1024


class KeptProgram:
    """A program that runs."""

    def __init__(
        self,
        base: Path | None,
        process: ProcessId,
        child: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        """Take where its output and its result are left; None if the disk takes nothing."""
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
        """The last line of its output, as far as it was waited for."""
        return "" if self._output is None else self._output.last_line

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        if self._child is not None:
            return self._child.poll() is None
        return system.process_started(self.process.pid) == self.process.started

    @property
    def has_result(self) -> bool:
        """Whether it is known how it ended."""
        return not isinstance(self._result(), Unwatched)

    async def wait(self, on_line: Callable[[str], None]) -> Exited | NotRun | Unwatched:
        """Wait for its end, and pass on what it says."""
        while self.runs:
            if self._output is not None:
                self._output.read_new(on_line)
            await asyncio.sleep(LOOK_EVERY)
        if self._output is not None:
            left = self._left_behind()
            self._output.finish(on_line, cut=int(left.get("cut", 0)), last=str(left.get("last", "")))
        return self._result()

    async def end(self, on_line: Callable[[str], None] = lambda _: None) -> None:
        """End it, and all it has started."""
        await end_group(self.process.pid, lambda: self.wait(on_line))
        if self._child is not None:
            self._child.wait()

    def leave(self) -> None:
        """Leave it running without this agent."""
        if self._child is not None:
            self._child.returncode = 0  # else Python warns that its end was not awaited

    def _result(self) -> Exited | NotRun | Unwatched:
        match self._left_behind():
            case {"error": why}:
                return NotRun(str(why))
            case {"code": int(code)}:
                return Exited(code=code, last_line=self.last_line)
            case _:
                return self._seen()

    def _left_behind(self) -> Mapping[str, Any]:
        """Read what the keeper has left: how the program ended, and what was cut of its output."""
        if self._base is None:
            return {}
        try:
            result: Mapping[str, Any] = json.loads(_file(self._base, "result").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return result

    def _seen(self) -> Exited | Unwatched:
        """Return how the keeper ended, which is how the program did, unless the keeper was ended itself."""
        code = None if self._child is None else self._child.returncode
        if code is None or code < 0:
            return Unwatched("its process is gone, and how it ended is not known")
        return Exited(code=code, last_line=self.last_line)


class KeptPrograms:
    """All programs, and the folder with their output."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(
        self, name: str, invocation: Invocation, *, written_down: Callable[[ProcessId], None]
    ) -> KeptProgram:
        """Start a program by its keeper, which begins once it is written down.

        On a disk that cannot be written to it runs all the same, its output lost.
        """
        base: Path | None = self._folder / name
        with contextlib.ExitStack() as stack:
            try:
                output: IO[bytes] | int = stack.enter_context(self._emptied(name))
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

    def _emptied(self, name: str) -> IO[bytes]:
        """Remove what an earlier attempt has left, and open a file for the output of this one."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        base = self._folder / name
        for kind in ("output", "result"):
            _file(base, kind).unlink(missing_ok=True)
        # To be appended to: what the keeper cuts off leaves no hole.
        return _file(base, "output").open("a+b")

    def find(self, name: str, process: ProcessId) -> KeptProgram:
        """Return a program that another agent has started; none of its output counts as passed on."""
        return KeptProgram(self._folder / name, process)

    def forget(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Remove the files of programs."""
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if wanted(file.name):
                    file.unlink(missing_ok=True)


def _send(child: "subprocess.Popen[bytes]", order: Mapping[str, Any]) -> None:
    # A keeper that is gone already shows as a program that is lost.
    with contextlib.suppress(OSError):
        if child.stdin is not None:
            child.stdin.write(json.dumps(order).encode() + b"\n")
            child.stdin.close()


def _file(base: Path, kind: str) -> Path:
    return base.with_name(f"{base.name}.{kind}")


class Output:
    """The file that a program writes to; its keeper keeps that short."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0  # up to where it was passed on
        self._passed_on = 0  # how much that was, with what is no longer in it
        self._lines = 0
        self._last = b""

    @property
    def last_line(self) -> str:
        """The last line so far that is not empty."""
        return last_line_of(self._last, longest=LONGEST_LINE)

    def read_new(self, on_line: Callable[[str], None], *, ended: bool = False) -> None:
        """Pass on what is new."""
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._offset:
                    self._offset = 0  # it was shortened
                while self._lines < MOST_LINES and self._pass_on(file, on_line, ended=ended):
                    pass
        except OSError:
            return

    def finish(self, on_line: Callable[[str], None], *, cut: int, last: str) -> None:
        """Pass on the rest of a program that has ended; of what is left out its size and the last line.

        So much was taken out of the file meanwhile, with this as its last line.
        """
        self.read_new(on_line, ended=True)
        with contextlib.suppress(OSError):
            whole = self._path.stat().st_size
            if (left_out := whole + cut - self._passed_on) > 0:
                on_line(f"({left_out} bytes more were said, which are left out here; this is the last line:)")
                self._emit(self._end(whole) or last.encode(), on_line)

    def _end(self, whole: int) -> bytes:
        """Read the last line that was not passed on."""
        with self._path.open("rb") as file:
            file.seek(max(self._offset, whole - PIECE))
            return last_line(file.read(PIECE))

    def _pass_on(self, file: IO[bytes], on_line: Callable[[str], None], *, ended: bool) -> bool:
        """Pass on the lines of the next piece; False if it has none."""
        file.seek(self._offset)
        piece = file.read(PIECE)
        # A line that does not end in a whole piece is cut, and so is the last one.
        whole = len(piece) if ended or len(piece) == PIECE else 0
        lines = piece[: piece.rfind(b"\n") + 1 or whole].splitlines(keepends=True)
        for line in lines[: MOST_LINES - self._lines]:
            self._offset += len(line)
            self._passed_on += len(line)
            self._lines += 1
            self._emit(line, on_line)
        return bool(lines)

    def _emit(self, line: bytes, on_line: Callable[[str], None]) -> None:
        # Cut before anything else looks at it: a line may be as long as the file.
        self._last = line.strip()[: 4 * LONGEST_LINE] or self._last
        on_line(line.rstrip(b"\r\n").decode(errors="replace")[:LONGEST_LINE])
