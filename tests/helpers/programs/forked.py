"""Programs that a process has become which had loaded forewarn before (`fork_server.py`)."""

import atexit
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from tests import ROOT
from tests.helpers.database import stores

# The program is called at the bottom of the stack, as by a script: so Python ends it as it ends any other.
SERVE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.helpers.programs.fork_server import serve
sys.path.pop(0)
serve(int(sys.argv[1]))()
"""
# What Python and the libraries look at when they are loaded: the beginnings of names.
AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TYPER_", "_TYPER", "FORCE_COLOR", "PY_COLORS", "TERMINAL_WIDTH")
# Where the process that forks is asked, for the processes of a test run.
SHARED = "FOREWARN_TEST_FORKS"


class Forked:
    """A running program, to be used as `subprocess.Popen` is; it reads nothing and writes text."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.args = list(command)
        self.returncode: int | None = None
        self._reading = threading.Lock()
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        asked = {
            "command": self.args,
            "folder": str(folder),
            "environment": dict(environment),
            "fsync": stores.fsync,
            "umask": None,
        }
        self._answer = _ask(json.dumps(asked).encode() + b"\n", [nothing, out_end, err_end])
        weakref.finalize(self, os.close, self._answer)
        for file in (nothing, out_end, err_end):
            os.close(file)
        self.stdin: IO[str] | None = None
        self.stdout, self.stderr = (os.fdopen(file, encoding="utf-8") for file in (out, err))
        self.pid = self._reported("begun")

    def poll(self) -> int | None:
        """Return the exit code, once there is one."""
        return self._exit_code(within=0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code."""
        code = self._exit_code(within=timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read everything that it says, and wait for the end."""
        said: dict[IO[str], str] = {}

        def read(stream: IO[str]) -> None:
            with stream:
                said[stream] = stream.read()

        readers = [threading.Thread(target=read, args=(each,)) for each in (self.stdout, self.stderr)]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join()
        return said[self.stdout], said[self.stderr]

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self.send_signal(signal.SIGKILL)

    def _exit_code(self, *, within: float | None) -> int | None:
        if self.returncode is None and select.select([self._answer], [], [], within)[0]:
            with self._reading:
                if self.returncode is None:
                    self.returncode = self._reported("ended")
        return self.returncode

    def _reported(self, what: str) -> int:
        line = b""
        while not line.endswith(b"\n"):
            part = os.read(self._answer, 1)
            assert part, f"the process that forks is gone: {self.args}"
            line += part
        reported, number = line.decode().split()
        assert reported == what, f"{self.args} {reported}: {number}"
        return int(number)


def can_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a program that is not started anew can have this environment."""
    return _at_start(environment) == _at_start(plain_environment())


def plain_environment() -> dict[str, str]:
    """Return the environment of the tests, without settings of forewarn."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FOREWARN_")}


def shell_command(path: str) -> str:
    """Write a command for scripts that does what the `forewarn` command at a path does."""
    client = Path(__file__).with_name("forked_command.py")
    return shlex.join([sys.executable, "-I", "-S", str(client), _address()[1:].decode(), path])


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


def _ask(line: bytes, files: Sequence[int]) -> int:
    """Ask for a process; returns the file that its id, and later its exit code, will be read from."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(_address())
        sent = socket.send_fds(asking, [line], files)
        asking.sendall(line[sent:])
        return asking.detach()


def share() -> None:
    """Let the processes that this one starts ask the same process to fork; it is loading already."""
    os.environ[SHARED] = _address()[1:].decode()


@cache
def _address() -> bytes:
    """Return where the process that forks is asked; it is started, unless another process shares its own."""
    shared = os.environ.get(SHARED)
    return _started() if shared is None else b"\0" + shared.encode()


def _started() -> bytes:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")  # the system gives it a name that no other has
        listener.listen()
        number = listener.fileno()
        server = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE, str(number)],
            env=plain_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[number],
        )
        atexit.register(server.communicate)  # closes its stdin, which ends it
        address: bytes = listener.getsockname()
        return address
