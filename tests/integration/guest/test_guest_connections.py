"""Framing of requests, order of answers, and the end of connections."""

import socket
from collections.abc import Callable, Iterator

import pytest

from forewarn.core.basic_types import EventType
from forewarn.guest.http.refusals import Limit
from forewarn.guest.settings import EndpointSettings
from tests.integration.guest.guest_face import (
    EVENTS,
    Client,
    Face,
    event,
    group,
    machine,
    request,
    serving,
    with_limits,
)

GET = request("GET", EVENTS, "Metadata: true")
POST = ("POST", "/metadata/scheduledevents?api-version=2020-07-01", "Metadata: true")
FAULTY = b'{ "error": "Bad request. StartRequests is empty" }'
EMPTY_LIST = b'{"StartRequests":[]}'
# Longer than a busy computer delays a client, in seconds.
A_WHILE = 0.5


@pytest.fixture(scope="module")
def face() -> Iterator[Face]:
    with serving() as face:
        yield face


def test_a_connection_serves_many_requests(face: Face) -> None:
    with face.connect() as client:
        assert [client.get().status for _ in range(5)] == [200] * 5


def test_pipelined_requests_are_answered_in_order(face: Face) -> None:
    with face.connect() as client:
        client.send(GET + request("GET", "/nowhere") + request(*POST, body=EMPTY_LIST) + GET)
        assert [client.read().status for _ in range(4)] == [200, 404, 400, 200]


def test_sixteen_requests_may_be_pipelined_and_the_next_is_refused(face: Face) -> None:
    with face.connect() as client:
        client.send(GET * 16)
        assert [client.read().status for _ in range(16)] == [200] * 16
        client.send(GET * 40)
        assert [client.read().status for _ in range(17)] == [200] * 16 + [503]
        assert client.is_closed()


def test_requests_after_a_long_poll_wait_and_count_towards_the_limit(face: Face) -> None:
    with face.connect() as client:
        etag = client.get().headers["etag"]
        held = request("GET", EVENTS, "Metadata: true", f"If-None-Match: {etag}", "Prefer: wait=1")
        client.send(held)
        face.waiting(1)
        for _ in range(20):
            client.send(GET)
        statuses = [client.read().status for _ in range(18)]
        assert statuses == [304] + [200] * 16 + [503]
        assert client.is_closed()


def test_a_request_may_arrive_byte_by_byte(face: Face) -> None:
    data = request(*POST, body=EMPTY_LIST) + GET
    with face.connect() as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(data)):
            client.send(data[at : at + 1])
        assert client.read().body == FAULTY
        assert client.read().status == 200


@pytest.mark.parametrize("at", range(1, len(GET), 7))
def test_a_request_may_be_split_anywhere(face: Face, at: int) -> None:
    with face.connect() as client:
        client.send(GET[:at])
        client.send(GET[at:] + GET[:at])
        client.send(GET[at:])
        assert [client.read().status for _ in range(2)] == [200, 200]


def test_empty_lines_before_a_request_are_skipped(face: Face) -> None:
    with face.connect() as client:
        client.send(b"\r\n\r\n" + GET + b"\r\n" + GET)
        assert [client.read().status for _ in range(2)] == [200, 200]


def test_connection_close_is_confirmed_and_closed(face: Face) -> None:
    with face.connect() as client:
        client.send(request("GET", EVENTS, "Metadata: true", "Connection: close") + GET)
        answer = client.read()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert client.is_closed()
    with face.connect() as client:
        answer = client.request(*POST, "Connection: close", body=EMPTY_LIST)
        assert (answer.body, answer.headers["connection"]) == (FAULTY, "close")
        assert client.is_closed()


def test_http_1_0_connections_close_unless_the_client_keeps_them_alive(face: Face) -> None:
    line = f"GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\n".encode()
    with face.connect() as client:
        client.send(line + b"Connection: keep-alive\r\n\r\n")
        assert client.read().headers["connection"] == "keep-alive"
        client.send(line + b"\r\n")
        assert client.read().headers["connection"] == "close"
        assert client.is_closed()


def test_cached_http_1_0_requests_are_answered_the_same(face: Face) -> None:
    for _ in range(2):
        with face.connect() as client:
            client.send(f"GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\n\r\n".encode())
            assert client.read().headers["connection"] == "close"
            assert client.is_closed()


def test_a_client_that_expects_100_continue_gets_it(face: Face) -> None:
    data = request(*POST, "Expect: 100-continue", body=EMPTY_LIST)
    head, body = data[: -len(EMPTY_LIST)], data[-len(EMPTY_LIST) :]
    with face.connect() as client:
        client.send(head)
        assert client.read().status == 100
        client.send(body[:3])
        client.send(body[3:])
        assert client.read().body == FAULTY
        client.send(data)
        assert client.read().body == FAULTY


