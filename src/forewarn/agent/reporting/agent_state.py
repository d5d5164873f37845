"""What is so at present in a running agent, and how others see it: pages for probes, a line for systemd."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

from forewarn.agent.care.endpoints import Endpoints
from forewarn.agent.care.watcher import Agent
from forewarn.agent.journal.journal_file import Journal, Notebook
from forewarn.agent.journal.tracked_events import Case
from forewarn.agent.metrics import Meter
from forewarn.agent.reporting import status
from forewarn.agent.reporting.probe_server import Page, as_json
from forewarn.agent.setup.agent_config import Config

METRICS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True, kw_only=True)
class Present:
    """What is so at present; the program keeps it up to date, and others look at it."""

    config: Config
    endpoints: Endpoints
    now: Callable[[], datetime]
    began: datetime
    dry: bool
    memory: Journal | Notebook = field(default_factory=Notebook)
    meter: Meter = field(default_factory=Meter)
    agent: Agent | None = None
    awaited: str | None = None  # what stands in the way before it can watch

    def pages(self) -> Mapping[str, Callable[[], Page]]:
        """Return what is served, by path."""
        return {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/status": lambda: as_json(self._status()),
        }

    def in_words(self) -> str:
        """Say in a line what it does."""
        if trouble := self._trouble():
            return f"the endpoint gives no document: {trouble}"
        cases = self.memory.cases.values()
        return ", ".join(f"{case.event.type}: {status.doing(case)}" for case in cases) or "watching"

    def _healthz(self) -> Page:
        if trouble := self.memory.trouble:
            return as_json(
                {"status": f"the journal cannot be written: {trouble}"}, HTTPStatus.SERVICE_UNAVAILABLE
            )
        return as_json({"status": "ok"})

    def _readyz(self) -> Page:
        draining = self._draining()
        if not draining:
            return as_json({"status": "ready"})
        said = {"status": "draining", "events": [str(case.event.type) for case in draining]}
        return as_json(said, HTTPStatus.SERVICE_UNAVAILABLE)

    def _metrics(self) -> Page:
        present = {
            "open_events": len(self.memory.cases),
            "draining": bool(self._draining()),
            "endpoint_answers": self._trouble() is None,
            "journal_writable": self.memory.trouble is None,
        }
        return Page(HTTPStatus.OK, self.meter.text({k: float(v) for k, v in present.items()}), METRICS)

    def _status(self) -> dict[str, Any]:
        now = self.now()
        return {
            "machine": None if self.agent is None else self.agent.machine,
            "endpoint": self.endpoints.url,
            "trouble": self._trouble(),
            "draining": bool(self._draining()),
            "dry_run": self.dry,
            "pid": os.getpid(),
            "since": self.began.isoformat(),
            "for_seconds": round((now - self.began).total_seconds(), 1),
            "events": status.of_cases(self.memory.cases, now=now, seconds_left=self.endpoints.seconds_left),
        }

    def _trouble(self) -> str | None:
        return self.awaited or (None if self.agent is None else self.agent.trouble)

    def _draining(self) -> list[Case]:
        if self.dry:
            return []  # nothing is done to this machine: it can go on working
        return status.draining(self.memory.cases, self.config)
