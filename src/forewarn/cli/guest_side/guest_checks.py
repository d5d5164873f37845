"""Diagnose, in a machine, why it sees no events, and wait until none is listed."""

import re
import threading
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from forewarn.cli import terminal
from forewarn.core.time_formats import format_span_briefly
from forewarn.sdk.blocking_client import GuestClient
from forewarn.sdk.connected_processes import ConnectedProcesses, connected_processes
from forewarn.sdk.discovery import Finding, surroundings
from forewarn.sdk.documents import Document
from forewarn.sdk.guest_errors import EndpointRefused, EndpointUnavailable, GuestError, NoEndpoint
from forewarn.sdk.instances import Instance

if TYPE_CHECKING:
    from forewarn.sdk.documents import Document

HTTP_PORT = 80
# The typed command, and the process that it becomes.
AGENT = re.compile(r"\bforewarn(\.agent| agent)\b")
DRY_RUN = re.compile(r'--dry-run|"dry_run": true')
# Smaller differences come from the whole seconds of the Date header.
SKEW = timedelta(seconds=2)
NO_ENDPOINT = "no metadata endpoint was found in this machine"
NEXT = (
    "Set --endpoint http://HOST:PORT or FOREWARN_ENDPOINT. If you run the server, make it reachable at "
    "169.254.169.254 from this machine, or announce it with DHCP option 245."
)
FINDINGS = terminal.ItemTable[Finding](
    columns={"LOOKED AT": attrgetter("where"), "FOUND": attrgetter("found")}, wraps=("FOUND",)
)

# At boot the network may come up after this command starts.
RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """The findings; None where nothing was checked."""

    findings: tuple[Finding, ...] = ()
    url: str | None = None
    trouble: str | None = None  # why there is no document
    document: Document | None = None
    instance: Instance | None = None
    instance_error: str | None = None  # why the name of this machine is unknown
    skew: timedelta | None = None
    connected_processes: ConnectedProcesses | None = None

    @property
    def mine(self) -> int | None:
        """The number of events that name this machine; None if unknown."""
        if self.document is None or self.instance is None:
            return None
        return len(self.document.naming(self.instance.name))

    @property
    def agents(self) -> tuple[int, ...]:
        """The processes of agents that approve events."""
        return self._agents(dry_run=False)

    @property
    def dry_runs(self) -> tuple[int, ...]:
        """The processes of agents in a dry run."""
        return self._agents(dry_run=True)

    def _agents(self, *, dry_run: bool) -> tuple[int, ...]:
        known = self.connected_processes.known if self.connected_processes is not None else ()
        agents = (each for each in known if AGENT.search(each.command))
        return tuple(each.pid for each in agents if bool(DRY_RUN.search(each.command)) is dry_run)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        others = self.connected_processes
        return {
            "looked": [{"place": each.where, "found": each.found} for each in self.findings],
            "endpoint": self.url,
            "trouble": self.trouble,
            "machine": None if self.instance is None else self.instance.name,
            "vm_id": None if self.instance is None else self.instance.vm_id,
            "clock_ahead_seconds": None if self.skew is None else round(self.skew.total_seconds(), 1),
            "events": None if self.document is None else len(self.document.events),
            "events_of_this_machine": self.mine,
            "other_pollers": None
            if others is None
            else [{"pid": each.pid, "command": each.command} for each in others.known],
            "agents": list(self.agents),
            "dry_runs": list(self.dry_runs),
        }


def examine(endpoint: str | None) -> DoctorReport:
    """Check everything that can be checked from here."""
    report = DoctorReport()
    try:
        report = _find_endpoint(endpoint)
        if report.url is None:
            return report
        with GuestClient(report.url, persistence=0) as client:
            return _query(client, report)
    except GuestError as error:
        return replace(report, trouble=str(error))


def _find_endpoint(endpoint: str | None) -> DoctorReport:
    if endpoint is not None:
        with GuestClient(endpoint) as client:
            return DoctorReport(
                findings=(Finding(where="--endpoint", found=endpoint, url=client.url),), url=client.url
            )
    with GuestClient(surroundings().default_url, persistence=0) as scout:
        discovery = scout.look()
    try:
        return DoctorReport(findings=discovery.findings, url=discovery.url)
    except NoEndpoint:
        return DoctorReport(findings=discovery.findings, trouble=f"{NO_ENDPOINT}\n{NEXT}")


def _query(client: GuestClient, report: DoctorReport) -> DoctorReport:
    parts = urlsplit(client.url)
    others = connected_processes(parts.hostname or "", parts.port or HTTP_PORT)
    report = replace(report, connected_processes=others)
    try:
        report = replace(report, document=client.events(), skew=client.clock_skew())
    except GuestError as error:
        return replace(report, trouble=str(error))
    try:
        return replace(report, instance=client.instance())
    except GuestError as error:
        return replace(report, instance_error=str(error))


