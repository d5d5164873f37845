"""`forewarn webhook`: where records are pushed to."""

from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import full_id
from forewarn.cli.options.shared_options import id_argument
from forewarn.cli.session import Session, noun, with_session
from forewarn.client.replies import RequestRefused
from forewarn.core.moments import format_span_briefly

app = noun("Push records to an address as they happen; see what is stuck.")

Url = Annotated[str, typer.Argument(metavar="URL", help="http://… or https://…", show_default=False)]
Id = Annotated[str, id_argument("WEBHOOK")]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Only records of this kind, as event-scheduled; repeat it."),
]
Secret = Annotated[
    str | None,
    typer.Option("--secret", metavar="TEXT", help="What signs the calls, as whsec_…; left out: made."),
]

LIST = terminal.TableLayout(
    columns=("WEBHOOK", "URL", "PROJECT", "KINDS", "BEHIND", "FAILING SINCE", "NEXT TRY", "ERROR"),
    wraps=("KINDS", "ERROR"),
    spare=("KINDS", "PROJECT", "NEXT TRY"),
)


@app.command()
@with_session
def add(session: Session, url: Url, kind: Kinds = None, secret: Secret = None) -> None:
    """Push records to an address from now on; --project pushes only those of a project."""
    body = {"url": url, "kinds": kind or [], **session.scope}
    answer = session.client.post("/v1/webhooks", {**body, "secret": secret} if secret else body)
    session.print_answer(answer, lambda: _show_added(session, answer))


@app.command("list")
@with_session
def list_(session: Session) -> None:
    """List webhooks, with what is stuck and why."""
    answer = session.client.all("webhooks", **session.scope)
    rows = (_row(each) for each in answer["webhooks"])
    session.print_answer(answer, lambda: terminal.table(LIST, rows, empty="No webhooks: nothing is pushed."))


@app.command()
@with_session
def show(session: Session, id_: Id) -> None:
    """Show a webhook, with what is stuck and why."""
    answer = session.client.get(f"/v1/webhooks/{full_id(session.client, 'webhooks', id_)}")
    session.print_answer(answer, lambda: _show(answer["webhook"]))


@app.command()
@with_session
def remove(session: Session, id_: Id) -> None:
    """Push nothing to an address any more."""
    answer = session.client.call("DELETE", f"/v1/webhooks/{full_id(session.client, 'webhooks', id_)}")
    said = f"Nothing is pushed to {answer['webhook']['url']} any more."
    session.print_answer(answer, lambda: terminal.echo(said))


@app.command()
@with_session
def test(session: Session, id_: Id) -> None:
    """Call a webhook now, and say what came of it."""
    answer = session.client.post(f"/v1/webhooks/{full_id(session.client, 'webhooks', id_)}/test")
    if not answer["delivered"]:
        raise RequestRefused(f"the call was not taken: {answer['error']}")
    session.print_answer(answer, lambda: terminal.echo("The call was taken."))


def _show(webhook: dict[str, Any]) -> None:
    wait = webhook["next_try_seconds"]
    told = {
        "created_at": formatting.at(webhook["created_at"]),
        "failing_since": formatting.at(webhook["failing_since"]),
        "next_try_seconds": None if wait is None else f"in {format_span_briefly(wait)}",
    }
    shown = {**webhook, **told}
    terminal.details((key.removesuffix("_seconds").replace("_", " "), value) for key, value in shown.items())


def _show_added(session: Session, answer: dict[str, Any]) -> None:
    webhook = answer["webhook"]
    short = terminal.short(webhook["id"])
    terminal.echo(f"Records are pushed to {webhook['url']} from now on (webhook {short}).")
    terminal.echo(f"  Signed with: {answer['secret']}   (shown this once)")
    terminal.echo(f"  Try it out:  {session.command(f'webhook test {short}')}")


def _row(webhook: dict[str, Any]) -> tuple[object, ...]:
    wait = webhook["next_try_seconds"]
    return (
        terminal.short(webhook["id"]),
        webhook["url"],
        webhook["project"],
        webhook["kinds"],
        webhook["behind"],
        formatting.at(webhook["failing_since"]),
        None if wait is None else f"in {format_span_briefly(wait)}",
        webhook["error"],
    )
