"""Programs forked from a process that has already loaded forewarn (`fork_server.py`)."""

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

# Calls the program at the bottom of the stack, like a script, so Python exits normally.
SERVE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.helpers.programs.fork_server import serve
sys.path.pop(0)
serve(int(sys.argv[1]))()
"""
# Prefixes of environment variables that Python and its libraries read while they load.
AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TYPER_", "_TYPER", "FORCE_COLOR", "PY_COLORS", "TERMINAL_WIDTH")
# The address of the fork server, for all processes of a test run.
SHARED = "FOREWARN_TEST_FORKS"


class Forked:
    """A running program with the interface of `subprocess.Popen`. It reads no input and writes text."""

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
        """Return the exit code, or None while it runs."""
        return self._exit_code(within=0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code."""
        code = self._exit_code(within=timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read the whole output, and wait for the end."""
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
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
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
            assert part, f"the fork server is gone: {self.args}"
            line += part
        reported, number = line.decode().split()
        assert reported == what, f"{self.args} {reported}: {number}"
        return int(number)


def can_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a forked program can have this environment."""
    return _at_start(environment) == _at_start(plain_environment())


def plain_environment() -> dict[str, str]:
    """Return the environment of the tests without settings of forewarn."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FOREWARN_")}


def shell_command(path: str) -> str:
    """Return a shell command that is equivalent to the `forewarn` executable at a path."""
    client = Path(__file__).with_name("forked_command.py")
    return shlex.join([sys.executable, "-I", "-S", str(client), _address()[1:].decode(), path])


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


def _ask(line: bytes, files: Sequence[int]) -> int:
    """Request a process. Return the file with its id, and later its exit code."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(_address())
        sent = socket.send_fds(asking, [line], files)
        asking.sendall(line[sent:])
        return asking.detach()


def share() -> None:
    """Share the fork server of this process with its children. It is already loading."""
    os.environ[SHARED] = _address()[1:].decode()


@cache
def _address() -> bytes:
    """Return the address of the fork server. Start it, unless another process shares one."""
    shared = os.environ.get(SHARED)
    return _started() if shared is None else b"\0" + shared.encode()


def _started() -> bytes:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")  # the system chooses a unique name
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
