"""A noisy tenant: whatever one token requests, all others are served, and memory is bounded."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

import pytest

from tests.helpers.programs.process import Program, until
from tests.helpers.service.counts import tries
from tests.hostile.attacks import STRANGERS, Usage, address, connections, place, send_if_open
from tests.integration.guest.guest_face import Client, request

MIB = 2**20
FLEET = f"""
[projects.noisy]
[projects.quiet]
[defaults]
driver = "simulated"

[hosts.h]
[[machines]]
name = "noisy-0"
project = "noisy"
host = "h"
address = "{address(0)}"
[[machines]]
name = "quiet-0"
project = "quiet"
host = "h"
address = "{address(1)}"
[[machines]]
name = "quiet-1"
project = "quiet"
host = "h"
address = "{address(2)}"
"""
NOISY_CALLS = 32
NOISY_STREAMS = 20
READERS = 16
HISTORY = "/v1/history?limit=1000"


class Tenants:
    """A server with a token for each tenant and for its operator."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.operator = self._token("olga", "operator")
        program.operator(self.operator)
        self.noisy = self._token("noisy", "user", project="noisy")
        self.quiet = self._token("quiet", "user", project="quiet")

    def _token(self, name: str, role: str, **more: str) -> str:
        answer = self.program.call("POST", "/v1/tokens", json={"name": name, "role": role, **more})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["secret"])

    def others_are_served(self) -> None:
        """Check that another tenant can order, its guest approve, and the operator read and cancel."""
        quiet = {"Authorization": f"Bearer {self.quiet}"}
        order = self.program.call("POST", "/v1/machines/quiet-0/restart", headers=quiet)
        assert order.status_code == 202, order.text
        event = order.json()["event"]["id"]
        guest = self.program.guest(address(1))
        assert [each["EventId"] for each in guest.document()["Events"]] == [event]
        assert guest.approve(event).status_code == 200
        self.program.guest(address(2)).document()  # keeps its group enabled
        second = self.program.call("POST", "/v1/machines/quiet-1/restart", headers=quiet)
        assert second.status_code == 202, second.text
        self.program.post(f"/v1/orders/{second.json()['order']['id']}/cancel")
        self.program.advance(3600)
        assert self.program.get(f"/v1/orders/{order.json()['order']['id']}")["order"]["state"] == "done"

    def refused(self, limit: str) -> float:
        """Return how many requests a limit has refused."""
        text = self.program.call("GET", "/metrics").text
        name = f'forewarn_requests_refused_total{{limit="{limit}"}} '
        (row,) = [line for line in text.splitlines() if line.startswith(name)]
        return float(row.rpartition(" ")[2])


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[Tenants]:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(FLEET)
    # Rate limits of guests are not the subject of these tests.
    with Program(tmp_path, "--fleet", fleet, environment={"FOREWARN_GUEST_RATE": "0"}) as program:
        for machine in (1, 2):
            program.guest(address(machine)).document()  # enables its group
        yield Tenants(program)


def bearer(secret: str) -> str:
    return f"Authorization: Bearer {secret}"


def half_sent(call: str, secret: str, *, size: int) -> bytes:
    """Return a request without the last byte of its body."""
    method, path = call.split()
    return request(method, path, bearer(secret), body=b" " * size)[:-1]


def sources(count: int) -> list[str]:
    """Return source addresses, enough of them that no limit on one address applies."""
    return [address(number % 8, network=STRANGERS) for number in range(count)]


