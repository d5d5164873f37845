"""The calls of both clients, without I/O.

A call is a generator: it yields requests, receives the replies, and returns the result. It reads no clock, so
the same code serves threads and event loops, and tests need neither.
"""

import json
from collections.abc import Callable, Generator
from dataclasses import replace
from http import HTTPStatus
from typing import TypeAlias, TypeVar

from forewarn.sdk.answer_reading import (
    ANSWER_SECONDS,
    NewDocument,
    Unchanged,
    answer_timeout,
    backoff,
    check,
    longest_pause,
    read_poll,
)
from forewarn.sdk.documents import NEWEST_VERSION, Document
from forewarn.sdk.guest_errors import EndpointUnavailable
from forewarn.sdk.instances import Instance, parse_instance
from forewarn.sdk.transport.endpoint_urls import EVENTS_PATH
from forewarn.sdk.transport.exchange import GuestRequest, HttpAnswer, NoAnswer, Reply, ServerTime

INSTANCE_PATH = "/metadata/instance/compute"
# The newest version that all of Azure supports; forewarn accepts any later date too.
INSTANCE_VERSION = "2021-02-01"

# Azure asks clients to poll once a second.
POLL_SECONDS = 1.0
# How long a server should hold a poll. Firewalls drop connections that are idle for longer.
WAIT_SECONDS = 60
# How long a call is retried by default.
PERSISTENCE_SECONDS = 60.0

Result = TypeVar("Result")


Call: TypeAlias = Generator[GuestRequest, Reply, Result]
OnTrouble: TypeAlias = Callable[[EndpointUnavailable | None], None]


class GuestCalls:
    """The calls of one client, and their shared state: the last answer, and the time of the server."""

    def __init__(self, *, version: str = NEWEST_VERSION, timeout: float | None = None) -> None:
        """Take the timeout of an answer in seconds; None: as long as endpoints may need."""
        self.version = version
        self._timeout = timeout
        # Threads share these without a lock: each assignment replaces a whole value, never with None.
        self._document: Document | None = None  # the last one
        self.server_time: ServerTime | None = None
        # When a document or "unchanged" last came. After that, an answer does not take two minutes.
        self.last_answered: float | None = None

    def events(self, *, now: float, within: float = PERSISTENCE_SECONDS) -> Call[Document]:
        """Get the document."""
        return (yield from self._persist(self.poll(now=now), self.read_document, within=within))

    def approve(self, ids: tuple[str, ...], *, now: float, within: float = PERSISTENCE_SECONDS) -> Call[None]:
        """Approve events. A repeated approval counts once."""
        body = json.dumps({"StartRequests": [{"EventId": id_} for id_ in ids]}).encode()
        headers = {"Content-Type": "application/json"}
        request = replace(self.poll(now=now), method="POST", headers=headers, body=body)
        yield from self._persist(request, check, within=within)

    def instance(self, *, within: float = PERSISTENCE_SECONDS) -> Call[Instance]:
        """Get the instance metadata of this machine."""
        request = GuestRequest(
            path=INSTANCE_PATH,
            query={"api-version": INSTANCE_VERSION},
            seconds=self._timeout or ANSWER_SECONDS,
        )
        return (yield from self._persist(request, _read_instance, within=within))

    def poll(self, *, now: float, etag: str | None = None, wait: int | None = None) -> GuestRequest:
        """Return a request for the document."""
        headers = {} if etag is None else {"If-None-Match": etag}
        if wait is not None:
            headers["Prefer"] = f"wait={wait}"
        return GuestRequest(
            path=EVENTS_PATH,
            query={"api-version": self.version},
            headers=headers,
            seconds=(self._timeout or answer_timeout(self.last_answered, now=now)) + (wait or 0),
        )

    def answer_of(self, reply: Reply) -> HttpAnswer:
        """Note the time of the server, and return the answer; EndpointUnavailable if there is none."""
        if isinstance(reply, NoAnswer):
            raise EndpointUnavailable(reply.why)
        self.server_time = reply.server_time or self.server_time
        return reply

    def read(self, answer: HttpAnswer) -> NewDocument | Unchanged:
        """Read the answer to a poll, or raise its error."""
        read = read_poll(answer, version=self.version)
        if isinstance(read, NewDocument):
            self._document = read.document
        return read

    def notice_left(self, now: float) -> float | None:
        """Return the seconds until the first event may start, by the last document; None without events."""
        if self._document is None or self.server_time is None:
            return None
        server_now = self.server_time.now(now)
        left = (event.seconds_left(server_now) for event in self._document.events if not event.started)
        return min((seconds for seconds in left if seconds), default=None)

    def pause_after(self, failures: int, error: EndpointUnavailable, *, now: float) -> float:
        """Return the pause after a number of failures in a row."""
        return backoff(failures, named=error.retry_after, left=self.notice_left(now))

    def read_document(self, answer: HttpAnswer) -> Document:
        """Read the answer to a request without an ETag."""
        read = self.read(answer)
        self.last_answered = answer.received
        if isinstance(read, NewDocument):
            return read.document
        raise EndpointUnavailable("the endpoint answers 304 to a request without an ETag")

    def _persist(
        self, request: GuestRequest, read: Callable[[HttpAnswer], Result], *, within: float
    ) -> Call[Result]:
        """Repeat a request until it succeeds or the time is over."""
        failures, deadline = 0, None
        while True:
            reply = yield request
            deadline = reply.sent + within if deadline is None else deadline
            try:
                return read(self.answer_of(reply))
            except EndpointUnavailable as error:
                failures += 1
                after = self.pause_after(failures, error, now=reply.received)
                if reply.received + after > deadline:
                    raise
                request = replace(request, after=after)


