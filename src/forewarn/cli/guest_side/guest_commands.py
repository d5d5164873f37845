"""`forewarn guest`: show and approve the events of the machine that it runs in."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import WrongUsage, argument, flag, option
from forewarn.cli.session import JSON, WITHIN_MACHINE, Noun, Session
from forewarn.client.replies import RequestRefused, ServerUnreachable

if TYPE_CHECKING:
    from forewarn.sdk.blocking_client import GuestClient
    from forewarn.sdk.documents import Document, Event


# Retry transient errors for this long. The first call alone may take two minutes.
PERSISTENCE_SECONDS = 10.0
# The first call may take two minutes, and an event stays listed for a while after its end.
CLEAR_SECONDS = 300.0
ELSEWHERE = (
    "guest commands use the endpoint of this machine, not a server\n"
    "Use --endpoint URL instead of --server and --project."
)
ADVICE = "Diagnose the endpoint with `forewarn guest doctor`."


def _endpoint(**settings: Any) -> click.Option:
    about = "The metadata endpoint. Default: FOREWARN_ENDPOINT, else it is discovered."
    return option("--endpoint", "URL", about, **settings)


def _pass_on(ctx: click.Context, _: click.Parameter, endpoint: str | None) -> None:
    """Pass an endpoint that stands before a verb on to it; one after the verb wins."""
    if endpoint is not None:
        ctx.default_map = {verb: {"endpoint": endpoint} for verb in app.commands}


ENDPOINT = _endpoint()
MACHINE = option("--machine", "NAME", "The name of this machine. Default: from the endpoint.")
IDS = argument(
    "ids",
    "[EVENT]...",
    "The ids, or prefixes. Without ids, the command asks for each event.",
    nargs=-1,
    shell_complete=None,  # a machine cannot reach the operator API
)
YES = flag("--yes -y", "Approve all events without asking.")
CLEAR = flag("--clear", "Wait until no event of this machine is listed.")
LIMIT = option(
    "--limit",
    "SECONDS",
    "Return after this time in any case.",
    type=click.FloatRange(min=0),
    default=CLEAR_SECONDS,
)


app = Noun([_endpoint(callback=_pass_on, expose_value=False), JSON], shared=WITHIN_MACHINE)


@app.verb(ENDPOINT)
def events(session: Session, endpoint: str | None) -> None:
    """Show the events of this machine, with countdowns."""
    from forewarn.cli.guest_side import guest_view

    with connected(session, endpoint) as client:
        document = client.events()
        session.print_answer(
            guest_view.as_json(document, client), lambda: guest_view.show_events(document, client)
        )


@app.verb(ENDPOINT)
def watch(session: Session, endpoint: str | None) -> None:
    """Show the events of this machine live, until interrupted."""
    from forewarn.cli.guest_side import guest_view

    with suppress(KeyboardInterrupt), connected(session, endpoint) as client:
        if session.json:
            guest_view.print_changes(client)
        elif terminal.is_terminal():
            guest_view.draw(client)
        else:
            guest_view.print_documents(client)


@app.verb(IDS, YES, ENDPOINT)
def approve(session: Session, ids: tuple[str, ...], yes: bool, endpoint: str | None) -> None:
    """Approve events: they may start now."""
    from forewarn.cli.guest_side import guest_view

    if session.json and not (ids or yes):
        raise WrongUsage("EVENT", "--json requires ids or --yes")
    with connected(session, endpoint) as client:
        document = client.events()
        if ids:
            chosen = [_named(document, id_) for id_ in ids]
        else:
            waiting = [event for event in document.events if not event.started]
            chosen = [event for event in waiting if yes or guest_view.is_wanted(event, client)]
        if chosen:
            client.approve(*chosen)
        approved = {"approved": [event.id for event in chosen]}
        session.print_answer(approved, lambda: guest_view.show_approved(chosen))


@app.verb(ENDPOINT)
def doctor(session: Session, endpoint: str | None) -> None:
    """Diagnose why this machine sees no events: endpoint, name, clock, other pollers."""
    from forewarn.cli.guest_side.guest_checks import examine, show

    report = examine(checked(session, endpoint))
    session.print_answer(report.as_json(), lambda: show(report))
    if report.trouble is not None:
        raise ServerUnreachable(report.trouble)


@app.verb(CLEAR, LIMIT, MACHINE, ENDPOINT)
def wait(session: Session, clear: bool, limit: float, machine: str | None, endpoint: str | None) -> None:
    """Wait, before an application starts, until no event of this machine is listed.

    The command fails open: after the limit it exits with 0, and prints the reason to stderr.
    """
    if not clear:
        raise WrongUsage("--clear", "is required")
    from forewarn.cli.guest_side.guest_checks import wait_until_clear

    outcome = wait_until_clear(checked(session, endpoint), machine=machine, limit=limit)
    session.print_answer(outcome.as_json(), outcome.show)


@contextmanager
def connected(session: Session, endpoint: str | None) -> "Iterator[GuestClient]":
    """Connect to the endpoint; errors of the SDK become exit codes."""
    from forewarn.sdk.blocking_client import GuestClient
    from forewarn.sdk.guest_errors import EndpointRefused as Permanent
    from forewarn.sdk.guest_errors import GuestError, NoEndpoint

    try:
        url = checked(session, endpoint)
        if url is None:
            client = GuestClient.discover(persistence=PERSISTENCE_SECONDS)
        else:
            client = GuestClient(url, persistence=PERSISTENCE_SECONDS)
        with client:
            yield client
    except Permanent as refusal:
        raise RequestRefused(str(refusal)) from None
    except NoEndpoint as error:
        raise ServerUnreachable(str(error)) from None
    except GuestError as error:
        raise ServerUnreachable(f"{error}\n{ADVICE}") from None


def checked(session: Session, endpoint: str | None) -> str | None:
    """Return the typed URL, if any; an invalid one is wrong usage."""
    if session.server or session.project:
        raise RequestRefused(ELSEWHERE)
    from forewarn.sdk.guest_errors import NoEndpoint
    from forewarn.sdk.transport.endpoint_urls import base_url

    try:
        return None if endpoint is None else base_url(endpoint)
    except NoEndpoint as error:
        raise WrongUsage("--endpoint", str(error)) from None


def _named(document: "Document", id_: str) -> "Event":
    found = [event for event in document.events if event.id.casefold().startswith(id_.casefold())]
    if len(found) != 1:
        what = "no event" if not found else "several events"
        raise RequestRefused(
            f"{what} of this machine's group begins with {id_}; `forewarn guest events` lists them"
        )
    return found[0]
