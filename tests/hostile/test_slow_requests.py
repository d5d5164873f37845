"""Slow and incomplete requests on both ports: each is closed in time, and delays no other caller."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from forewarn.clock import monotonic
from tests.helpers.programs.process import PATIENCE, Program
from tests.helpers.service.counts import tries
from tests.hostile.attacks import (
    POLL,
    STRANGERS,
    Usage,
    address,
    answers,
    connections,
    fleet,
    is_open,
    operators_are_answered,
    send_if_open,
)
from tests.integration.guest.guest_face import Client, request

MANY = tries(40, long=400)
# Seconds between two bytes. An idle timeout alone never ends such a request.
TRICKLE = 1.0
# An incomplete request must be closed after ten seconds; a busy computer may be later.
AT_LATEST = 10 + PATIENCE


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Program(tmp_path, "--fleet", fleet(tmp_path, 10), clock="system") as program:
        yield program


def trickle_until_closed(clients: list[Client], head: bytes, *, meanwhile: Callable[[], None]) -> None:
    """Send a head byte by byte on each connection, until the server has closed all of them."""
    deadline, pause, sent = monotonic() + AT_LATEST, Event(), 0
    left = list(clients)
    while left:
        assert monotonic() < deadline, f"{len(left)} of {len(clients)} slow requests are still open"
        left = [client for client in left if is_open(client) and send_if_open(client, head[sent : sent + 1])]
        sent = min(sent + 1, len(head) - 3)  # the head is never complete
        meanwhile()
        pause.wait(TRICKLE)


def test_slow_heads_on_both_ports_are_closed_while_others_are_answered(program: Program) -> None:
    head = request("GET", POLL, "Metadata: true", *(f"X-{number}: y" for number in range(40)))

    def others() -> None:
        assert answers(program, 5) == 200
        assert operators_are_answered(program)

    machines = [address(number % 5) for number in range(MANY)]
    with (
        connections(program.guests[0], machines) as guests,
        connections(program.operators, ["127.0.0.1"] * MANY) as operators,
    ):
        trickle_until_closed(guests + operators, head, meanwhile=others)


def test_heads_that_never_end_cost_no_memory(program: Program) -> None:
    operators_are_answered(program)
    usage, piece = Usage(program.process.pid), b"x" * 65536
    before = usage.memory()
    for url, sources in (
        (program.operators, ["127.0.0.1"] * MANY),
        (program.guests[0], [address(number, network=STRANGERS) for number in range(MANY)]),
    ):
        with connections(url, sources, send=b"GET / HTTP/1.1\r\nX: ") as clients:
            for _ in range(64):  # four megabytes each
                for client in clients:
                    send_if_open(client, piece)
    assert usage.memory() - before < 64 * 2**20
    assert answers(program) == 200
    assert operators_are_answered(program)