class DocumentWatch:
    """A watch of the document: each call of `next` returns the next document that differs.

    It asks the server to hold each request until the document changes. A server that does not support this
    answers at once, and is then polled once a second.
    """

    def __init__(
        self, calls: GuestCalls, *, wait: int = WAIT_SECONDS, trouble: OnTrouble | None = None
    ) -> None:
        self._calls = calls
        self._wait = wait
        self._trouble = trouble
        self._document: Document | None = None
        self._etag: str | None = None
        # Whether the server holds requests. A new document resets it: it may come from another server.
        self._holds = True
        self._failures = 0
        self._begun: float | None = None  # when the last request was sent

    def next(self, *, now: float) -> Call[Document]:
        """Poll until the document differs."""
        after = self._rest(now)
        while True:
            # After a failure the answer should come at once, to report the end of the outage.
            holding = self._wait > 0 and self._holds and self._etag is not None and not self._failures
            request = self._calls.poll(now=now, etag=self._etag, wait=self._wait if holding else None)
            reply = yield replace(request, after=after)
            now, self._begun = reply.received, reply.sent
            try:
                answer = self._calls.answer_of(reply)
                read = self._calls.read(answer)
            except EndpointUnavailable as error:
                after = self._failed(error, now)
                continue
            self._calls.last_answered = answer.received
            if self._failures and self._trouble is not None:
                self._trouble(None)
            self._failures, after = 0, self._rest(now)
            if isinstance(read, NewDocument):
                self._etag, self._holds = read.etag, True
                if read.document != self._document:
                    self._document = read.document
                    return read.document
            elif holding:
                self._holds = answer.waited

    def _rest(self, now: float) -> float:
        """Return the pause after which the next request begins a second after the last one."""
        return 0.0 if self._begun is None else max(0.0, self._begun + POLL_SECONDS - now)

    def _failed(self, error: EndpointUnavailable, now: float) -> float:
        """Report the failure, and return the pause: at least a second, unless an event is about to start."""
        self._failures += 1
        if self._failures == 1 and self._trouble is not None:
            self._trouble(error)
        rest = min(self._rest(now), longest_pause(self._calls.notice_left(now)))
        return max(self._calls.pause_after(self._failures, error, now=now), rest)


def _read_instance(answer: HttpAnswer) -> Instance:
    if answer.status == HTTPStatus.NOT_FOUND:
        raise EndpointUnavailable("404: the endpoint has no metadata of this machine (yet). Set its name.")
    check(answer)
    return parse_instance(answer.body)
