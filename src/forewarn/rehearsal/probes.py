"""Probes of a workload: whether it is healthy, checked repeatedly while a scenario is played.

Their times are real: a workload does not run faster with the clock of the service.
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
    """Runs one probe, and keeps its results."""

    def __init__(self, probe: Probe, timeline: Timeline, elapsed: Callable[[], timedelta]) -> None:
        self.probe = probe
        self._timeline = timeline
        self._elapsed = elapsed
        self.holds: bool | None = None  # None: it has not run yet
        self.why = ""
        self._looking = asyncio.Lock()
        self._looks = 0
        self._outages: list[float] = []  # the lengths of past outages, in real seconds
        self._since: float | None = None
        self._first_seconds: float | None = None  # the first failure, from the start

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self.probe.every.total_seconds())

    async def look(self) -> None:
        """Probe once; concurrent calls take turns."""
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
        """Reset the results when the scenario begins: earlier outages do not count."""
        self._looks, self._outages = 0, []
        self._first_seconds = None if self._since is None else 0.0
        self._since = None if self._since is None else monotonic()

    def report(self) -> ProbeReport:
        """Return the results so far."""
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
    """Run a probe; return why it failed, or an empty text."""
    if probe.url is not None:
        return await _asked(probe.url, probe.timeout.total_seconds())
    return await _ran(probe.command, probe.timeout.total_seconds())


async def _asked(url: str, seconds: float) -> str:
    try:
        # No proxy: the probe tests the workload, not the network.
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
        _, errors = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        return f"no result within {seconds:g} s"
    finally:
        if process.returncode is None:
            system.end_tree(process.pid, force=True)
            await process.wait()
    if process.returncode == 0:
        return ""
    last = last_line(errors).decode(errors="replace").strip()
    return f"exit code {process.returncode}: {last}" if last else f"exit code {process.returncode}"
