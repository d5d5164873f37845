"""The status of an agent, from the agent itself or from its journal."""

from typing import Any

import httpx

from forewarn.agent.journal.journal_file import lock_of, read
from forewarn.agent.setup.agent_config import AgentSettings
from forewarn.agent.status import of_events
from forewarn.cli import terminal
from forewarn.client.replies import RequestRefused
from forewarn.clock import SystemClock
from forewarn.core.time_formats import format_span_briefly
from forewarn.platform import system

TIMEOUT_SECONDS = 5.0
# Wrapped text of a handler starts at this column at most.
WIDEST_HEAD = 36
FAILED = "preparation failed"
# The states of an attempt in the journal, in words.
STATES = {"again": "to be tried again", "never": "failed"}


def ask(settings: AgentSettings) -> dict[str, Any] | None:
    """Ask the running agent, if it listens."""
    if settings.listen is None:
        return None
    host, port = settings.listen
    try:
        shown = f"[{host}]" if ":" in host else host
        answer = httpx.get(f"http://{shown}:{port}/status", timeout=TIMEOUT_SECONDS, trust_env=False)
        return {"running": True, **answer.raise_for_status().json()}
    except (httpx.HTTPError, ValueError, TypeError):
        return None


def from_journal(settings: AgentSettings) -> dict[str, Any]:
    """Read the journal of an agent that does not answer; its lock shows whether it runs."""
    journal, now = settings.journal, SystemClock().now()
    status = {"journal": str(journal.absolute()), "has_run": True, "listens": settings.listen is not None}
    try:
        status["running"] = system.is_held(lock_of(journal))
        tracked_events = read(journal.read_bytes())[1]
    except FileNotFoundError:
        return {**status, "has_run": False, "events": []}
    except OSError as error:
        raise RequestRefused(f"journal {journal} cannot be read: {error.strerror}") from None
    events = of_events(tracked_events, now=now, seconds_left=lambda event: event.seconds_left(now))
    return {**status, "events": events}


def show(status: dict[str, Any]) -> None:
    """Print the status for a person."""
    terminal.echo_wrapped(_head(status))
    for event in status["events"]:
        terminal.echo()
        _show_event(event, runs=status["running"])


def _head(status: dict[str, Any]) -> str:
    events = status["events"]
    if not status.get("has_run", True):
        journal = status["journal"]
        if status["running"]:
            return f"The agent runs, but does not know its machine yet: journal {journal} is missing."
        return f"No agent has run with this config here: journal {journal} is missing."
    nothing = "" if events or not status.get("informed", True) else " No event for this machine."
    if "journal" not in status:
        trouble = f" The endpoint returns no document: {status['trouble']}" if status["trouble"] else ""
        dry = "in a dry run, without any action" if status["dry_run"] else ""
        running = f"running for {format_span_briefly(status['for_seconds'])} {dry}".rstrip()
        return f"{status['machine'] or 'This machine'}: {running}, {_readiness(status)}.{trouble}{nothing}"
    if status["running"]:
        why = "does not answer at its `listen` address" if status["listens"] else "has no `listen` address"
        return f"The agent runs, but {why}. From its journal {status['journal']}:{nothing}"
    what = events[0]["type"] if len(events) == 1 else f"{len(events)} events"
    left = (
        f"this machine is still prepared for {what}. Start the agent to recover it."
        if events
        else "nothing is prepared."
    )
    return f"The agent does not run: {left} From its journal {status['journal']}{':' if events else '.'}"


def _readiness(status: dict[str, Any]) -> str:
    """Return whether the machine may get work."""
    if status["draining"]:
        return "draining"
    return "ready for work" if status["informed"] else "waiting for the first document"


def _show_event(event: dict[str, Any], *, runs: bool) -> None:
    since = format_span_briefly(event["for_seconds"])
    doing = event["doing"]
    if not runs and doing != FAILED:
        doing = f"was {doing}"
    terminal.echo_wrapped(f"{event['type']} {terminal.short(event['id'])}: {_event_state(event)}")
    terminal.echo(f"  {doing}, first seen {since} ago")
    if why := event["not_approved"]:
        terminal.echo_wrapped(f"not approved: {why}", indent="  ", hanging="    ")
    if step := event["next"]:
        terminal.echo_wrapped(f"next: {step}", indent="  ", hanging="    ")
    width = max((len(each["handler"]) for each in event["handlers"]), default=0)
    for each in event["handlers"]:
        head = f"  {each['handler']:{width}}  {each['side']}  "
        terminal.echo_wrapped(
            _attempt(each, runs=runs), indent=head, hanging=" " * min(len(head), WIDEST_HEAD)
        )


def _event_state(event: dict[str, Any]) -> str:
    """Return the state of the event itself."""
    left = event.get("seconds_left")
    if event["left"] is not None:
        return "has left the list"
    if event["status"] != "Scheduled":
        return str(event["status"])
    if left is None:
        return "Scheduled, may start at any time"
    return f"Scheduled, starts in {format_span_briefly(left)}" if left else "Scheduled, may start now"


def _attempt(each: dict[str, Any], *, runs: bool) -> str:
    took, number = format_span_briefly(each["for_seconds"]), each["attempt"]
    count = f", attempt {number}" if number > 1 else ""
    if each["state"] == "running":
        process = f" (pid {each['pid']})" if each["pid"] is not None else ""
        status = f"running for {took}" if runs else f"started {took} ago, no end recorded"
        return status + process + count
    why = f": {each['why']}" if each["why"] else ""
    return f"{STATES.get(each['state'], each['state'])} after {took}{count}{why}"