@contextmanager
def repeated(*acts: Callable[[], None]) -> Iterator[None]:
    """Repeat each action on its own thread during the block."""
    over = threading.Event()

    def again(act: Callable[[], None]) -> None:
        while not over.is_set():
            act()

    threads = [threading.Thread(target=again, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_incomplete_calls_of_one_tenant_are_limited(tenants: Tenants) -> None:
    order = half_sent("POST /v1/machines/noisy-0/restart", tenants.noisy, size=100)
    with connections(tenants.program.operators, sources(2 * NOISY_CALLS), send=order) as clients:
        sockets = [client.socket for client in clients]
        until(lambda: len(select(sockets, [], [], 0)[0]) == NOISY_CALLS, what="half of them to be answered")
        tenants.others_are_served()
        answered = select(sockets, [], [], 0)[0]
        assert [client.read().status for client in clients if client.socket in answered] == [
            429
        ] * NOISY_CALLS
        assert tenants.refused("calls") == NOISY_CALLS


def test_the_memory_of_incomplete_bodies_of_tenants_is_bounded(tenants: Tenants) -> None:
    program = tenants.program
    usage = Usage(program.process.pid)
    tenants.others_are_served()
    before = usage.memory()
    order = half_sent("POST /v1/machines/noisy-0/restart", tenants.noisy, size=MIB)
    with connections(program.operators, sources(NOISY_CALLS), send=order):
        until(lambda: tenants.refused("bodies") >= NOISY_CALLS // 3, what="bodies to be refused")
        tenants.others_are_served()
        assert usage.memory() - before < 64 * MIB


def test_a_tenants_large_bodies_are_refused_before_they_are_read(tenants: Tenants) -> None:
    program = tenants.program
    usage = Usage(program.process.pid)
    tenants.others_are_served()
    before = usage.memory()
    for call, status in (("PUT /v1/fleet", 403), ("POST /v1/machines/noisy-0/restart", 413)):
        with connections(program.operators, sources(12)) as clients:
            for client in clients:
                send_if_open(client, half_sent(call, tenants.noisy, size=tries(8, long=63) * MIB))
            assert {client.read().status for client in clients} == {status}
            tenants.others_are_served()
    assert usage.memory() - before < 64 * MIB


def test_the_memory_of_an_operators_large_bodies_is_bounded(tenants: Tenants) -> None:
    program = tenants.program
    usage = Usage(program.process.pid)
    tenants.others_are_served()
    before = usage.memory()
    size = tries(20, long=63) * MIB
    piece = b" " * MIB
    head = half_sent("PUT /v1/fleet", tenants.operator, size=1).replace(
        b"Content-Length: 1\r\n", b"Content-Length: %d\r\n" % size
    )
    with connections(program.operators, sources(12), send=head) as clients:
        for _ in range(size // MIB - 1):
            for client in clients:
                send_if_open(client, piece)
        until(lambda: tenants.refused("bodies") >= 12 - 64 // (size // MIB), what="bodies to be refused")
        tenants.others_are_served()
        assert usage.memory() - before < 200 * MIB


def test_streams_of_one_token_are_limited(tenants: Tenants) -> None:
    program, wanted = tenants.program, 5 * NOISY_STREAMS
    follow = request("GET", "/v1/stream", bearer(tenants.noisy))
    with connections(program.operators, sources(wanted), send=follow) as clients:
        statuses = Counter(client.read().status for client in clients)
        assert statuses == {200: NOISY_STREAMS, 429: wanted - NOISY_STREAMS}
        tenants.others_are_served()


def test_readers_of_the_history_and_unknown_callers_delay_no_caller(tenants: Tenants) -> None:
    program, statuses = tenants.program, Counter[int]()

    def reader(*headers: str) -> Callable[[], None]:
        def read() -> None:
            with Client(place(program.operators), address(0, network=STRANGERS)) as client:
                for _ in range(50):
                    statuses[client.request("GET", HISTORY, *headers).status] += 1

        return read

    readers = [reader(bearer(tenants.noisy)) for _ in range(READERS)]
    guessers = [reader(bearer(f"fw_guess-{number}")) for number in range(2)]
    with repeated(*readers, *guessers):
        for _ in range(tries(3, long=30)):
            tenants.others_are_served()
        until(lambda: tenants.refused("rate") > 0, what="the rate to be exceeded")
    assert statuses.keys() <= {200, 401, 429}
    assert json.loads(program.call("GET", "/v1/machines").text)["machines"]