def test_100_continue_follows_earlier_answers(face: Face) -> None:
    data = request(*POST, "Expect: 100-continue", body=EMPTY_LIST)
    with face.connect() as client:
        etag = client.get().headers["etag"]
        held = request("GET", EVENTS, "Metadata: true", f"If-None-Match: {etag}", "Prefer: wait=1")
        client.send(held + data[: -len(EMPTY_LIST)])
        assert [client.read().status for _ in range(2)] == [304, 100]
        client.send(EMPTY_LIST)
        assert client.read().body == FAULTY


H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk")


def test_an_upgrade_to_http_2_is_ignored_and_the_body_is_served(face: Face) -> None:
    with face.connect() as client:
        for _ in range(3):
            assert client.get(EVENTS, *H2C).status == 200
            assert client.request(*POST, *H2C, body=EMPTY_LIST).body == FAULTY
        client.send(
            request(*POST, *H2C, body=EMPTY_LIST) + GET + request("GET", EVENTS, "Metadata: true", *H2C) + GET
        )
        assert [client.read().status for _ in range(4)] == [400, 200, 200, 200]


def test_an_upgrade_whose_body_arrives_in_pieces_is_served(face: Face) -> None:
    data = request(*POST, *H2C, body=EMPTY_LIST)
    with face.connect() as client:
        for at in range(len(data) - len(EMPTY_LIST) - 3, len(data)):
            client.send(data[:at])
            client.send(data[at:])
            assert client.read().body == FAULTY


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("headers", [(), H2C])
def test_a_chunked_body_is_accepted(face: Face, headers: tuple[str, ...]) -> None:
    with face.connect() as client:
        client.send(
            request(*POST, "Transfer-Encoding: chunked", *headers) + chunked(b'{"StartRe', b'quests":[]}')
        )
        assert client.read().body == FAULTY
        assert client.get().status == 200


@pytest.mark.parametrize("ending", [b"\r\n\r\n", b""])
def test_a_head_that_is_too_large_is_refused_and_closed(face: Face, ending: bytes) -> None:
    with face.connect() as client:
        client.send(GET[:-4] + b"\r\nX: " + b"x" * 8192 + ending)
        answer = client.read()
        assert (answer.status, answer.headers["connection"]) == (431, "close")
        assert client.is_closed()


def test_a_head_may_have_exactly_eight_kibibytes(face: Face) -> None:
    room = 8192 - len(GET) - len("X: \r\n")
    with face.connect() as client:
        assert client.get(EVENTS, "X: " + "x" * room).status == 200
        assert client.get(EVENTS, "X: " + "x" * (room + 1)).status == 431


def test_a_request_line_that_is_too_large_is_refused(face: Face) -> None:
    assert face.get("/" + "x" * 8192).status == 431


def test_trailers_that_are_too_large_are_refused(face: Face) -> None:
    with face.connect() as client:
        client.send(request(*POST, "Transfer-Encoding: chunked") + b"0\r\n" + b"X: y\r\n" * 2000 + b"\r\n")
        assert client.read().status == 431


def test_a_body_may_have_exactly_sixty_four_kibibytes(face: Face) -> None:
    with face.connect() as client:
        assert client.request(*POST, body=b" " * 65536).status == 400
        client.send(request(*POST, "Content-Length: 65537"))
        answer = client.read()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert client.is_closed()


def test_a_chunked_body_that_is_too_large_is_refused(face: Face) -> None:
    with face.connect() as client:
        client.send(request(*POST, "Transfer-Encoding: chunked") + chunked(b" " * 40000, b" " * 40000))
        assert client.read().status == 413


def test_a_body_of_tiny_chunks_is_accepted(face: Face) -> None:
    with face.connect() as client:
        client.send(request(*POST, "Transfer-Encoding: chunked") + chunked(*[b" "] * 20000, EMPTY_LIST))
        assert client.read().body == FAULTY


def test_a_client_with_too_large_a_body_gets_no_100_continue(face: Face) -> None:
    with face.connect() as client:
        client.send(request(*POST, "Expect: 100-continue", "Content-Length: 100000"))
        assert client.read().status == 413


@pytest.mark.parametrize(
    "data",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET /\r\n\r\n", b"BREW /tea HTTP/1.1\r\n\r\n",
     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n",
     GET.replace(b"HTTP/1.1", b"HTTP/2.0"), GET.replace(b"HTTP/1.1", b"HTTP/0.9"),
     b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
     b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
     b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
)  # fmt: skip
def test_data_that_is_not_http_is_refused_and_closed(face: Face, data: bytes) -> None:
    with face.connect() as client:
        client.send(GET + data)
        assert client.read().status == 200
        answer = client.read()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert client.is_closed()


