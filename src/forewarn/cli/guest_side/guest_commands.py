"""`forewarn guest`: inside a machine, what it is told, and what a person can say to it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from forewarn.cli import terminal
from forewarn.cli.session import Json, Noun, Session, keep_options, within_machine
from forewarn.client.replies import RequestRefused, ServerUnreachable

if TYPE_CHECKING:
    from forewarn.sdk.blocking_client import GuestClient
    from forewarn.sdk.documents import Document, Event


# What does not pass by then, a person should hear of; the first call may still take two minutes.
PERSISTENCE_SECONDS = 10.0
# The first call may take two minutes; and an event stays listed for a while after it was over.
CLEAR_SECONDS = 300.0
ELSEWHERE = (
    "guest commands ask the endpoint of this machine, not a server\n"
    "Leave --server and --project out; --endpoint URL says where the endpoint is."
)
ADVICE = "See where it was looked for, and what was found:  forewarn guest doctor"

Endpoint = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where the endpoint is. FOREWARN_ENDPOINT says it for good; else it is looked for.",
        show_default=False,
    ),
]
Machine = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who this machine is; else the endpoint is asked.", show_default=False),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="EVENT", help="Ids, or how they begin; without, asks for each.", show_default=False
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Approve all without asking.")]
Clear = Annotated[bool, typer.Option("--clear", help="Wait until no event of this machine is listed.")]
Limit = Annotated[
    float, typer.Option(metavar="SECONDS", min=0, help="Give up after this, and go on as if all were clear.")
]


def before_the_verb(ctx: typer.Context, endpoint: Endpoint = None, json: Json = None) -> None:
    """Keep the options that stand before a verb."""
    keep_options(ctx, json=json)
    if endpoint is not None:
        # What stands after the verb counts more.
        ctx.default_map = {str(ctx.invoked_subcommand): {"endpoint": endpoint}}


app = Noun(callback=before_the_verb, takes=within_machine)


@app.command()
def events(session: Session, endpoint: Endpoint = None) -> None:
    """Show what this machine is told, with countdowns."""
    from forewarn.cli.guest_side import guest_view

    with connected(session, endpoint) as client:
        document = client.events()
        session.print_answer(
            guest_view.as_json(document, client), lambda: guest_view.show_events(document, client)
        )


@app.command()
def watch(session: Session, endpoint: Endpoint = None) -> None:
    """Show what this machine is told, as it changes, until interrupted."""
    from forewarn.cli.guest_side import guest_view

    with suppress(KeyboardInterrupt), connected(session, endpoint) as client:
        if session.json:
            guest_view.print_changes(client)
        elif terminal.is_terminal():
            guest_view.draw(client)
        else:
            guest_view.print_documents(client)


@app.command()
def approve(session: Session, ids: Ids = None, yes: Yes = False, endpoint: Endpoint = None) -> None:
    """Let events start now."""
    from forewarn.cli.guest_side import guest_view

    if session.json and not (ids or yes):
        raise typer.BadParameter(
            "a program cannot be asked: name the events, or say --yes", param_hint="EVENT"
        )
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


@app.command()
def doctor(session: Session, endpoint: Endpoint = None) -> None:
    """Find out why this machine is told nothing: where the endpoint is, who I am, clocks, who polls."""
    from forewarn.cli.guest_side.guest_doctor import examine, show

    report = examine(checked(session, endpoint))
    session.print_answer(report.as_json(), lambda: show(report))
    if report.trouble is not None:
        raise ServerUnreachable(report.trouble)


@app.command()
def wait(
    session: Session,
    clear: Clear = False,
    limit: Limit = CLEAR_SECONDS,
    machine: Machine = None,
    endpoint: Endpoint = None,
) -> None:
    """Wait, before the application starts, until nothing is going to happen to this machine.

    Fails open: whatever is wrong, it returns with 0 after the limit, and says why beside the output.
    """
    if not clear:
        raise typer.BadParameter("say what to wait for: --clear", param_hint="--clear")
    from forewarn.cli.guest_side.guest_wait import wait_until_clear

    outcome = wait_until_clear(checked(session, endpoint), machine=machine, limit=limit)
    session.print_answer(outcome.as_json(), outcome.show)


@contextmanager
def connected(session: Session, endpoint: str | None) -> "Iterator[GuestClient]":
    """Reach the endpoint; what the SDK raises becomes what a command exits with."""
    from forewarn.sdk.blocking_client import GuestClient
    from forewarn.sdk.guest_errors import GuestError, NoEndpoint
    from forewarn.sdk.guest_errors import Refused as Permanent

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
    """Return the URL that was typed, if one was; what is none is wrong usage."""
    if session.server or session.project:
        raise RequestRefused(ELSEWHERE)
    from forewarn.sdk.guest_errors import NoEndpoint
    from forewarn.sdk.transport.endpoint_urls import base_url

    try:
        return None if endpoint is None else base_url(endpoint)
    except NoEndpoint as error:
        raise typer.BadParameter(str(error), param_hint="--endpoint") from None


def _named(document: "Document", id_: str) -> "Event":
    found = [event for event in document.events if event.id.casefold().startswith(id_.casefold())]
    if len(found) != 1:
        what = "no event" if not found else "several events"
        raise RequestRefused(f"{what} of this machine's group begins with {id_}: see forewarn guest events")
    return found[0]
