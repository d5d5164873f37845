"""Finding out, in a machine, why it sees no events."""

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
from forewarn.sdk.connected_processes import ConnectedProcess, ConnectedProcesses, connected_processes
from forewarn.sdk.discovery import Finding, surroundings
from forewarn.sdk.documents import Document
from forewarn.sdk.guest_errors import GuestError, NoEndpoint, Refused, Unavailable
from forewarn.sdk.instances import Instance

if TYPE_CHECKING:
    from forewarn.sdk.documents import Document

HTTP_PORT = 80
# As people type it, and as what that becomes.
AGENT = re.compile(r"\bforewarn(\.agent| agent)\b")
DRY_RUN = re.compile(r'--dry-run|"dry_run": true')
# Less is a matter of whole seconds in the answer's Date.
SKEW = timedelta(seconds=2)
NOWHERE = "no metadata endpoint was found in this machine"
NEXT = (
    "Say where it is, with --endpoint http://HOST:PORT or FOREWARN_ENDPOINT. If you run the server: it must "
    "be reached at 169.254.169.254 from this machine, or DHCP option 245 must name it."
)
FINDINGS = terminal.ItemTable[Finding](
    columns={"LOOKED AT": attrgetter("where"), "FOUND": attrgetter("found")}, wraps=("FOUND",)
)

# At boot the network may come later than this command.
LOOK_AGAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """What was found; nothing that was not looked at."""

    findings: tuple[Finding, ...] = ()
    url: str | None = None
    trouble: str | None = None  # why no events can be had
    document: Document | None = None
    instance: Instance | None = None
    stranger: str | None = None  # why it is not known who this machine is
    skew: timedelta | None = None
    connected_processes: ConnectedProcesses | None = None

    @property
    def mine(self) -> int | None:
        """How many events name this machine; None if that cannot be known."""
        if self.document is None or self.instance is None:
            return None
        return len(self.document.naming(self.instance.name))

    @property
    def agents(self) -> tuple[int, ...]:
        """The processes that would approve by themselves."""
        return tuple(each.pid for each in self._agents if not DRY_RUN.search(each.command))

    @property
    def dry_runs(self) -> tuple[int, ...]:
        """The processes that would only say so."""
        return tuple(each.pid for each in self._agents if DRY_RUN.search(each.command))

    @property
    def _agents(self) -> list[ConnectedProcess]:
        known = self.connected_processes.known if self.connected_processes is not None else ()
        return [each for each in known if AGENT.search(each.command)]

    def as_json(self) -> dict[str, Any]:
        """Write it for a program."""
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
    """Look at everything that can be looked at from here."""
    report = DoctorReport()
    try:
        report = _located(endpoint)
        if report.url is None:
            return report
        with GuestClient(report.url, persistence=0) as client:
            return _asked(client, report)
    except GuestError as error:
        return replace(report, trouble=str(error))


def _located(endpoint: str | None) -> DoctorReport:
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
        return DoctorReport(findings=discovery.findings, trouble=f"{NOWHERE}\n{NEXT}")


def _asked(client: GuestClient, report: DoctorReport) -> DoctorReport:
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
        return replace(report, stranger=str(error))


def show(report: DoctorReport) -> None:
    """Print what was found, for a person."""
    FINDINGS.print(report.findings)
    terminal.echo()
    terminal.details(
        [
            ("endpoint", report.url or "none"),
            ("this machine", _who(report)),
            ("its clock", _clock(report.skew)),
            ("events", _events(report)),
            ("who else polls", _others(report.connected_processes) if report.url else "unknown"),
            ("what would approve", _approvers(report)),
        ]
    )


def _who(report: DoctorReport) -> str:
    if report.instance is None:
        return f"unknown: {report.stranger}" if report.stranger else "unknown"
    known = report.instance
    return f"{known.name} ({known.vm_id or 'no vmId'})"


def _clock(skew: timedelta | None) -> str:
    if skew is None:
        return "unknown"
    if abs(skew) < SKEW:
        return "agrees with the server's"
    way = "ahead of" if skew > timedelta() else "behind"
    return f"{format_span_briefly(skew.total_seconds())} {way} the server's; countdowns go by the server's"


