"""A process that has loaded forewarn and forks into its programs on request.

Each program is a separate process with its own arguments, environment, folder and files. It can be signalled,
killed and waited for. Only Python's work before `main` is shared. `forked.py` sends the requests.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn, TextIO

# The programs load these when they need them.
LATER = (
    "encodings.idna",
    "httpcore",
    "importlib.readers",
    "rich._emoji_codes",
    "click._textwrap",
    "click.shell_completion",
    "uvicorn.lifespan.off",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
)
NOT_LOADED = ("forewarn.store.migrations", "forewarn.testing", "forewarn.agent.recipes")
FILES = 3  # stdin, stdout, stderr
LARGEST = 1 << 20


class _End:
    """The last exit handler of a program: it exits before Python tears down its modules, which takes longest.

    It does nothing if Python still has to report an error or a Ctrl-C.
    """

    code: int | None = None

    def __call__(self) -> None:
        if self.code is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


_end = _End()
atexit.register(_end)  # registered before anything else is loaded, because handlers run in reverse order


def serve(listening: int) -> Callable[[], object]:
    """Fork on request, and return the function that each new process must run.

    At the end of stdin, return a function that does nothing. The caller runs it at the bottom of the stack,
    as programs do.
    """
    gc.disable()  # each program enables it
    _load()
    server = _Server(socket.socket(fileno=listening))
    while (program := server.next()) is None:
        pass
    return program


def _load() -> None:
    for module in pkgutil.walk_packages(import_module("forewarn").__path__, "forewarn."):
        if not module.name.startswith(NOT_LOADED) and not module.name.endswith("__main__"):
            try:
                import_module(module.name)
            except ModuleNotFoundError as error:  # an optional library, such as libvirt, may be missing
                if (error.name or "").startswith("forewarn"):
                    raise
    for name in LATER:
        import_module(name)
    import_module("tests.helpers.database.stores").quicken()
    import_module("tests.helpers.programs.warming").warm_up()
    gc.collect()
    gc.freeze()  # the collector must not touch these objects, or the kernel would copy their pages


class _Server:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._asking: dict[int, socket.socket] = {}  # by the process that sent the request
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waking)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Ctrl-C at a terminal is for the clients. They then close stdin.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def next(self) -> Callable[[], object] | None:
        """Handle requests. Return the function to run once this process is a new program."""
        ready, _, _ = select.select([self._listener, self._woken, 0], [], [])
        if self._woken in ready:
            os.read(self._woken, LARGEST)
            self._report()
        if self._listener in ready:
            return self._fork()
        return _nothing if 0 in ready else None

    def _report(self) -> None:
        """Report the exit codes of ended processes."""
        while self._asking:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with self._asking.pop(pid) as asking, suppress(OSError):  # the client is gone
                asking.sendall(f"ended {os.waitstatus_to_exitcode(status)}\n".encode())

    def _fork(self) -> Callable[[], object] | None:
        asking, _ = self._listener.accept()
        asked, files = _request(asking)
        pid = os.fork()
        if pid:
            self._asking[pid] = asking
            for file in files:
                os.close(file)
            return None
        _look_new(asked, files)
        asking.sendall(f"begun {os.getpid()}\n".encode())
        for each in (self._listener, asking, *self._asking.values()):
            each.detach()  # Python must not close the number again when another file has it
        os.closerange(FILES, os.sysconf("SC_OPEN_MAX"))
        return _run


def _nothing() -> None:
    pass


def _request(asking: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive a line of JSON, and three files with its first part."""
    line, files, _, _ = socket.recv_fds(asking, LARGEST, FILES)
    while not line.endswith(b"\n"):
        line += asking.recv(LARGEST)
    return json.loads(line), files


def _look_new(asked: dict[str, Any], files: list[int]) -> None:
    """Make this process look newly started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin = sys.__stdin__ = _stream(sys.stdin, 0)
    sys.stdout = sys.__stdout__ = _stream(sys.stdout, 1)
    sys.stderr = sys.__stderr__ = _stream(sys.stderr, 2)
    os.chdir(asked["folder"])
    if asked["umask"] is not None:
        os.umask(asked["umask"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    sys.argv = asked["command"]
    os.execv = _become  # type: ignore[assignment]
    import_module("tests.helpers.database.stores").fsync = asked["fsync"]


def _stream(own: TextIO, number: int) -> TextIO:
    """Open a standard stream as Python does at startup."""
    to_read = number == 0
    return open(
        number,
        "r" if to_read else "w",
        buffering=1 if number == 2 or (os.isatty(number) and not to_read) else -1,
        encoding=own.encoding,
        errors=own.errors,
        newline="\n",
        closefd=False,
    )


def _run() -> None:
    try:
        import_module("forewarn.cli.main").main()
        _end.code = 0
    except SystemExit as leaving:
        _end.code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        raise


def _become(_path: str, words: list[str]) -> NoReturn:
    """Continue as `python -P -m MODULE ARGUMENT…`, the only form of command that programs have here."""
    _python, _safe_path, _module, name, *arguments = words
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    sys.exit()
