"""What an agent is doing: asked of itself, or read in its journal."""

from collections.abc import Iterator
from typing import Any

import httpx
import typer

from forewarn.agent.config import Settings
from forewarn.agent.journal import read
from forewarn.agent.status import of_cases
from forewarn.cli import console, words
from forewarn.clock import SystemClock

TIMEOUT_SECONDS = 5.0


def asked(settings: Settings) -> dict[str, Any] | None:
    """Ask the running agent, if it listens."""
    if settings.listen is None:
        return None
    host, port = settings.listen
    try:
        shown = f"[{host}]" if ":" in host else host
        answer = httpx.get(f"http://{shown}:{port}/status", timeout=TIMEOUT_SECONDS, trust_env=False)
        return dict(answer.raise_for_status().json())
    except (httpx.HTTPError, ValueError):
        return None


def from_journal(settings: Settings) -> dict[str, Any]:
    """Read what an agent that cannot be asked has written down."""
    told = {"journal": str(settings.journal.absolute()), "has_run": True}
    try:
        cases = read(settings.journal.read_bytes())[1]
    except FileNotFoundError:
        return {**told, "has_run": False, "events": []}
    except OSError as error:
        console.complain(f"journal {settings.journal} cannot be read: {error.strerror}")
        raise typer.Exit(1) from None
    return {**told, "events": of_cases(cases, now=SystemClock().now())}


def show(told: dict[str, Any]) -> None:
    """Print it, for a person."""
    if not told.get("has_run", True):
        console.say(f"No agent has run with this config here: there is no journal {told['journal']}.")
        return
    if "journal" in told:
        console.say(f"The agent cannot be asked (it does not run, or has no `listen`); by {told['journal']}:")
    else:
        trouble = f" The endpoint gives no document: {told['trouble']}" if told["trouble"] else ""
        console.say(
            f"{told['machine'] or 'This machine'}: running for {words.span(told['for_seconds'])}, "
            f"{'draining' if told['draining'] else 'ready for work'}.{trouble}"
        )
    layout = console.Layout(columns=("event", "status", "doing", "for", "handler", "state", "took", "why"))
    rows = [row for event in told["events"] for row in _rows(event)]
    console.table(layout, rows, empty="No event for this machine.")


def _rows(event: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    head = (event["type"], event["status"], event["doing"], words.span(event["for_seconds"]))
    if not event["handlers"]:
        yield (*head, None, None, None, None)
    for each in event["handlers"]:
        state = each["state"] if each["attempt"] == 1 else f"{each['state']} ({each['attempt']}.)"
        took = words.span(each["for_seconds"])
        yield (*head, f"{each['handler']} {each['side']}", state, took, each["why"])
        head = ("", "", "", "")
