"""Probes of a workload: whether it holds, looked at again and again while a scenario is played.

Their times are real: what a workload needs takes as long as it takes, however fast the service's clock runs.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import httpx

from forewarn.clock import monotonic
from forewarn.core.time_formats import format_span_briefly
from forewarn.platform import system
from forewarn.programs.keeper import last_line
from forewarn.rehearsal.report import ProbeReport
from forewarn.rehearsal.scenario import Probe
from forewarn.rehearsal.timeline import Timeline

FIRST_BAD_STATUS = 400


class ProbeWatch:
    """Looks at one probe, and knows how it went."""

    def __init__(self, probe: Probe, timeline: Timeline, elapsed: Callable[[], timedelta]) -> None:
        self.probe = probe
        self._timeline = timeline
        self._elapsed = elapsed
        self.holds: bool | None = None  # None: it was not looked at yet
        self.why = ""
        self._looking = asyncio.Lock()
        self._looks = 0
        self._outages: list[float] = []  # real seconds of those that are over
        self._since: float | None = None
        self._first_seconds: float | None = None  # from the start, when it first failed

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self.probe.every.total_seconds())

    async def look(self) -> None:
        """Look once; beside another look, after that."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        began = monotonic()
        why = await look_at(self.probe)
        self._looks += 1
        if why and self.holds is not False:
            self._since = began
            if self._first_seconds is None:
                self._first_seconds = self._elapsed().total_seconds()
            self._timeline.note(self._who, f"does not hold: {why}")
        elif not why and self.holds is False and self._since is not None:
            self._outages.append(monotonic() - self._since)
            self._since = None
            self._timeline.note(self._who, f"holds again, after {format_span_briefly(self._outages[-1])}")
        elif not why and self.holds is None:
            self._timeline.note(self._who, "holds")
        self.holds = not why
        self.why = why or self.why

    def begin(self) -> None:
        """Count from now on: what was before the scenario began is no outage of it."""
        self._looks, self._outages = 0, []
        self._first_seconds = None if self._since is None else 0.0
        self._since = None if self._since is None else monotonic()

    def report(self) -> ProbeReport:
        """Return how it went so far."""
        present = [] if self._since is None else [monotonic() - self._since]
        back = self.probe.back_within
        return ProbeReport(
            name=self.probe.name,
            looks=self._looks,
            outages=len(self._outages) + len(present),
            longest_outage_seconds=round(max([*self._outages, *present], default=0.0), 3),
            first_outage_seconds=self._first_seconds,
            back_within_seconds=None if back is None else back.total_seconds(),
            holds=bool(self.holds),
            why=self.why,
        )

    @property
    def _who(self) -> str:
        return f"probe {self.probe.name}"


async def look_at(probe: Probe) -> str:
    """Look whether a probe holds; returns why it does not."""
    if probe.url is not None:
        return await _asked(probe.url, probe.timeout.total_seconds())
    return await _ran(probe.command, probe.timeout.total_seconds())


async def _asked(url: str, seconds: float) -> str:
    try:
        # No proxy: what is rehearsed is the workload, not the way to it.
        async with httpx.AsyncClient(timeout=seconds, trust_env=False) as client:
            answer = await asyncio.wait_for(client.get(url), seconds)
    except (TimeoutError, httpx.TimeoutException):
        return f"no answer within {seconds:g} s"
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return str(error) or type(error).__name__
    return "" if answer.status_code < FIRST_BAD_STATUS else f"status {answer.status_code}"


async def _ran(command: tuple[str, ...], seconds: float) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            **system.own_group(),
        )
    except OSError as error:
        return f"{command[0]!r} cannot be run: {error.strerror}"
    try:
        _, said = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        return f"no result within {seconds:g} s"
    finally:
        if process.returncode is None:
            system.end_tree(process.pid, force=True)
            await process.wait()
    if process.returncode == 0:
        return ""
    last = last_line(said).decode(errors="replace").strip()
    return f"exit code {process.returncode}: {last}" if last else f"exit code {process.returncode}"
