"""Floods from unknown callers: they cost the server little, and machines are still answered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.programs.process import Program
from tests.helpers.service.counts import tries
from tests.hostile.attacks import (
    POLL,
    STRANGERS,
    Usage,
    address,
    answers,
    connections,
    fleet,
    place,
    send_if_open,
)
from tests.integration.guest.guest_face import Client, request

REQUESTS = tries(3000, long=30_000)
PIPELINED = 16
STRANGER = address(0, network=STRANGERS)
# As many query keys as fit into a request.
KEYS = "&a" * 3900
TAGS = ",a" * 1900


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Program(tmp_path, "--fleet", fleet(tmp_path, 10), clock="system") as program:
        assert answers(program) == 200
        yield program


def flood(program: Program, data: bytes, *, source: str, requests: int = REQUESTS) -> set[int]:
    """Send a request many times, pipelined, and return the statuses."""
    statuses = set()
    with Client(place(program.guests[0]), source) as client:
        for _ in range(requests // PIPELINED):
            client.send(data * PIPELINED)
            statuses |= {client.read().status for _ in range(PIPELINED)}
    return statuses


def cost(program: Program, data: bytes, *, source: str = STRANGER) -> float:
    """Return the seconds of CPU that a flood of a request costs the server."""
    usage = Usage(program.process.pid)
    before = usage.cpu()
    assert flood(program, data, source=source) <= {404, 429}
    return usage.cpu() - before


@pytest.mark.parametrize(
    "heavy",
    [
        request("GET", POLL + KEYS, "Metadata: true"),
        request("GET", POLL, "Metadata: true", f"If-None-Match: {TAGS}", f"Prefer: {TAGS}"),
        request("GET", POLL, "Metadata: true", f"Expect: {TAGS}", f"Connection: keep-alive{TAGS}"),
        request("GET", POLL, "Metadata: true", *(f"X{number}: y" for number in range(62))),
    ],
    ids=["keys", "tags", "lists", "headers"],
)
def test_a_large_request_of_an_unknown_caller_costs_about_as_much_as_a_plain_one(
    program: Program, heavy: bytes
) -> None:
    assert len(heavy) < 8192
    plain = request("GET", POLL, "Metadata: true")
    flood(program, plain, source=STRANGER, requests=500)  # warm-up
    usual = min(cost(program, plain) for _ in range(3))
    # Headers are parsed before the caller is checked. Parsing the 3,900 query keys cost 130 times as much.
    assert min(cost(program, heavy) for _ in range(3)) < 6 * usual


def test_refused_requests_leave_nothing_behind(program: Program) -> None:
    usage = Usage(program.process.pid)
    flood(program, request("GET", POLL), source=STRANGER, requests=500)
    before = usage.memory()
    number = 0
    for source in (STRANGER, address(1)):  # an unknown caller, and a machine over its rate limit
        with Client(place(program.guests[0]), source) as client:
            for _ in range(REQUESTS):
                number += 1
                tags = ",".join(f'"{number}-{each}"' for each in range(150))
                assert client.get(POLL, f"If-None-Match: {tags}").status in (200, 404, 429)
    assert usage.memory() - before < 24 * 2**20


def test_machines_are_answered_while_strangers_flood(program: Program) -> None:
    strangers = [address(number, network=STRANGERS) for number in range(tries(300, long=3000))]
    plain = request("GET", POLL, "Metadata: true")
    with connections(program.guests[0], strangers, send=plain * PIPELINED) as clients:
        for client in clients:
            send_if_open(client, plain * PIPELINED)
        assert [answers(program, number) for number in range(1, 10)] == [200] * 9
