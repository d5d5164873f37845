"""The records of a server as they are written, from its stream or, if that is refused, by polling.

A thread reads the stream. The consumer takes records from a queue, and chooses how long it waits.
"""

import json
import queue
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from forewarn.cli import terminal
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import (
    CONFLICT,
    FORBIDDEN,
    PAGE,
    TOO_MANY,
    Reply,
    RequestRefused,
    ServerUnreachable,
    reply_of,
)
from forewarn.clock import monotonic
from forewarn.wire.answers.record_answers import RecordAnswer, RecordsAnswer

if TYPE_CHECKING:
    import httpx

# An idle stream sends a comment every 15 seconds. The connection is lost if two are missing.
STREAM_TIMEOUT = 35.0
# Seconds between two connection attempts, and between two polls.
PAUSE = 1.0
# Records within this gap are one update, up to the limit.
BATCH_GAP, BATCH_LIMIT = 0.05, 0.5

SERVER_ERROR = 500

Record = Reply[RecordAnswer]


class LinkState(StrEnum):
    """The state of the connection to a server."""

    CONNECTING = "connecting"
    LIVE = "live"
    POLLING = "polling"
    LOST = "reconnecting"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamUpdate:
    """The records since the last update."""

    records: tuple[Record, ...] = ()
    opened: bool = False  # a new connection: earlier data may be stale


class ChangeStream:
    """A server's records, read on a thread until the block ends; it reconnects after a restart."""

    def __init__(self, client: OperatorClient, *, project: str | None = None) -> None:
        self.link = LinkState.CONNECTING
        self.trouble = ""
        self._client = client
        self._project = project
        self._last: int | None = None  # the number of the latest record
        self._queue: queue.SimpleQueue[Record | RequestRefused | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._answer: httpx.Response | None = None
        self._thread = threading.Thread(target=self._run, name="forewarn-changes", daemon=True)

    def __enter__(self) -> "ChangeStream":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._disconnect()
        self._thread.join(PAUSE)

    def wait(self, seconds: float) -> StreamUpdate:
        """Wait up to `seconds` for records; raise RequestRefused if the server refuses to send any."""
        items: list[Record | RequestRefused | None] = []
        with suppress(queue.Empty):
            items.append(self._queue.get(timeout=seconds))
            until = monotonic() + BATCH_LIMIT
            while monotonic() < until:
                items.append(self._queue.get(timeout=BATCH_GAP))
        for each in items:
            if isinstance(each, RequestRefused):
                raise each
        records = tuple(each for each in items if isinstance(each, Reply))
        return StreamUpdate(records=records, opened=None in items)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except ServerUnreachable as error:
                self._lost(str(error))
            except RequestRefused as refusal:
                self._refused(refusal)
            self._stopping.wait(PAUSE)

    def _refused(self, refusal: RequestRefused) -> None:
        if is_temporary(refusal) or refusal.status == TOO_MANY:
            self._lost(str(refusal))
        elif refusal.status == CONFLICT and self._last is not None:
            self._last = None  # the store was restored: start again
        else:
            self._queue.put(refusal)
            self._stopping.set()

    def _lost(self, why: str) -> None:
        self.link, self.trouble = LinkState.LOST, why.splitlines()[0]

    def _opened(self, link: LinkState) -> None:
        self.link, self.trouble = link, ""
        self._queue.put(None)

    def _follow(self) -> None:
        try:
            with self._client.lines(
                "/v1/stream", patience=STREAM_TIMEOUT, project=self._project, since=self._last
            ) as answer:
                self._answer = answer
                self._read(answer.iter_lines())
        except RequestRefused as refusal:
            if refusal.status != FORBIDDEN:
                raise
            with self._client.keeping_connection() as client:
                self._poll(client)
        else:
            self._lost("the server closed the stream")

    def _read(self, lines: Iterable[str]) -> None:
        for place, block in enumerate(parse_blocks(lines)):
            if self._stopping.is_set():
                return
            if "id" in block:
                self._last = int(block["id"])
            if place == 0:
                self._opened(LinkState.LIVE)
            record = json.loads(block.get("data", "{}"))
            if "number" in record:
                self._put(record)

    def _poll(self, client: OperatorClient) -> None:
        """Poll the history once a second."""
        if self._last is None:
            newest = client.get("/v1/history", RecordsAnswer, limit=1, project=self._project).value.records
            self._last = newest[0].number if newest else 0
        self._opened(LinkState.POLLING)
        while not self._stopping.wait(PAUSE):
            wanted = {"above": self._last, "limit": PAGE, "project": self._project}
            for record in client.get("/v1/history", RecordsAnswer, **wanted).json["records"]:
                self._last = record["number"]
                self._put(record)

    def _put(self, record: dict[str, Any]) -> None:
        self._queue.put(reply_of(record, RecordAnswer, url=self._client.url))

    def _disconnect(self) -> None:
        """Close the connection, so that the thread stops waiting for the next line."""
        if self._answer is not None:
            with suppress(OSError, KeyError):
                wire = self._answer.extensions["network_stream"].get_extra_info("socket")
                wire.shutdown(socket.SHUT_RDWR)


class Refresher:
    """Keep data of a server current: read changed parts, and everything after a lost connection."""

    def __init__(
        self,
        changes: ChangeStream,
        *,
        load: Callable[[], None],
        take: Callable[[tuple[Record, ...]], None],
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        """Create it: `load` reads everything, `take` reads what records name, `on_idle` runs without any."""
        self._changes = changes
        self._load = load
        self._take = take
        self._on_idle = on_idle
        self._stale = self._reported = False
        self._trouble = ""

    @property
    def link(self) -> LinkState:
        """The state of the connection."""
        return LinkState.LOST if self._stale else self._changes.link

    @property
    def trouble(self) -> str:
        """Why the connection is lost, if it is."""
        return self._trouble or self._changes.trouble

    def report_outages(self) -> None:
        """Print to stderr, once each, that the connection is lost and that it is back."""
        if (self.link is LinkState.LOST) is not self._reported:
            self._reported = not self._reported
            terminal.print_error(f"reconnecting: {self.trouble}" if self._reported else "connected again")

    def wait(self, seconds: float) -> tuple[Record, ...]:
        """Wait up to `seconds` for records, and read what they name; tolerate an unreachable server."""
        news = self._changes.wait(seconds)
        try:
            self._refresh(news)
        except ServerUnreachable as error:
            self._stale, self._trouble = True, str(error).splitlines()[0]
        except RequestRefused as refusal:
            if not is_temporary(refusal):
                raise
            self._stale, self._trouble = True, str(refusal)
        else:
            self._trouble = ""
        return news.records

    def _refresh(self, news: StreamUpdate) -> None:
        if news.opened or (self._stale and self._changes.link is not LinkState.LOST):
            self._load()
            self._stale = False
        elif self._changes.link is LinkState.LOST:
            return  # read nothing before the connection is back
        elif news.records:
            self._take(news.records)
        else:
            self._on_idle()


def is_temporary(refusal: RequestRefused) -> bool:
    """Return whether a retry may succeed."""
    return refusal.status is not None and refusal.status >= SERVER_ERROR


def parse_blocks(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Parse server-sent events into blocks of fields; drop a last block without its empty line."""
    block: dict[str, str] = {}
    for line in lines:
        if not line:
            yield block
            block = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            block[name] = value.removeprefix(" ")
