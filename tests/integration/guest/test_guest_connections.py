"""Framing: how requests arrive, how answers are kept in order, and how connections end."""

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
# Longer than a busy computer keeps a client from sending, in seconds.
A_WHILE = 0.5


@pytest.fixture(scope="module")
def face() -> Iterator[Face]:
    with serving() as face:
        yield face


def test_a_connection_serves_many_requests(face: Face) -> None:
    with face.connect() as client:
        assert [client.get().status for _ in range(5)] == [200] * 5


def test_requests_may_be_pipelined_and_are_answered_in_their_order(face: Face) -> None:
    with face.connect() as client:
        client.send(GET + request("GET", "/nowhere") + request(*POST, body=EMPTY_LIST) + GET)
        assert [client.read().status for _ in range(4)] == [200, 404, 400, 200]


def test_sixteen_may_be_pipelined_and_the_next_is_refused(face: Face) -> None:
    with face.connect() as client:
        client.send(GET * 16)
        assert [client.read().status for _ in range(16)] == [200] * 16
        client.send(GET * 40)
        assert [client.read().status for _ in range(17)] == [200] * 16 + [503]
        assert client.is_closed()


def test_requests_behind_a_held_one_wait_for_their_turn_and_are_counted(face: Face) -> None:
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


def test_a_request_may_be_split_at_every_byte(face: Face) -> None:
    data = request(*POST, body=EMPTY_LIST) + GET
    with face.connect() as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(data)):
            client.send(data[at : at + 1])
        assert client.read().body == FAULTY
        assert client.read().status == 200


@pytest.mark.parametrize("at", range(1, len(GET), 7))
def test_a_request_may_be_split_in_two_anywhere(face: Face, at: int) -> None:
    with face.connect() as client:
        client.send(GET[:at])
        client.send(GET[at:] + GET[:at])
        client.send(GET[at:])
        assert [client.read().status for _ in range(2)] == [200, 200]


def test_empty_lines_before_a_request_are_skipped(face: Face) -> None:
    with face.connect() as client:
        client.send(b"\r\n\r\n" + GET + b"\r\n" + GET)
        assert [client.read().status for _ in range(2)] == [200, 200]


def test_connection_close_is_answered_in_kind_and_closed(face: Face) -> None:
    with face.connect() as client:
        client.send(request("GET", EVENTS, "Metadata: true", "Connection: close") + GET)
        answer = client.read()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert client.is_closed()
    with face.connect() as client:
        answer = client.request(*POST, "Connection: close", body=EMPTY_LIST)
        assert (answer.body, answer.headers["connection"]) == (FAULTY, "close")
        assert client.is_closed()


def test_http_1_0_is_closed_unless_it_asks_otherwise(face: Face) -> None:
    line = f"GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\n".encode()
    with face.connect() as client:
        client.send(line + b"Connection: keep-alive\r\n\r\n")
        assert client.read().headers["connection"] == "keep-alive"
        client.send(line + b"\r\n")
        assert client.read().headers["connection"] == "close"
        assert client.is_closed()


def test_http_1_0_keeps_its_word_for_requests_it_has_seen(face: Face) -> None:
    for _ in range(2):
        with face.connect() as client:
            client.send(f"GET {EVENTS} HTTP/1.0\r\nMetadata: true\r\n\r\n".encode())
            assert client.read().headers["connection"] == "close"
            assert client.is_closed()


def test_a_client_that_expects_to_be_told_to_go_on_is_told(face: Face) -> None:
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


def test_a_client_is_told_to_go_on_after_the_answers_before(face: Face) -> None:
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


def test_an_upgrade_whose_body_comes_in_pieces_is_served(face: Face) -> None:
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


def test_a_head_may_have_eight_kibibytes_and_not_one_more(face: Face) -> None:
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


def test_a_body_may_have_sixty_four_kibibytes_and_not_one_more(face: Face) -> None:
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


def test_a_body_of_tiny_chunks_is_read(face: Face) -> None:
    with face.connect() as client:
        client.send(request(*POST, "Transfer-Encoding: chunked") + chunked(*[b" "] * 20000, EMPTY_LIST))
        assert client.read().body == FAULTY


def test_a_client_that_wants_to_send_too_much_is_not_told_to_go_on(face: Face) -> None:
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
def test_what_is_not_http_is_refused_and_closed(face: Face, data: bytes) -> None:
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


def test_a_client_that_has_sent_all_it_will_is_still_answered(face: Face) -> None:
    with face.connect() as client:
        client.send(GET + request(*POST, body=EMPTY_LIST) + GET)
        client.socket.shutdown(socket.SHUT_WR)
        assert [client.read().status for _ in range(3)] == [200, 400, 200]
        assert client.is_closed()


def test_half_a_request_and_then_nothing_is_closed(face: Face) -> None:
    with face.connect() as client:
        client.send(GET[:20])
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_closed()


# Time.


def test_a_request_that_does_not_arrive_whole_in_time_is_closed() -> None:
    with serving(settings=with_limits(request_seconds=0.05)) as face, face.connect() as client:
        assert client.get().status == 200
        client.send(GET[:20])
        assert client.is_closed()


def test_a_request_that_trickles_in_gets_no_more_time() -> None:
    with serving(settings=with_limits(request_seconds=0.05)) as face, face.connect() as client:
        client.socket.settimeout(0.01)
        with pytest.raises((ConnectionError, EOFError)):  # noqa: PT012
            for at in range(len(GET)):
                client.send(GET[at : at + 1])
                trickle(client)


def trickle(client: Client) -> None:
    """Let a moment pass; the server may close in it."""
    try:
        client.fill()
    except TimeoutError:
        return