def show(report: DoctorReport) -> None:
    """Print the findings for a person."""
    FINDINGS.print(report.findings)
    terminal.echo()
    terminal.details(
        [
            ("endpoint", report.url or "none"),
            ("this machine", _who(report)),
            ("clock", _clock(report.skew)),
            ("events", _events(report)),
            ("other pollers", _others(report.connected_processes) if report.url else "unknown"),
            ("approvals", _approvers(report)),
        ]
    )


def _who(report: DoctorReport) -> str:
    if report.instance is None:
        return f"unknown: {report.instance_error}" if report.instance_error else "unknown"
    known = report.instance
    return f"{known.name} ({known.vm_id or 'no vmId'})"


def _clock(skew: timedelta | None) -> str:
    if skew is None:
        return "unknown"
    if abs(skew) < SKEW:
        return "agrees with the server's"
    direction = "ahead of" if skew > timedelta() else "behind"
    return f"{format_span_briefly(skew.total_seconds())} {direction} the server's, which countdowns use"


def _events(report: DoctorReport) -> str:
    if report.document is None:
        return "unknown"
    own = "" if report.mine is None else f", {report.mine} of them for this machine"
    unreadable = len(report.document.unreadable)
    more = f"; {unreadable} more unreadable" if unreadable else ""
    return f"{len(report.document.events)}{own}{more}"


def _others(others: ConnectedProcesses | None) -> str:
    if others is None:
        return "unknown on this system"
    named = [f"{each.command} (pid {each.pid})" for each in others.known]
    if others.unknown:
        named.append(f"{others.unknown} of other users; run this as root to see them")
    return "; ".join(named) or "none now"


def _approvers(report: DoctorReport) -> str:
    if report.agents:
        return f"by the agent (pid {', '.join(map(str, report.agents))})"
    if report.dry_runs:
        return f"none: the agent is in a dry run (pid {', '.join(map(str, report.dry_runs))})"
    return "none: no agent polls the endpoint; approve with `forewarn guest approve`"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOutcome:
    """Whether the application may start, and why."""

    clear: bool
    why: str

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"clear": self.clear, "reason": self.why}

    def show(self) -> None:
        """Print the outcome; a problem goes to stderr."""
        if self.clear:
            terminal.echo(self.why)
        else:
            terminal.print_error(f"{self.why}\nContinuing anyway.")


class _Watch(threading.Thread):
    """A daemon thread that watches for events of this machine."""

    def __init__(self, endpoint: str | None, machine: str | None) -> None:
        super().__init__(daemon=True)
        self._endpoint = endpoint
        self._machine = machine
        self.why = "the endpoint has not answered yet"
        self.outcome: WaitOutcome | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        """Watch until no event names this machine, or until an error that does not pass."""
        while not self.ended.is_set():
            try:
                self._watch()
            except (NoEndpoint, EndpointUnavailable) as error:
                self.why = str(error)
                self.ended.wait(RETRY_SECONDS)
            except GuestError as error:
                self._end(clear=False, why=str(error))

    def _watch(self) -> None:
        with self._client() as client:
            machine = self._machine
            asked = machine is not None
            # The name is read once the endpoint answers; the watch notes an endpoint that does not.
            for document in client.watch(trouble=self._note):
                if not asked:
                    machine, asked = self._own_name(client), True
                waiting = self._mine(document, machine)
                if not waiting:
                    self._end(clear=True, why="No event of this machine is listed.")
                    return
                self.why = f"still listed: {', '.join(waiting)}"

    def _client(self) -> GuestClient:
        """Return a client; the caller notes a missing endpoint and retries."""
        if self._endpoint is not None:
            return GuestClient(self._endpoint)
        with GuestClient.discover(persistence=0) as found:
            return GuestClient(found.url)

    def _own_name(self, client: GuestClient) -> str | None:
        """Return the name of this machine; None makes every event count as its own."""
        try:
            return client.instance().name
        except (EndpointUnavailable, EndpointRefused):
            return None

    def _mine(self, document: "Document", machine: str | None) -> list[str]:
        events = document.events if machine is None else document.naming(machine)
        unreadable = [f"an unreadable event ({each.why})" for each in document.unreadable]
        return [*(f"{event.type} ({event.status}, {event.id})" for event in events), *unreadable]

    def _note(self, trouble: EndpointUnavailable | None) -> None:
        if trouble is not None:
            self.why = str(trouble)

    def _end(self, *, clear: bool, why: str) -> None:
        self.outcome = WaitOutcome(clear=clear, why=why)
        self.ended.set()


def wait_until_clear(endpoint: str | None, *, machine: str | None, limit: float) -> WaitOutcome:
    """Wait until no event names this machine, for at most `limit` seconds."""
    watch = _Watch(endpoint, machine)
    watch.start()
    watch.ended.wait(limit)
    if watch.outcome is not None:
        return watch.outcome
    watch.ended.set()
    return WaitOutcome(clear=False, why=f"not clear within {limit:g} s: {watch.why}")
