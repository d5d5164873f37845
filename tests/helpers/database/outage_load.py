"""Callers that send requests through an outage, and record the answers."""

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from forewarn.clock import monotonic
from tests.helpers.programs.process import Guest, Program, operator_client

# The promised limit, in real seconds. Polls and probes are far faster, but the tests allow more.
LONGEST = 6.0
# Tolerance for a busy computer. The bench measures the promise itself.
LATE = 2.0
MACHINES = 900
# Pause after a refusal, in seconds.
PAUSE = 0.1
SHORT_PAUSE = 0.02


def write_fleet(folder: Path) -> Path:
    """Write a fleet with one machine for each future order."""
    machines = "".join(
        f'[[machines]]\nname = "{name_of(number)}"\nhost = "host-{number % 9}"\n'
        f'address = "{address_of(number)}"\n'
        for number in range(MACHINES)
    )
    hosts = "".join(f"[hosts.host-{number}]\n" for number in range(9))
    path = folder / "fleet.toml"
    path.write_text(f'[defaults]\ndriver = "simulated"\n{hosts}{machines}')
    return path


def name_of(number: int) -> str:
    return f"m-{number:03}"


def address_of(number: int) -> str:
    return f"127.0.{2 + number // 200}.{1 + number % 200}"


@dataclass(kw_only=True)
class OrderRequest:
    """An order request and its result."""

    machine: str
    key: str | None
    took: float = 0.0
    status: int = 0
    code: str = ""
    message: str = ""
    order: str | None = None
    retry_after: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.key is None else {"Idempotency-Key": self.key}

    def note(self, answer: httpx.Response, *, took: float) -> None:
        """Record an answer."""
        self.status, self.took, self.retry_after = answer.status_code, took, answer.headers.get("retry-after")
        body = answer.json()
        if answer.is_success:
            self.order = body["order"]["id"]
        else:
            self.code, self.message = body["error"]["code"], body["error"]["message"]


@dataclass
class Load:
    """Concurrent callers. Every second one sends idempotency keys."""

    program: Program
    callers: int = 4
    asked: list[OrderRequest] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count())
    _ending: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Send requests until the block ends."""
        threads = [
            threading.Thread(target=self._ask, kwargs={"keyed": caller % 2 == 0})
            for caller in range(self.callers)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ending.set()
            for thread in threads:
                thread.join()
            self._ending.clear()

    def answered(self, status: int) -> Sequence[OrderRequest]:
        """Return the requests that got this status."""
        return [each for each in list(self.asked) if each.status == status]

    def _ask(self, *, keyed: bool) -> None:
        with operator_client(self.program.operators) as client:
            while not self._ending.is_set():
                number = next(self._numbers)
                assert number < MACHINES, "the fleet has too few machines for the requests"
                asked = OrderRequest(machine=name_of(number), key=f"order-{number}" if keyed else None)
                began = monotonic()
                answer = client.post(f"/v1/machines/{asked.machine}/restart", headers=asked.headers)
                asked.note(answer, took=monotonic() - began)
                self.asked.append(asked)
                self._ending.wait(SHORT_PAUSE if answer.is_success else PAUSE)


def check_books(load: Load, program: Program) -> None:
    """Compare the orders in the store with the answers: none is lost, and none exists twice."""
    placed: dict[str, int] = {}
    for record in program.history():
        if record["kind"] == "order-placed":
            placed[record["machine"]] = placed.get(record["machine"], 0) + 1
    orders = {order["id"] for order in program.all("orders")}
    for asked in load.asked:
        times = placed.get(asked.machine, 0)
        match asked.status, asked.code:
            case 202, _:
                assert times == 1, asked
                assert asked.order in orders, asked
            case 503, "Unavailable":
                assert times == 0, asked
            case 503, "Uncertain":
                assert times <= 1, asked
            case _:
                raise AssertionError(asked)
        assert asked.status == 202 or asked.retry_after, asked
        if asked.key is not None:
            again = program.call("POST", f"/v1/machines/{asked.machine}/restart", headers=asked.headers)
            assert again.status_code == 202, (asked, again.text)
            assert asked.order in (None, again.json()["order"]["id"]), asked
            # A retry with the key finds an order that exists, and places one that does not.
            assert ("idempotency-replayed" in again.headers) == (times == 1), asked


def check_in_time(load: Load) -> None:
    """Check that no caller waited longer than promised."""
    slowest = max(load.asked, key=lambda asked: asked.took)
    assert slowest.took < LONGEST + LATE, slowest


def check_polls(guest: Guest, before: bytes) -> None:
    """Poll as a guest, which must see no effect of the outage."""
    answer = guest.poll()
    assert (answer.status_code, answer.content) == (200, before)