def test_a_connection_on_which_nothing_comes_is_closed() -> None:
    with serving(settings=with_limits(idle_seconds=A_WHILE)) as face:
        with face.connect() as client:
            assert client.is_closed()
        with face.connect() as client:
            assert client.get().status == 200
            assert client.get().status == 200
            assert client.is_closed()


def test_a_held_request_is_not_idle() -> None:
    with serving(settings=with_limits(idle_seconds=A_WHILE)) as face, face.connect() as client:
        etag = client.get().headers["etag"]
        assert client.get(EVENTS, f"If-None-Match: {etag}", "Prefer: wait=1").status == 304


def test_a_client_that_does_not_read_is_not_read_from_and_closed_in_the_end() -> None:
    with serving(settings=with_limits(idle_seconds=0.3)) as face, face.connect() as client:
        client.socket.settimeout(0.1)
        with pytest.raises((TimeoutError, ConnectionError)):  # noqa: PT012
            while True:
                client.send(GET * 16)
        face.connections(0)


def test_a_client_that_reads_late_gets_all_its_answers() -> None:
    with serving() as face, face.connect() as client:
        face.show(*(event(EventType.FREEZE, number=number) for number in range(3000)))
        client.send(GET * 16)  # some fourteen megabytes of answers: more than the sockets take
        face.get()
        answers = [client.read() for _ in range(16)]
        assert {len(answer.body) for answer in answers} == {len(answers[0].body)}
        assert client.get().status == 200


# The end of the service.


HELD = request("GET", EVENTS, "Metadata: true", "If-None-Match: *", "Prefer: wait=60")


PATIENCE = 30.0  # far longer than it takes; idle connections alone would use it up


def stopped_while(face: Face, send: Callable[[], list[Client]]) -> list[Client]:
    """Let clients send something that the service has not seen when it is told to stop."""

    async def stop() -> list[Client]:
        clients = send()  # on the loop's own thread: what is sent now is read after `stop` has begun
        await face.server.stop(drain=PATIENCE)
        return clients

    return face.run(stop())


def test_each_held_request_is_answered_when_the_service_stops() -> None:
    with serving() as face:
        clients = [face.connect() for _ in range(8)]
        for client in clients:
            client.send(HELD)
        face.waiting(8)
        stopped_while(face, lambda: clients)
        assert_told_and_closed(clients)


def test_a_request_that_is_on_its_way_when_the_service_stops_is_answered() -> None:
    with serving() as face:
        clients = [face.connect() for _ in range(8)]
        face.connections(8)

        def send() -> list[Client]:
            for client in clients:
                client.send(HELD)
            return clients

        assert_told_and_closed(stopped_while(face, send))


def test_a_caller_that_connects_when_the_service_stops_is_answered() -> None:
    with serving() as face:

        def send() -> list[Client]:
            clients = [face.connect() for _ in range(8)]
            for client in clients:
                client.send(HELD)
            return clients

        assert_told_and_closed(stopped_while(face, send))


def assert_told_and_closed(clients: list[Client]) -> None:
    for client in clients:
        with client:
            answer = client.read()
            assert (answer.status, answer.headers["connection"]) == (304, "close")
            assert client.is_closed()


# Limits.


def test_a_machine_has_so_many_connections_and_no_more() -> None:
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


def test_a_machine_that_floods_is_not_even_told() -> None:
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
    return with_limits(all_connections=connections + 1)  # and one socket that listens


MACHINES = tuple(machine(f"web-{number}", address=address) for number, address in enumerate((A, B, C)))


def refused(face: Face) -> dict[Limit, int]:
    return face.server.connections.refusals.counts


def test_where_there_is_no_room_a_machine_takes_the_place_of_others_spare_connections() -> None:
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


def test_strangers_connections_are_all_spare() -> None:
    with serving(*MACHINES, settings=with_room(2)) as face:
        strangers = crowd(face, "127.0.0.98", "127.0.0.99")
        with face.connect(A) as one, face.connect(B) as two:
            assert [one.get().status, two.get().status] == [200, 200]
            assert all(stranger.is_closed() for stranger in strangers)
            with face.connect("127.0.0.99") as stranger:
                assert stranger.is_closed()
        for each in strangers:
            each.socket.close()


def test_no_machine_takes_another_ones_only_connection() -> None:
    with serving(*MACHINES, settings=with_room(2)) as face:
        clients = crowd(face, A, B)
        for source in (C, A):
            with face.connect(source) as one_more:
                assert one_more.is_closed()
        assert [client.get().status for client in clients] == [200, 200]
        for each in clients:
            each.socket.close()
        assert refused(face)[Limit.WHOLE] == 2


def test_what_was_a_machines_second_connection_and_is_now_its_only_one_stays() -> None:
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


def test_a_fleet_that_has_more_machines_than_there_is_room_for_is_warned_of_once(
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


def test_unknown_callers_share_one_number_of_connections_and_take_none_from_machines() -> None:
    with serving(settings=with_limits(connections=2)) as face:
        strangers = [face.connect(f"127.0.0.{last}") for last in (97, 98)]
        assert {stranger.get().status for stranger in strangers} == {404}
        assert face.get(source="127.0.0.99").status == 503
        assert face.get().status == 200
        for client in strangers:
            client.socket.close()


def test_a_connection_counts_to_whoever_the_caller_has_become() -> None:
    with serving(groups=(group(),), settings=with_limits(connections=1)) as face, face.connect() as client:
        assert client.get().status == 200
        face.apply(removed_machines=("id-of-web-0",), machines=(machine("web-9"),))
        assert client.get().status == 200
        assert face.get().status == 503
