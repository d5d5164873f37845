"""Programs that handlers run: they outlive the agent, and the next one finds them."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from forewarn.agent.journal.tracked_events import ProcessId
from forewarn.agent.programs.output import Output
from forewarn.sdk.platform import system

# Its path stays: an agent that runs on while its package is replaced starts programs by it.
KEEPER = Path(__file__).parent.with_name("keeper.py")
# How often a program is looked at. It may be another agent's child, whose end is not signalled here.
LOOK_EVERY = 0.05
# For a program to end when it is asked to.
GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The program to be run, and how."""

    words: Sequence[str]
    environment: Mapping[str, str]
    identity: Mapping[str, Any] = field(default_factory=dict)  # its user, as `system.identity_of` returns
    input: str


@dataclass(frozen=True, slots=True)
class Exited:
    """It ended by itself, with this code; negative for a signal."""

    code: int


@dataclass(frozen=True, slots=True)
class NotRun:
    """It could not be started."""

    why: str


@dataclass(frozen=True, slots=True)
class Lost:
    """It is gone, and how it ended is unknown."""


class ProgramRun:
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
        return not isinstance(self._result(), Lost)

    async def wait(self, on_line: Callable[[str], None]) -> Exited | NotRun | Lost:
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
        for force in (False, True):
            system.end_tree(self.process.pid, force=force)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.wait(on_line), GRACE_SECONDS)
                break
        system.end_tree(self.process.pid, force=True)  # what it has left behind
        if self._child is not None:
            self._child.wait()

    def leave(self) -> None:
        """Leave it running without this agent."""
        if self._child is not None:
            self._child.returncode = 0  # else Python warns that its end was not awaited

    def _result(self) -> Exited | NotRun | Lost:
        match self._left_behind():
            case {"error": why}:
                return NotRun(str(why))
            case {"code": int(code)}:
                return Exited(code)
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

    def _seen(self) -> Exited | Lost:
        """Return how the keeper ended, which is how the program did, unless the keeper was ended itself."""
        code = None if self._child is None else self._child.returncode
        return Lost() if code is None or code < 0 else Exited(code)


class ProgramRuns:
    """All programs, and the folder with their output."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, name: str, order: Invocation, *, written_down: Callable[[ProcessId], None]) -> ProgramRun:
        """Start a program by its keeper, which begins once it is written down.

        On a disk that cannot be written to it runs all the same, its output lost.
        """
        base: Path | None = self._folder / name
        with contextlib.ExitStack() as stack:
            try:
                output: IO[bytes] | int = stack.enter_context(self._emptied(name))
            except OSError:
                base, output = None, subprocess.DEVNULL
            child = subprocess.Popen(  # noqa: S603 - our own script
                [sys.executable, "-I", "-S", str(KEEPER)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                **system.own_group(),
            )
        process = ProcessId(child.pid, system.process_started(child.pid) or "")
        written_down(process)
        _send(child, {**_plain(order), "result": None if base is None else str(_file(base, "result"))})
        return ProgramRun(base, process, child)

    def _emptied(self, name: str) -> IO[bytes]:
        """Remove what an earlier attempt has left, and open a file for the output of this one."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        base = self._folder / name
        for kind in ("output", "result"):
            _file(base, kind).unlink(missing_ok=True)
        # To be appended to: what the keeper cuts off leaves no hole.
        return _file(base, "output").open("a+b")

    def find(self, name: str, process: ProcessId) -> ProgramRun:
        """Return a program that another agent has started; none of its output counts as passed on."""
        return ProgramRun(self._folder / name, process)

    def forget(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Remove the files of programs."""
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if wanted(file.name):
                    file.unlink(missing_ok=True)


def _plain(order: Invocation) -> dict[str, Any]:
    own = order.identity.get("env", {})
    return {
        "words": list(order.words),
        "input": order.input,
        "how": {**order.identity, "env": {**order.environment, **own}},
    }


def _send(child: "subprocess.Popen[bytes]", order: Mapping[str, Any]) -> None:
    # A keeper that is gone already shows as a program that is lost.
    with contextlib.suppress(OSError):
        if child.stdin is not None:
            child.stdin.write(json.dumps(order).encode() + b"\n")
            child.stdin.close()


def _file(base: Path, kind: str) -> Path:
    return base.with_name(f"{base.name}.{kind}")
