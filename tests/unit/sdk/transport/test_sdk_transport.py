"""HTTP/1.1 and the reuse of connections, without sockets or a clock."""

from collections.abc import Sequence
from typing import Any

import pytest

from forewarn.sdk.guest_errors import Closed
from forewarn.sdk.transport.connection_reuse import (
    KEPT_SECONDS,
    Connect,
    EndpointConnections,
    Step,
    Steps,
    Transfer,
)
from forewarn.sdk.transport.exchange import (
    ENDLESS,
    HANGS_UP,
    LONGEST_BODY,
    Exchange,
    GuestRequest,
    HttpAnswer,
    NoAnswer,
    Reply,
)

POLL = GuestRequest(path="/metadata/scheduledevents", query={"api-version": "2020-07-01"}, seconds=10.0)
APPROVE = GuestRequest(path="/metadata/scheduledevents", method="POST", body=b"{}", seconds=10.0)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"


class FakeConnection:
    def __init__(self) -> None:
        self.exchange = Exchange()
        self.is_reusable = True
        self.hung_up = self.closed = False

    def hang_up(self) -> None:
        self.hung_up = True

    def close(self) -> None:
        self.closed = True


class Driver:
    """Performs steps: each transfer receives the next scripted data; nothing means a closed connection."""

    def __init__(self, *said: bytes) -> None:
        self.said = list(said)
        self.steps: list[Step] = []
        self.made: list[FakeConnection] = []

    def perform(self, step: Step) -> Any:
        self.steps.append(step)
        if isinstance(step, Connect):
            self.made.append(FakeConnection())
            return self.made[-1]
        assert isinstance(step, Transfer)
        return step.connection.exchange.receive(self.said.pop(0))

    def run(self, steps: Steps[Reply]) -> Reply:
        try:
            step = next(steps)
            while True:
                step = steps.send(self.perform(step))
        except StopIteration as end:
            reply: Reply = end.value
            return reply

    def sent(self) -> list[bytes]:
        return [step.data for step in self.steps if isinstance(step, Transfer)]


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def connections(url: str = "http://127.0.0.1:8169", time: Time | None = None) -> EndpointConnections:
    return EndpointConnections(url, monotonic=time or Time())


def received(exchange: Exchange, *parts: bytes) -> Sequence[Reply | None]:
    return [exchange.receive(part) for part in parts]


def asked() -> Exchange:
    under_way = connections().ask(POLL)
    next(under_way)
    under_way.send(made := FakeConnection())
    return made.exchange


def test_a_request_has_its_target_and_headers() -> None:
    driver = Driver(ANSWER)
    driver.run(connections("http://[::1]:8169/here").ask(POLL))
    head = driver.sent()[0].decode().lower()
    assert head.startswith("get /here/metadata/scheduledevents?api-version=2020-07-01 http/1.1\r\n")
    assert {"host: [::1]:8169", "metadata: true", "accept-encoding: identity"} <= set(head.split("\r\n"))
    assert driver.steps[0] == Connect("::1", 8169, None, 5.0)


def test_a_body_is_sent_with_its_length() -> None:
    driver = Driver(ANSWER)
    driver.run(connections().ask(APPROVE))
    head, _, body = driver.sent()[0].partition(b"\r\n\r\n")
    assert (b"content-length: 2" in head.lower(), body) == (True, b"{}")


def test_an_answer_is_complete_with_its_last_byte() -> None:
    replies = received(asked(), *(bytes([byte]) for byte in ANSWER))
    assert replies[:-1] == [None] * (len(ANSWER) - 1)
    assert replies[-1] == HttpAnswer(status=200, headers={"content-length": "2"}, body=b"{}")


def test_only_a_connection_that_ends_before_an_answer_is_stale() -> None:
    assert received(asked(), b"") == [NoAnswer(why=HANGS_UP, stale=True)]
    assert received(asked(), ANSWER[:-1], b"") == [None, NoAnswer(why=HANGS_UP)]


def test_a_body_that_is_too_long_is_refused() -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    assert received(asked(), head, b"x" * LONGEST_BODY, b"x") == [None, None, NoAnswer(why=ENDLESS)]


def test_a_connection_is_reused() -> None:
    driver, kept = Driver(ANSWER, ANSWER), connections()
    for _ in range(2):
        assert isinstance(driver.run(kept.ask(POLL)), HttpAnswer)
    assert len(driver.made) == 1


@pytest.mark.parametrize("said", [CLOSING, ANSWER + b"more"])
def test_a_connection_that_the_server_ends_is_closed(said: bytes) -> None:
    driver, kept = Driver(said, ANSWER), connections()
    for _ in range(2):
        assert isinstance(driver.run(kept.ask(POLL)), HttpAnswer)
    assert [made.closed for made in driver.made] == [True, False]


def test_a_connection_with_unrequested_data_is_closed() -> None:
    driver, kept = Driver(ANSWER, ANSWER), connections()
    driver.run(kept.ask(POLL))
    driver.made[0].is_reusable = False
    driver.run(kept.ask(POLL))
    assert [made.closed for made in driver.made] == [True, False]


def test_a_connection_that_was_idle_too_long_is_closed() -> None:
    time, driver = Time(), Driver(ANSWER, ANSWER)
    kept = connections(time=time)
    driver.run(kept.ask(POLL))
    time.now += KEPT_SECONDS
    driver.run(kept.ask(POLL))
    assert [made.closed for made in driver.made] == [True, False]


def test_a_request_on_a_stale_connection_is_repeated_on_a_new_one() -> None:
    driver, kept = Driver(ANSWER, b"", b"", ANSWER), connections()
    driver.run(kept.ask(POLL))
    assert driver.run(kept.ask(APPROVE)) == NoAnswer(why=HANGS_UP, stale=True)
    assert [data.split()[0] for data in driver.sent()] == [b"GET", b"POST", b"POST"]
    assert [made.closed for made in driver.made] == [True, True]


def test_a_partly_answered_request_is_not_repeated() -> None:
    driver, kept = Driver(ANSWER, b"rubbish\r\n\r\n"), connections()
    driver.run(kept.ask(POLL))
    assert isinstance(driver.run(kept.ask(POLL)), NoAnswer)
    assert len(driver.sent()) == 2


def test_close_aborts_busy_connections_and_closes_idle_ones() -> None:
    driver, kept = Driver(ANSWER), connections()
    under_way = kept.ask(POLL)
    next(under_way)
    under_way.send(busy := FakeConnection())
    driver.run(kept.ask(POLL))
    kept.close()
    assert (busy.hung_up, busy.closed, driver.made[0].closed) == (True, False, True)
    with pytest.raises(Closed):
        under_way.send(busy.exchange.receive(b""))
    assert busy.closed
    with pytest.raises(Closed):
        next(kept.ask(POLL))


def test_an_abandoned_request_closes_its_connection() -> None:
    under_way = connections().ask(POLL)
    next(under_way)
    under_way.send(busy := FakeConnection())
    under_way.close()
    assert busy.closed
