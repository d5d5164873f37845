"""The state of a running agent, and how others see it: pages for probes, a line for systemd."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

from forewarn.agent.care.current_endpoint import CurrentEndpoint
from forewarn.agent.care.watcher import EventWatcher
from forewarn.agent.journal.journal_file import DryRunJournal, Journal
from forewarn.agent.journal.tracked_events import TrackedEvent
from forewarn.agent.metrics import AgentMetrics
from forewarn.agent.reporting import status
from forewarn.agent.reporting.probe_server import ProbePage, as_json
from forewarn.agent.setup.agent_config import Config

METRICS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True, kw_only=True)
class AgentState:
    """The state of a running agent, which the daemon keeps up to date."""

    config: Config
    endpoint: CurrentEndpoint
    now: Callable[[], datetime]
    began: datetime
    dry: bool
    journal: Journal | DryRunJournal = field(default_factory=DryRunJournal)
    metrics: AgentMetrics = field(default_factory=AgentMetrics)
    watcher: EventWatcher | None = None
    awaited: str | None = None  # what stands in the way before it can watch

    def pages(self) -> Mapping[str, Callable[[], ProbePage]]:
        """Return the pages that are served, by path."""
        return {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/status": lambda: as_json(self._status()),
        }

    def in_words(self) -> str:
        """Return in a line what the agent does."""
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
        """Return the seconds until the first event may start; one that does not say when may at any time."""
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
        """Whether a document has come: before that nobody knows what this machine has to be ready for."""
        return self.watcher is not None and self.watcher.informed

    def _trouble(self) -> str | None:
        return self.awaited or (None if self.watcher is None else self.watcher.trouble)

    def _draining(self) -> list[TrackedEvent]:
        if self.dry:
            return []  # nothing is done to this machine: it can continue to work
        return status.draining(self.journal.tracked_events, self.config)
