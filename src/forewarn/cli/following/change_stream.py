"""What happens on a server, as it happens: from the stream or, where that is refused, asked for each second.

A thread reads; whoever follows takes what has come, and is never kept waiting longer than they want.
"""

import json
import queue
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from forewarn.cli import terminal
from forewarn.client.calls import FORBIDDEN, PAGE, OperatorClient, RequestRefused, ServerUnreachable
from forewarn.clock import monotonic

if TYPE_CHECKING:
    import httpx

# A comment comes every 15 seconds when nothing happens; two that are missing are no accident.
PATIENCE = 35.0
# Between two tries, and between two questions where there is no stream.
PAUSE = 1.0
# What comes so close together is one change to whoever looks at it; but not for ever.
TOGETHER, LONGEST_TOGETHER = 0.05, 0.5

CONFLICT, SERVER_ERROR = 409, 500

Record = dict[str, Any]


class Link(StrEnum):
    """How a server is followed at present."""

    CONNECTING = "connecting"
    LIVE = "live"
    POLLING = "polling"
    LOST = "reconnecting"


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What has come since it was last asked for."""

    records: tuple[Record, ...] = ()
    opened: bool = False  # the link is new: what was known before may be out of date


class Changes:
    """Follows a server until the block ends, over its restarts too."""

    def __init__(self, client: OperatorClient, *, project: str | None = None) -> None:
        self.link = Link.CONNECTING
        self.trouble = ""
        self._client = client
        self._project = project
        self._last: int | None = None  # the number of the last record that came
        self._queue: queue.SimpleQueue[Record | RequestRefused | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._answer: httpx.Response | None = None
        self._thread = threading.Thread(target=self._run, name="forewarn-changes", daemon=True)

    def __enter__(self) -> "Changes":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._hang_up()
        self._thread.join(PAUSE)

    def wait(self, seconds: float) -> News:
        """Wait for news, but not for long; RequestRefused if the server wants nothing to do with us."""
        came: list[Record | RequestRefused | None] = []
        with suppress(queue.Empty):
            came.append(self._queue.get(timeout=seconds))
            until = monotonic() + LONGEST_TOGETHER
            while monotonic() < until:
                came.append(self._queue.get(timeout=TOGETHER))
        for each in came:
            if isinstance(each, RequestRefused):
                raise each
        records = tuple(each for each in came if isinstance(each, dict))
        return News(records=records, opened=None in came)

    # On the thread

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
        if is_passing(refusal):
            self._lost(str(refusal))
        elif refusal.status == CONFLICT and self._last is not None:
            self._last = None  # the store is another one, as after a restore: begin anew
        else:
            self._queue.put(refusal)
            self._stopping.set()

    def _lost(self, why: str) -> None:
        self.link, self.trouble = Link.LOST, why.splitlines()[0]

    def _opened(self, link: Link) -> None:
        self.link, self.trouble = link, ""
        self._queue.put(None)

    def _follow(self) -> None:
        try:
            with self._client.lines(
                "/v1/stream", patience=PATIENCE, project=self._project, since=self._last
            ) as answer:
                self._answer = answer
                self._read(answer.iter_lines())
        except RequestRefused as refusal:
            if refusal.status != FORBIDDEN:
                raise
            with self._client.kept_open() as client:
                self._poll(client)
        else:
            self._lost("the server has closed the stream")

    def _read(self, lines: Iterable[str]) -> None:
        for place, block in enumerate(blocks(lines)):
            if self._stopping.is_set():
                return
            if "id" in block:
                self._last = int(block["id"])
            if place == 0:
                self._opened(Link.LIVE)
            record = json.loads(block.get("data", "{}"))
            if "number" in record:
                self._queue.put(record)

    def _poll(self, client: OperatorClient) -> None:
        """Ask each second what has happened since."""
        if self._last is None:
            newest = client.get("/v1/history", limit=1, project=self._project)["records"]
            self._last = newest[0]["number"] if newest else 0
        self._opened(Link.POLLING)
        while not self._stopping.wait(PAUSE):
            page = client.get("/v1/history", above=self._last, limit=PAGE, project=self._project)
            for record in page["records"]:
                self._last = record["number"]
                self._queue.put(record)

    def _hang_up(self) -> None:
        """Wake the thread, which may be waiting for the next line."""
        if self._answer is not None:
            with suppress(OSError, KeyError):
                wire = self._answer.extensions["network_stream"].get_extra_info("socket")
                wire.shutdown(socket.SHUT_RDWR)


class UpToDate:
    """Keeps something that was read from a server up to date, and reads all of it again after a trouble."""

    def __init__(
        self,
        changes: Changes,
        *,
        load: Callable[[], None],
        take: Callable[[tuple[Record, ...]], None],
        rest: Callable[[], None] = lambda: None,
    ) -> None:
        """Take what reads everything, what reads what records tell of, and what is done in silence."""
        self._changes = changes
        self._load = load
        self._take = take
        self._rest = rest
        self._stale = False
        self._trouble = ""

    @property
    def link(self) -> Link:
        """How the server is followed at present."""
        return Link.LOST if self._stale else self._changes.link

    @property
    def trouble(self) -> str:
        """Why the server is not followed, if that is so."""
        return self._trouble or self._changes.trouble

    def wait(self, seconds: float) -> tuple[Record, ...]:
        """Wait for a change, but not for long, and take it in; a server that is away is waited for."""
        news = self._changes.wait(seconds)
        try:
            self._refresh(news)
        except ServerUnreachable as error:
            self._stale, self._trouble = True, str(error).splitlines()[0]
        except RequestRefused as refusal:
            if not is_passing(refusal):
                raise
            self._stale, self._trouble = True, str(refusal)
        else:
            self._trouble = ""
        return news.records

    def _refresh(self, news: News) -> None:
        if news.opened or (self._stale and self._changes.link is not Link.LOST):
            self._load()
            self._stale = False
        elif self._changes.link is Link.LOST:
            return  # the link is opened again before anything is asked
        elif news.records:
            self._take(news.records)
        else:
            self._rest()


class Outages:
    """Says once that a server is not followed, and once that it is again, beside the output."""

    def __init__(self, current: UpToDate) -> None:
        self._current = current
        self._lost = False

    def tell(self) -> None:
        """Say what has changed since it was last asked."""
        if (self._current.link is Link.LOST) is not self._lost:
            self._lost = not self._lost
            terminal.complain(f"reconnecting: {self._current.trouble}" if self._lost else "connected again")


def is_passing(refusal: RequestRefused) -> bool:
    """Say whether a refusal is only the server's trouble at the moment."""
    return refusal.status is not None and refusal.status >= SERVER_ERROR


def blocks(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Cut server-sent events into blocks of fields; what is not ended by an empty line has not come whole."""
    block: dict[str, str] = {}
    for line in lines:
        if not line:
            yield block
            block = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            block[name] = value.removeprefix(" ")