def test_connect_is_not_served(face: Face) -> None:
    with face.connect() as client:
        client.send(b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n" + GET)
        assert client.read().status == 404
        assert client.is_closed()


def test_a_half_closed_connection_is_still_answered(face: Face) -> None:
    with face.connect() as client:
        client.send(GET + request(*POST, body=EMPTY_LIST) + GET)
        client.socket.shutdown(socket.SHUT_WR)
        assert [client.read().status for _ in range(3)] == [200, 400, 200]
        assert client.is_closed()


def test_a_half_closed_connection_with_an_incomplete_request_is_closed(face: Face) -> None:
    with face.connect() as client:
        client.send(GET[:20])
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_closed()


# Timeouts


def test_an_incomplete_request_is_closed_after_the_timeout() -> None:
    with serving(settings=with_limits(request_seconds=0.05)) as face, face.connect() as client:
        assert client.get().status == 200
        client.send(GET[:20])
        assert client.is_closed()


def test_a_slow_request_gets_no_more_time() -> None:
    with serving(settings=with_limits(request_seconds=0.05)) as face, face.connect() as client:
        client.socket.settimeout(0.01)
        with pytest.raises((ConnectionError, EOFError)):  # noqa: PT012
            for at in range(len(GET)):
                client.send(GET[at : at + 1])
                trickle(client)


def trickle(client: Client) -> None:
    """Wait a moment, in which the server may close the connection."""
    try:
        client.fill()
    except TimeoutError:
        return


def test_an_idle_connection_is_closed() -> None:
    with serving(settings=with_limits(idle_seconds=A_WHILE)) as face:
        with face.connect() as client:
            assert client.is_closed()
        with face.connect() as client:
            assert client.get().status == 200
            assert client.get().status == 200
            assert client.is_closed()


def test_a_connection_with_a_long_poll_is_not_idle() -> None:
    with serving(settings=with_limits(idle_seconds=A_WHILE)) as face, face.connect() as client:
        etag = client.get().headers["etag"]
        assert client.get(EVENTS, f"If-None-Match: {etag}", "Prefer: wait=1").status == 304


def test_a_client_that_does_not_read_is_paused_and_finally_closed() -> None:
    with serving(settings=with_limits(idle_seconds=0.3)) as face, face.connect() as client:
        client.socket.settimeout(0.1)
        with pytest.raises((TimeoutError, ConnectionError)):  # noqa: PT012
            while True:
                client.send(GET * 16)
        face.connections(0)


def test_a_client_that_reads_late_gets_all_answers() -> None:
    with serving() as face, face.connect() as client:
        face.show(*(event(EventType.FREEZE, number=number) for number in range(3000)))
        client.send(GET * 16)  # about 14 MB of answers: more than the buffers of the sockets
        face.get()
        answers = [client.read() for _ in range(16)]
        assert {len(answer.body) for answer in answers} == {len(answers[0].body)}
        assert client.get().status == 200


# Stopping


HELD = request("GET", EVENTS, "Metadata: true", "If-None-Match: *", "Prefer: wait=60")


PATIENCE = 30.0  # far longer than needed; idle connections would take all of it


def stopped_while(face: Face, send: Callable[[], list[Client]]) -> list[Client]:
    """Let clients send requests that the server has not read when the stop begins."""

    async def stop() -> list[Client]:
        clients = send()  # on the loop's thread, so that the loop reads this after `stop` has begun
        await face.server.stop(drain=PATIENCE)
        return clients

    return face.run(stop())


def test_a_stop_answers_each_long_poll() -> None:
    with serving() as face:
        clients = [face.connect() for _ in range(8)]
        for client in clients:
            client.send(HELD)
        face.waiting(8)
        stopped_while(face, lambda: clients)
        assert_answered_and_closed(clients)


def test_a_stop_answers_requests_in_transit() -> None:
    with serving() as face:
        clients = [face.connect() for _ in range(8)]
        face.connections(8)

        def send() -> list[Client]:
            for client in clients:
                client.send(HELD)
            return clients

        assert_answered_and_closed(stopped_while(face, send))


def test_a_stop_answers_callers_that_connect_during_it() -> None:
    with serving() as face:

        def send() -> list[Client]:
            clients = [face.connect() for _ in range(8)]
            for client in clients:
                client.send(HELD)
            return clients

        assert_answered_and_closed(stopped_while(face, send))


def assert_answered_and_closed(clients: list[Client]) -> None:
    for client in clients:
        with client:
            answer = client.read()
            assert (answer.status, answer.headers["connection"]) == (304, "close")
            assert client.is_closed()


# Limits


def test_a_machine_has_a_limit_on_connections() -> None:
    with serving(settings=with_limits(connections=3)) as face:
        clients = [face.connect() for _ in range(3)]
        assert [client.get().status for client in clients] == [200] * 3
        with face.connect() as one_more:
            answer = one_more.get()
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert one_more.is_closed()
        clients.pop().socket.close()
        face.connections(2)
        assert face.get().status == 200
        assert [client.get().status for client in clients] == [200] * 2
        for client in clients:
            client.socket.close()


def test_the_default_limit_is_sixty_four_connections() -> None:
    with serving() as face:
        clients = [face.connect() for _ in range(64)]
        assert {client.get().status for client in clients} == {200}
        assert face.get().status == 503
        for client in clients:
            client.socket.close()


def test_a_flood_of_connections_is_aborted_without_an_answer() -> None:
    with serving(settings=with_limits(connections=1)) as face:
        clients = [face.connect() for _ in range(3)]
        assert clients[2].is_closed()
        assert clients[0].get().status == 200
        for client in clients:
            client.socket.close()


A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"


def crowd(face: Face, *sources: str) -> list[Client]:
    clients = [face.connect(source) for source in sources]
    face.connections(len(clients))
    return clients


def with_room(connections: int) -> EndpointSettings:
    return with_limits(all_connections=connections + 1)  # plus one listening socket


MACHINES = tuple(machine(f"web-{number}", address=address) for number, address in enumerate((A, B, C)))


def refused(face: Face) -> dict[Limit, int]:
    return face.server.connections.refusals.counts


def test_without_room_a_machine_replaces_spare_connections_of_others() -> None:
    with serving(*MACHINES, settings=with_room(4)) as face:
        first, oldest, older, young = crowd(face, A, A, A, A)
        with face.connect(B) as client:
            assert client.get().status == 200
        assert oldest.is_closed()
        face.connections(3)
        assert [each.get().status for each in (first, older, young)] == [200] * 3
        for each in (first, oldest, older, young):
            each.socket.close()
        assert refused(face) == {**dict.fromkeys(Limit, 0), Limit.WHOLE: 1}


def test_all_connections_of_unknown_callers_are_spare() -> None:
    with serving(*MACHINES, settings=with_room(2)) as face:
        strangers = crowd(face, "127.0.0.98", "127.0.0.99")
        with face.connect(A) as one, face.connect(B) as two:
            assert [one.get().status, two.get().status] == [200, 200]
            assert all(stranger.is_closed() for stranger in strangers)
            with face.connect("127.0.0.99") as stranger:
                assert stranger.is_closed()
        for each in strangers:
            each.socket.close()


def test_no_machine_replaces_the_only_connection_of_another() -> None:
    with serving(*MACHINES, settings=with_room(2)) as face:
        clients = crowd(face, A, B)
        for source in (C, A):
            with face.connect(source) as one_more:
                assert one_more.is_closed()
        assert [client.get().status for client in clients] == [200, 200]
        for each in clients:
            each.socket.close()
        assert refused(face)[Limit.WHOLE] == 2


def test_a_second_connection_that_became_the_only_one_is_not_spare() -> None:
    with serving(*MACHINES, settings=with_room(2)) as face:
        first, second = crowd(face, A, A)
        first.socket.close()
        face.connections(1)
        with face.connect(B) as client:
            assert client.get().status == 200
            with face.connect(C) as one_more:
                assert one_more.is_closed()
        assert second.get().status == 200
        second.socket.close()


def test_a_fleet_with_more_machines_than_connections_causes_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(*MACHINES[:2], settings=with_room(2)) as face:
        face.do(face.server.check_room)
        assert "room" not in caplog.text
        face.apply(machines=(MACHINES[2],))
        face.apply(machines=(MACHINES[2],))
    assert [record.getMessage() for record in caplog.records if "the fleet has 3" in record.getMessage()] == [
        "there is room for the connections of 2 machines, and the fleet has 3: raise the limit on file "
        "descriptors (ulimit -n; LimitNOFILE= of a unit) or [guest] connections"
    ]


def test_unknown_callers_share_one_limit_on_connections() -> None:
    with serving(settings=with_limits(connections=2)) as face:
        strangers = [face.connect(f"127.0.0.{last}") for last in (97, 98)]
        assert {stranger.get().status for stranger in strangers} == {404}
        assert face.get(source="127.0.0.99").status == 503
        assert face.get().status == 200
        for client in strangers:
            client.socket.close()


def test_a_connection_counts_towards_the_callers_current_machine() -> None:
    with serving(groups=(group(),), settings=with_limits(connections=1)) as face, face.connect() as client:
        assert client.get().status == 200
        face.apply(removed_machines=("id-of-web-0",), machines=(machine("web-9"),))
        assert client.get().status == 200
        assert face.get().status == 503
