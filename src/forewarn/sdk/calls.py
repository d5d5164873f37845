"""What a client says, and what it makes of the answers; both clients speak from here.

A talk is a generator: it yields what to ask, is sent what came back, and returns what the caller wanted. It
does no I/O and reads no clock, so the same talk serves threads and event loops, and tests need neither.
"""

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TypeAlias, TypeVar

from forewarn.sdk.documents import NEWEST_VERSION, Document
from forewarn.sdk.errors import Unavailable
from forewarn.sdk.instances import Instance, parse_instance
from forewarn.sdk.replies import ANSWER_SECONDS, Answer, News, backoff, check, patience, read_poll
from forewarn.sdk.server_time import ServerTime

EVENTS_PATH = "/metadata/scheduledevents"
INSTANCE_PATH = "/metadata/instance/compute"
# The newest that all of Azure offers; any later date would do for forewarn.
INSTANCE_VERSION = "2021-02-01"

# What Azure asks of pollers: once a second, and no more.
POLL_SECONDS = 1.0
# For how long a server is asked to hold a poll; middleboxes forget a connection that is silent for longer.
WAIT_SECONDS = 60
# For how long a single question is asked again, unless the caller has more or less time.
PERSISTENCE_SECONDS = 60.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request, to be sent after a pause, whose answer may take so many seconds."""

    path: str
    seconds: float
    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    after: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Nobody answered, and why."""

    why: str
    sent: float = 0.0
    received: float = 0.0  # when it was given up


Reply: TypeAlias = Answer | Silence
Talk: TypeAlias = Generator[Ask, Reply, Result]
Trouble: TypeAlias = Callable[[Unavailable | None], None]


class Conversation:
    """All talks of one client, and what they have in common: who answered when, and the server's time."""

    def __init__(self, *, version: str = NEWEST_VERSION) -> None:
        self.version = version
        self.server_time: ServerTime | None = None
        self.last_answered: float | None = None  # with a document, or that it is as it was

    def events(self, *, now: float, within: float = PERSISTENCE_SECONDS) -> Talk[Document]:
        """Ask for the document."""
        ask = self.poll(now=now)
        document = yield from self._persist(ask, self.read_document, within=within)
        return document

    def approve(self, ids: tuple[str, ...], *, now: float, within: float = PERSISTENCE_SECONDS) -> Talk[None]:
        """Let events start. Asking again does no harm: an approval counts once."""
        body = json.dumps({"StartRequests": [{"EventId": id_} for id_ in ids]}).encode()
        headers = {"Content-Type": "application/json"}
        ask = replace(self.poll(now=now), method="POST", headers=headers, body=body)
        yield from self._persist(ask, check, within=within)

    def instance(self, *, within: float = PERSISTENCE_SECONDS) -> Talk[Instance]:
        """Ask who this machine is."""
        ask = Ask(path=INSTANCE_PATH, query={"api-version": INSTANCE_VERSION}, seconds=ANSWER_SECONDS)
        instance = yield from self._persist(ask, _read_instance, within=within)
        return instance

    def poll(self, *, now: float, etag: str | None = None, wait: int | None = None) -> Ask:
        """Put the question for the document."""
        headers = {} if etag is None else {"If-None-Match": etag}
        if wait is not None:
            headers["Prefer"] = f"wait={wait}"
        return Ask(
            path=EVENTS_PATH,
            query={"api-version": self.version},
            headers=headers,
            seconds=patience(self.last_answered, now=now) + (wait or 0),
        )

    def heard(self, reply: Reply) -> Answer:
        """Take note of a reply, and return the answer that there must be."""
        if isinstance(reply, Silence):
            raise Unavailable(reply.why)
        self.server_time = reply.server_time or self.server_time
        return reply

    def answered(self, answer: Answer) -> None:
        """Remember that the endpoint knows this machine: it will not take two minutes again."""
        self.last_answered = answer.received

    def read_document(self, answer: Answer) -> Document:
        """Take the document out of an answer to one who knows nothing."""
        read = read_poll(answer, version=self.version)
        self.answered(answer)
        if isinstance(read, News):
            return read.document
        raise Unavailable("the endpoint says that nothing has changed, to one who knows nothing")

    def _persist(self, ask: Ask, read: Callable[[Answer], Result], *, within: float) -> Talk[Result]:
        """Ask until it is answered, or until there is no time left to ask again."""
        failures, deadline = 0, None
        while True:
            reply = yield ask
            deadline = reply.sent + within if deadline is None else deadline
            try:
                return read(self.heard(reply))
            except Unavailable as error:
                failures += 1
                after = backoff(failures, named=error.retry_after)
                if reply.received + after > deadline:
                    raise
                ask = replace(ask, after=after)


class Watching:
    """A talk without end: each `next` returns the next document that differs from the one before.

    It asks the server to hold the request until something changes. A server that does not know this answers
    at once, and is then asked once a second.
    """

    def __init__(
        self, conversation: Conversation, *, wait: int = WAIT_SECONDS, trouble: Trouble | None = None
    ) -> None:
        self._conversation = conversation
        self._wait = wait
        self._trouble = trouble
        self._document: Document | None = None
        self._etag: str | None = None
        self._holds = (
            True  # until the server shows that it does not; a new document may come from another server
        )
        self._failures = 0
        self._begun: float | None = None  # when the last request was sent

    def next(self, *, now: float) -> Talk[Document]:
        """Ask until the document differs."""
        after = self._rest(now)
        while True:
            ask = self._ask(now)
            reply = yield replace(ask, after=after)
            now, self._begun = reply.received, reply.sent
            try:
                answer = self._conversation.heard(reply)
                read = read_poll(answer, version=self._conversation.version)
            except Unavailable as error:
                after = max(self._failed(error), self._rest(now))
                continue
            self._recovered(answer)
            after = self._rest(now)
            if isinstance(read, News):
                self._etag, self._holds = read.etag, True
                if read.document != self._document:
                    self._document = read.document
                    return read.document
            elif "Prefer" in ask.headers:
                self._holds = answer.waited

    def _ask(self, now: float) -> Ask:
        # After a failure the endpoint should say at once that it is back.
        holding = self._wait > 0 and self._holds and self._etag is not None and not self._failures
        return self._conversation.poll(now=now, etag=self._etag, wait=self._wait if holding else None)

    def _rest(self, now: float) -> float:
        """Say how long to wait so that requests begin a second apart, however fast they are answered."""
        return 0.0 if self._begun is None else max(0.0, self._begun + POLL_SECONDS - now)

    def _failed(self, error: Unavailable) -> float:
        self._failures += 1
        if self._failures == 1 and self._trouble is not None:
            self._trouble(error)
        return backoff(self._failures, named=error.retry_after)

    def _recovered(self, answer: Answer) -> None:
        self._conversation.answered(answer)
        if self._failures and self._trouble is not None:
            self._trouble(None)
        self._failures = 0


def _read_instance(answer: Answer) -> Instance:
    if answer.status == HTTPStatus.NOT_FOUND:
        raise Unavailable(
            "404: the endpoint tells this machine nothing about itself, or not yet. Give its name."
        )
    check(answer)
    return parse_instance(answer.body)