def _events(report: DoctorReport) -> str:
    if report.document is None:
        return "unknown"
    own = "" if report.mine is None else f", {report.mine} of them for this machine"
    odd = len(report.document.unreadable)
    return f"{len(report.document.events)}{own}" + (f"; {odd} more cannot be read" if odd else "")


def _others(others: ConnectedProcesses | None) -> str:
    if others is None:
        return "this system does not tell"
    named = [f"{each.command} (pid {each.pid})" for each in others.known]
    if others.unknown:
        named.append(f"{others.unknown} of other users: run this as root to see them")
    return "; ".join(named) or "nobody has a connection to it now"


def _approvers(report: DoctorReport) -> str:
    if report.agents:
        return f"the agent, by its own rules (pid {', '.join(map(str, report.agents))})"
    if report.dry_runs:
        return f"nobody here: the agent is in a dry run (pid {', '.join(map(str, report.dry_runs))})"
    return "nobody here: no agent talks to the endpoint; forewarn guest approve does it by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOutcome:
    """Why the application may start."""

    clear: bool
    why: str

    def as_json(self) -> dict[str, Any]:
        """Write it for a program."""
        return {"clear": self.clear, "reason": self.why}

    def show(self) -> None:
        """Show it; what is not as it should be, beside the output."""
        if self.clear:
            terminal.echo(self.why)
        else:
            terminal.print_error(f"{self.why}\nGoing on all the same.")


class _Watch(threading.Thread):
    """Looks for an event of this machine, in a thread that ends with the program."""

    def __init__(self, endpoint: str | None, machine: str | None) -> None:
        super().__init__(daemon=True)
        self._endpoint = endpoint
        self._machine = machine
        self.why = "the endpoint has not answered yet"
        self.outcome: WaitOutcome | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        """Watch until the list is clear, or until that can never be known."""
        while not self.ended.is_set():
            try:
                self._watch()
            except (NoEndpoint, Unavailable) as error:
                self.why = str(error)
                self.ended.wait(LOOK_AGAIN_SECONDS)
            except GuestError as error:
                self._end(clear=False, why=str(error))

    def _watch(self) -> None:
        with self._client() as client:
            machine = self._machine
            asked = machine is not None
            # Who this machine is, is asked once something answers: what does not is noted by the watch.
            for document in client.watch(trouble=self._note):
                if not asked:
                    machine, asked = self._own_name(client), True
                waiting = self._mine(document, machine)
                if not waiting:
                    self._end(clear=True, why="No event of this machine is listed.")
                    return
                self.why = f"still listed: {', '.join(waiting)}"

    def _client(self) -> GuestClient:
        """Reach the endpoint; one that is nowhere is looked for again from outside, where it is noted."""
        if self._endpoint is not None:
            return GuestClient(self._endpoint)
        with GuestClient.discover(persistence=0) as found:
            return GuestClient(found.url)

    def _own_name(self, client: GuestClient) -> str | None:
        """Ask who this machine is; without an answer every event counts as its own."""
        try:
            return client.instance().name
        except (Unavailable, Refused):
            return None

    def _mine(self, document: "Document", machine: str | None) -> list[str]:
        events = document.events if machine is None else document.naming(machine)
        odd = [f"an event that cannot be read ({each.why})" for each in document.unreadable]
        return [*(f"{event.type} ({event.status}, {event.id})" for event in events), *odd]

    def _note(self, trouble: Unavailable | None) -> None:
        if trouble is not None:
            self.why = str(trouble)

    def _end(self, *, clear: bool, why: str) -> None:
        self.outcome = WaitOutcome(clear=clear, why=why)
        self.ended.set()


def wait_until_clear(endpoint: str | None, *, machine: str | None, limit: float) -> WaitOutcome:
    """Return when no event names this machine, or after the limit, or when it can never be known."""
    watch = _Watch(endpoint, machine)
    watch.start()
    watch.ended.wait(limit)
    if watch.outcome is not None:
        return watch.outcome
    watch.ended.set()
    return WaitOutcome(clear=False, why=f"not clear within {limit:g} s: {watch.why}")
