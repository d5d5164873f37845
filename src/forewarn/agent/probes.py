"""The state of a running agent: HTTP pages for probes and metrics, and a status line for systemd."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from forewarn.agent import status
from forewarn.agent.care.current_endpoint import CurrentEndpoint
from forewarn.agent.care.watcher import EventWatcher
from forewarn.agent.journal.journal_file import DryRunJournal, Journal
from forewarn.agent.journal.tracked_events import TrackedEvent
from forewarn.agent.metrics import AgentMetrics
from forewarn.agent.setup.agent_config import Config
from forewarn.wire.authority import is_expected

REQUEST_SECONDS = 5.0
LONGEST_REQUEST = 8 * 1024
# Many concurrent connections are a mistake or an attack: a new connection replaces the oldest. The limit is
# above the 100 connections that the loop accepts at a time, so that a request is read before it is replaced.
MOST_CONNECTIONS = 128
# Pages that a web site must not read by DNS rebinding. The other pages accept any Host header, because
# health checks send many, and reveal only whether the agent works.
PRIVATE = frozenset({"/status"})
METRICS = "text/plain; version=0.0.4; charset=utf-8"


class ProbePage(NamedTuple):
    """The answer to a probe."""

    status: HTTPStatus
    content: bytes
    kind: str = "application/json"


def as_json(value: object, status: HTTPStatus = HTTPStatus.OK) -> ProbePage:
    """Return a page with a value as JSON."""
    return ProbePage(status, json.dumps(value, ensure_ascii=False).encode() + b"\n")


class ProbeServer:
    """A small HTTP server: GET only, one request per connection."""

    def __init__(
        self, pages: Mapping[str, Callable[[], ProbePage]], *, request_seconds: float = REQUEST_SECONDS
    ) -> None:
        """Take the pages by path, and the timeout of a connection."""
        self._pages = pages
        self._request_seconds = request_seconds
        self._names: frozenset[str] = frozenset()
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, None] = {}  # the oldest first

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; return the address."""
        self._names = frozenset({host.lower()})
        self._server = await asyncio.start_server(self._serve, host, port, limit=LONGEST_REQUEST)
        found: tuple[Any, ...] = self._server.sockets[0].getsockname()
        return found[0], found[1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MOST_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(self._request_seconds):
                writer.write(_written(self._page(await reader.readuntil(b"\r\n\r\n"))))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # invalid requests get no answer
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()  # a client that does not read would keep the connection open

    def _page(self, request: bytes) -> ProbePage:
        method, _, rest = request.decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if path not in self._pages:
            known = ", ".join(self._pages)
            return as_json({"error": f"there is no {path}; there is {known}"}, HTTPStatus.NOT_FOUND)
        if method not in ("GET", "HEAD"):
            return as_json({"error": "expected GET"}, HTTPStatus.METHOD_NOT_ALLOWED)
        if path in PRIVATE and not all(is_expected(host, self._names) for host in _hosts(request)):
            return as_json({"error": "the Host header is no address of this agent"}, HTTPStatus.FORBIDDEN)
        page = self._pages[path]()
        return page if method == "GET" else page._replace(content=b"")


def _hosts(request: bytes) -> list[str]:
    fields = (line.partition(":") for line in request.decode("latin-1").split("\r\n")[1:])
    return [value for name, _, value in fields if name.strip().lower() == "host"]


def _written(page: ProbePage) -> bytes:
    head = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
        f"Content-Type: {page.kind}\r\n"
        f"Content-Length: {len(page.content)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + page.content


@dataclass(slots=True, kw_only=True)
class AgentState:
    """The state of a running agent; the daemon updates it."""

    config: Config
    endpoint: CurrentEndpoint
    now: Callable[[], datetime]
    began: datetime
    dry: bool
    journal: Journal | DryRunJournal = field(default_factory=DryRunJournal)
    metrics: AgentMetrics = field(default_factory=AgentMetrics)
    watcher: EventWatcher | None = None
    awaited: str | None = None  # why the agent cannot watch yet

    def pages(self) -> Mapping[str, Callable[[], ProbePage]]:
        """Return the pages by path."""
        return {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/status": lambda: as_json(self._status()),
        }

    def in_words(self) -> str:
        """Return the agent's status as one line."""
        if trouble := self._trouble():
            return f"the endpoint gives no document: {trouble}"
        tracked_events = self.journal.tracked_events.values()
        doing = ", ".join(f"{tracked.event.type}: {status.doing(tracked)}" for tracked in tracked_events)
        return doing or ("watching" if self._informed else "waiting for the first document")

    def _healthz(self) -> ProbePage:
        if trouble := self.journal.trouble:
            return as_json(
                {"status": f"the journal cannot be written: {trouble}"}, HTTPStatus.SERVICE_UNAVAILABLE
            )
        return as_json({"status": "ok"})

    def _readyz(self) -> ProbePage:
        draining = self._draining()
        if not draining:
            return as_json({"status": "ready"})
        page = {"status": "draining", "events": [str(tracked.event.type) for tracked in draining]}
        return as_json(page, HTTPStatus.SERVICE_UNAVAILABLE)

    def _metrics(self) -> ProbePage:
        gauges = {
            "open_events": len(self.journal.tracked_events),
            "held": sum(status.is_held(each, self.config) for each in self.journal.tracked_events.values()),
            "draining": bool(self._draining()),
            "endpoint_answers": self._trouble() is None,
            "journal_writable": self.journal.trouble is None,
            "seconds_left": self._seconds_left(),
            "last_poll_age_seconds": self.endpoint.silent_for,
        }
        values = {name: None if value is None else float(value) for name, value in gauges.items()}
        return ProbePage(HTTPStatus.OK, self.metrics.text(values), METRICS)

    def _seconds_left(self) -> float | None:
        """Return the seconds until the next event may start; an event without NotBefore may start now."""
        listed = (tracked.event for tracked in self.journal.tracked_events.values() if tracked.left is None)
        return min((self.endpoint.seconds_left(event) or 0.0 for event in listed), default=None)

    def _status(self) -> dict[str, Any]:
        now = self.now()
        return {
            "machine": None if self.watcher is None else self.watcher.machine,
            "endpoint": self.endpoint.url,
            "trouble": self._trouble(),
            "informed": self._informed,
            "draining": bool(self._draining()),
            "dry_run": self.dry,
            "pid": os.getpid(),
            "since": self.began.isoformat(),
            "for_seconds": round((now - self.began).total_seconds(), 1),
            "events": status.of_events(
                self.journal.tracked_events,
                now=now,
                seconds_left=self.endpoint.seconds_left,
                not_approved=lambda id_: None if self.watcher is None else self.watcher.not_approved(id_),
            ),
        }

    @property
    def _informed(self) -> bool:
        """Whether the agent has received a document."""
        return self.watcher is not None and self.watcher.informed

    def _trouble(self) -> str | None:
        return self.awaited or (None if self.watcher is None else self.watcher.trouble)

    def _draining(self) -> list[TrackedEvent]:
        if self.dry:
            return []  # a dry run changes nothing, so the machine can work
        return status.draining(self.journal.tracked_events, self.config)
