"""Random data from clients: no error, no delay of other callers, and no answer 500."""

import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from forewarn.guest.http.parser import HEAD_TOO_LARGE, RequestParser
from forewarn.guest.settings import Limits
from tests.helpers.service.counts import tries
from tests.integration.guest.guest_face import EVENTS, Client, Face, machine, request, serving, with_limits

H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")
BODY = b'{"StartRequests":[{"EventId":"602D9444-D2CD-49C7-8624-8643E7170001"}]}'
VALID = [
    request("GET", EVENTS, "Metadata: true"),
    request("GET", EVENTS, "Metadata: true", 'If-None-Match: "0"', "Prefer: wait=60"),
    request("GET", EVENTS, "Metadata: true", *H2C),
    request("GET", f"http://127.0.0.1{EVENTS}&format=json", "Metadata: true", "Connection: close"),
    request("GET", "/metadata/instance/compute/name?api-version=2021-02-01&format=text", "Metadata: true"),
    request("HEAD", EVENTS, "Metadata: true"),
    request("POST", EVENTS, "Metadata: true", body=BODY),
    request("POST", EVENTS, "Metadata: true", "Expect: 100-continue", *H2C, body=BODY),
    request("POST", EVENTS, "Metadata: true", "Transfer-Encoding: chunked")
    + b"4\r\n{}  \r\n0\r\nX: y\r\n\r\n",
    f"GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\n\r\n".encode(),
]
NASTY = [
    b"\r\n", b"\n", b"\0", b"\xff\xfe", b":", b" ", b"%", b"%zz", b"%00", b"[", b"]", b"Host: x\r\n",
    b"HTTP/2.0", b"Content-Length: 5\r\n", b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Upgrade: h2c\r\nConnection: upgrade\r\n", b"Expect: 100-continue\r\n", b"X: " + b"x" * 9000 + b"\r\n",
    b"If-None-Match: *\r\nPrefer: wait=99999999999\r\n", b"api-version=", b"ffffffffffffffff\r\n", b"http://",
]  # fmt: skip

anything = st.binary(max_size=300)
valid = st.sampled_from(VALID)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid request with inserted, removed or replaced bytes."""
    data = draw(valid)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 12))
        data = data[:at] + draw(st.sampled_from(NASTY) | st.binary(max_size=4)) + data[at + cut :]
    return data


@st.composite
def conversation(draw: st.DrawFn) -> list[bytes]:
    """Several requests, split at random positions."""
    data = b"".join(draw(st.lists(valid | mutated() | anything, min_size=1, max_size=4)))
    data = data[: draw(st.integers(1, max(1, len(data))))] if draw(st.booleans()) else data
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    return [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.fixture(scope="module")
def face() -> Iterator[Face]:
    machines = (machine("web-0", address="127.0.0.1"), machine("web-1", address="127.0.0.2"))
    with serving(*machines, settings=with_limits(request_seconds=1, linger_seconds=0.1)) as face:
        yield face


@pytest.fixture(scope="module")
def neighbour(face: Face) -> Iterator[Client]:
    with face.connect("127.0.0.2") as client:
        yield client


@settings(
    max_examples=tries(150, long=5000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pieces=conversation(), half_close=st.booleans())
def test_random_data_causes_no_error(
    face: Face, neighbour: Client, pieces: list[bytes], half_close: bool
) -> None:
    with face.connect() as client:
        try:
            for piece in pieces:
                client.send(piece)
                assert neighbour.get().status == 200
            if half_close:
                client.socket.shutdown(socket.SHUT_WR)
                assert_no_fault(client)
        except OSError:
            pass  # the server has closed the connection, as it should
    assert neighbour.get().status == 200
    assert face.faults == []


def assert_no_fault(client: Client) -> None:
    """Read all answers until the server closes the connection."""
    received = b""
    while data := client.socket.recv(65536):
        received += data
    assert b"HTTP/1.1 5" not in received, received


@settings(max_examples=tries(150, long=5000), deadline=None)
@given(pieces=conversation())
def test_the_answers_do_not_depend_on_how_requests_are_split(pieces: list[bytes]) -> None:
    cut, whole = RequestParser(Limits()), RequestParser(Limits())
    in_pieces = [item for piece in pieces for item in cut.feed(piece)]
    at_once = whole.feed(b"".join(pieces))
    # The size of a partial head is exact only if the head begins a piece.
    assume(HEAD_TOO_LARGE not in in_pieces)
    assert in_pieces == at_once
    assert cut.partial == whole.partial
