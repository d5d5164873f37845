"""`forewarn health`, `metrics` and `calendar`: what a server tells other programs, for people."""

import sys

from forewarn.cli import terminal
from forewarn.cli.session import Session, command
from forewarn.client.replies import RequestRefused
from forewarn.wire.answers.service_answers import StatusAnswer


@command()
def health(session: Session) -> None:
    """Check whether the server works, and whether it can save anything."""
    client = session.client
    probes = {"healthy": "/healthz", "ready": "/readyz"}
    answer = {name: client.get(path, StatusAnswer).json for name, path in probes.items()}
    session.print_answer(answer, lambda: terminal.echo(f"{client.url} works, and takes orders."))


@command()
def metrics(session: Session) -> None:
    """Print the metrics, as Prometheus reads them."""
    if session.json:
        raise RequestRefused("metrics have a form of their own: leave --json out")
    sys.stdout.write(session.client.text("/metrics"))


@command()
def calendar(session: Session) -> None:
    """Print coming events as a calendar; --project prints those of a project."""
    if session.json:
        raise RequestRefused(
            "a calendar has a form of its own: leave --json out (`forewarn event list --json`)"
        )
    sys.stdout.write(session.client.text("/v1/calendar.ics", **session.scope))
