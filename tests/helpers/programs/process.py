"""A real `forewarn serve` in its own process, with its own folder and ports."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

import httpx

from forewarn.clock import monotonic
from tests import ROOT
from tests.helpers.database import stores
from tests.helpers.programs import forked
from tests.helpers.programs.forked import Forked

T = TypeVar("T")
Process = subprocess.Popen[str] | Forked

FOREWARN = str(Path(sys.executable).with_name("forewarn"))
SAMPLE = ROOT / "examples" / "fleet.toml"
EVENTS = "/metadata/scheduledevents"
NEWEST = "2020-07-01"

# A timeout far beyond what any wait takes, even on a busy machine.
PATIENCE = 60.0
# Polling interval for conditions without a notification.
LOOK_EVERY = 0.05
# Below the range from which the system chooses ports for outgoing connections.
PORTS = range(20000, 32000)

# Starting Python, loading modules and creating a store take most of a program's time. They are done once for
# all tests, except tests with the fixture `unforked`.
forking = True

_handed_out: set[int] = set()


def until(condition: Callable[[], T], *, what: str, within: float = PATIENCE) -> T:
    """Wait until a condition holds, and return its value. On a timeout, fail with the text `what`."""
    deadline = monotonic() + within
    pause = threading.Event()
    while not (found := condition()):
        if monotonic() > deadline:
            raise AssertionError(f"timed out after {within:g} s, waiting for {what}")
        pause.wait(LOOK_EVERY)
    return found


@contextmanager
def on_a_thread(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    """Run a function on another thread during the block. It must return after `over` is set."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def free_port() -> int:
    """Find a free port for a listener whose port must be known in advance."""
    # The step keeps test processes with neighbouring ids from choosing the same ports.
    start = os.getpid() * 7417
    for step in range(len(PORTS)):
        port = PORTS[(start + step) % len(PORTS)]
        if port not in _handed_out and _is_free(port):
            _handed_out.add(port)
            return port
    raise AssertionError("no port is free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def sample_fleet(folder: Path, *, ports: bool = False) -> Path:
    """Write the sample fleet to a folder.

    Machines are identified by address, and on request also by free ports.
    """

    def port(_: re.Match[str]) -> str:
        return f"port = {free_port()}" if ports else ""

    path = folder / "fleet.toml"
    path.write_text(re.sub(r"^port = \d+$", port, SAMPLE.read_text(), flags=re.MULTILINE))
    return path


class Output:
    """The output of a process, read as it arrives so that the process never blocks."""

    def __init__(self, stream: IO[str]) -> None:
        self.lines: list[str] = []
        self.ended = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, text: str) -> str:
        """Return the text after a prefix in the first line that has it. Fail if the process ends first."""
        with self._news:
            self._news.wait_for(lambda: self.ended or self._after(text) is not None, timeout=PATIENCE)
            found = self._after(text)
        assert found is not None, f"no {text!r} in:\n{self.text}"
        return found

    def finish(self) -> None:
        """Read until the process ends."""
        self._thread.join(PATIENCE)

    def _after(self, text: str) -> str | None:
        return next((line.partition(text)[2] for line in self.lines if text in line), None)

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                with self._news:
                    self.lines.append(line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self.ended = True
            self._news.notify_all()


class Guest:
    """A guest that sends requests from its address or to its machine's own port."""

    def __init__(self, url: str, *, address: str | None = None) -> None:
        transport = httpx.HTTPTransport(local_address=address, verify=False)
        self.client = httpx.Client(base_url=url, transport=transport, timeout=PATIENCE)

    def poll(self, version: str = NEWEST, **headers: str) -> httpx.Response:
        """Request the document."""
        wanted = {"Metadata": "true", **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.client.get(EVENTS, params={"api-version": version}, headers=wanted)

    def document(self) -> Any:
        """Return the document. The request must succeed."""
        answer = self.poll()
        assert answer.status_code == 200, answer.text
        return answer.json()

    def defer(self, event: str, *, seconds: int) -> None:
        """Defer an event. The request must succeed."""
        body = {"DeferRequests": [{"EventId": event, "Seconds": seconds}]}
        answer = self.client.post(
            f"{EVENTS}/defer", params={"api-version": NEWEST}, headers={"Metadata": "true"}, json=body
        )
        assert answer.status_code == 200, answer.text

    def approve(self, *events: str) -> httpx.Response:
        """Approve events."""
        body = {"StartRequests": [{"EventId": event} for event in events]}
        return self.client.post(
            EVENTS, params={"api-version": NEWEST}, headers={"Metadata": "true"}, json=body
        )


def operator_client(url: str) -> httpx.Client:
    """Create a client of the operator API without certificates, which take longer to load than a test."""
    return httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False, verify=False)


class Held:
    """A poll that is sent without waiting for the answer."""

    def __init__(self, url: str, *, address: str, **headers: str) -> None:
        place = urlsplit(url)
        assert place.hostname is not None
        self._socket = socket.create_connection(
            (place.hostname, place.port), timeout=PATIENCE, source_address=(address, 0)
        )
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        head = [f"GET {EVENTS}?api-version={NEWEST} HTTP/1.1", f"Host: {place.netloc}", "Metadata: true"]
        self._socket.sendall("\r\n".join([*head, *lines, "Connection: close", "", ""]).encode())

    @property
    def answered(self) -> bool:
        return bool(select.select([self._socket], [], [], 0)[0])

    def answer(self) -> str:
        """Wait for the answer, and return it whole."""
        with self._socket, self._socket.makefile("rb") as stream:
            return stream.read().decode()

    def close(self) -> None:
        self._socket.close()


class Program:
    """A server that a test can stop, kill and start again."""

    def __init__(
        self,
        folder: Path,
        *flags: str | Path,
        clock: str | None = "manual",
        listen: Sequence[str] = ("127.0.0.1:0",),
        operator: str | None = "127.0.0.1:0",
        environment: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> None:
        """Take the flags of `serve`. `before` is a command prefix."""
        named = [("--clock", clock), ("--operator", operator), *(("--guest", place) for place in listen)]
        given = [part for name, value in named if value is not None for part in (name, value)]
        self.flags = [*given, *map(str, flags)]
        self._folder = folder
        self._environment = environment or {}
        self._before = list(before)
        self._clients: list[httpx.Client] = []

    def __enter__(self) -> "Program":
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # Start and stop

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.spawn()
        self.wait()

    def spawn(self) -> None:
        """Start it without waiting."""
        if forking and "--database" not in self.flags:
            stores.make_sqlite(self._folder / "forewarn.db")
        command = [*self._before, FOREWARN, "serve", *self.flags]
        self.process = started(command, self._folder, self._environment)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out, self.err = Output(self.process.stdout), Output(self.process.stderr)

    def wait(self) -> None:
        """Wait until it answers, which it announces by printing its addresses."""
        try:
            self.operators = self.out.wait_for("  operators  ")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.err.text}") from None
        self.guests = re.findall(r"http://[^\s,]+", self.out.wait_for("  guests  "))
        self._api = self._client(operator_client(self.operators))

    def kill(self) -> None:
        """Send SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Send SIGTERM, and return the exit code."""
        return self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill it, and start it again."""
        self.kill()
        self.start()

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def _end(self, number: int) -> int:
        if self.runs:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.out.finish()
        self.err.finish()
        while self._clients:
            self._clients.pop().close()
        return code

    # Requests of operators and guests

    @property
    def has_token(self) -> bool:
        return "Authorization" in self._api.headers

    def operator(self, secret: str) -> None:
        """Use a token for the operator API until the next start."""
        self._api.headers["Authorization"] = f"Bearer {secret}"

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Call the operator API."""
        return self._api.request(method, path, **more)

    def get(self, path: str, **more: Any) -> Any:
        """Return a JSON answer of the operator API."""
        answer = self.call("GET", path, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, **more: Any) -> Any:
        """Send a POST that must succeed."""
        answer = self.call("POST", path, **more)
        assert answer.status_code in (200, 201, 202), answer.text
        return answer.json()

    def advance(self, seconds: float) -> None:
        """Advance the manual clock."""
        self.post("/v1/clock/advance", json={"seconds": seconds})

    def history(self) -> list[dict[str, Any]]:
        """Return all records, oldest first."""
        return list(reversed(self.all("history", "records")))

    def all(self, what: str, key: str | None = None) -> list[dict[str, Any]]:
        """Return a whole list of the operator API, read page by page."""
        page = self.get(f"/v1/{what}", params={"limit": 1000})
        found: list[dict[str, Any]] = page[key or what]
        while page["next"] is not None:
            page = self.get(f"/v1/{what}", params={"limit": 1000, "after": page["next"]})
            found += page[key or what]
        return found

    def guest(self, address: str, *, url: str | None = None) -> Guest:
        """Return a guest with this source address."""
        return self._guest(Guest(url or self.guests[0], address=address))

    def at_port(self, port: int) -> Guest:
        """Return a guest at a machine's own port."""
        return self._guest(Guest(f"http://127.0.0.1:{port}"))

    def _guest(self, guest: Guest) -> Guest:
        self._client(guest.client)
        return guest

    def _client(self, client: httpx.Client) -> httpx.Client:
        self._clients.append(client)
        return client


def started(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Process:
    """Start a command without the settings in the environment of the tests."""
    given = forked.plain_environment() | dict(environment or {})
    if command[0] == FOREWARN and forking and forked.can_fork(given):
        return Forked(command, folder, given)
    return subprocess.Popen(
        command,
        cwd=folder,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def shell_function() -> str:
    """Write a `forewarn` shell function for scripts."""
    return f'forewarn() {{ {forked.shell_command(FOREWARN)} "$@"; }}'


def run(
    folder: Path,
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    within: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """Run a `forewarn` command to its end."""
    command = [*before, FOREWARN, *map(str, arguments)]
    with ending(started(command, folder, environment)) as process:
        out, err = process.communicate(timeout=within)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@contextmanager
def ending(process: Process) -> Iterator[Process]:
    """Kill the process when the block ends."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[Process]:
    """Run a program during the block. Its output is read, so it never blocks."""
    with ending(started(command, folder)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        outputs = Output(process.stdout), Output(process.stderr)
        yield process
    for output in outputs:
        output.finish()
