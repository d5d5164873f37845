"""Clients that disconnect from the operator port during a request are counted, and nothing is logged."""

import socket
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from tests.helpers.console.console_fixtures import let_in
from tests.helpers.programs.process import Program, until
from tests.helpers.service.counts import tries
from tests.hostile.attacks import fleet, place, send_if_open
from tests.integration.guest.guest_face import Client, request

TIMES = tries(50, long=2000)
PROBE = request("GET", "/healthz")
BODY = request("POST", "/v1/machines/m-0/restart", "Content-Length: 100") + b"{"
SENT = {
    "nothing": b"",
    "half a head": PROBE[:-2],
    "a list": request("GET", "/v1/machines"),
    "the stream": request("GET", "/v1/stream"),
    "the page": request("GET", "/console"),
    "half a body": BODY,
    "a probe with half a body": request("POST", "/healthz", "Content-Length: 100") + b"{",
    "half a chunk": request("PUT", "/v1/fleet", "Transfer-Encoding: chunked") + b"5\r\nhel",
    "a pipeline": PROBE * 200,
    "a pipeline with half a body": PROBE * 20 + BODY,
    "an upgrade": request("GET", "/v1/stream", "Connection: Upgrade", "Upgrade: websocket"),
    "no HTTP": b"\x16\x03\x01\r\n\r\n",
}


def hang_up(client: Client, *, reset: bool) -> None:
    if reset:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


def counted(program: Program) -> float:
    text = program.call("GET", "/metrics").text
    name = "forewarn_operator_hang_ups_total "
    return next(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))


@pytest.mark.parametrize("guarded", [True, False], ids=["with tokens", "without"])
def test_clients_that_disconnect_leave_nothing_in_the_log(tmp_path: Path, guarded: bool) -> None:
    with Program(tmp_path, "--fleet", fleet(tmp_path, 1), clock="system") as program:
        if guarded:
            let_in(program, "op", "operator")
        for sent in SENT.values():
            for number in range(TIMES):
                client = Client(place(program.operators))
                send_if_open(client, sent)
                if number % 3 == 0 and sent == SENT["a pipeline"]:
                    with suppress(OSError):
                        client.socket.recv(1)
                hang_up(client, reset=bool(number % 2))
        until(lambda: counted(program) > 0, what="the counter to increase")
        assert program.stop() == 0
        logged = [line for line in program.err.lines if " audit " not in line and "are refused" not in line]
    assert [line for line in logged if "Traceback" in line or "error" in line] == []
    assert len(logged) < 10
