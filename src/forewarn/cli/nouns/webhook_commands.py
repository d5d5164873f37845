"""`forewarn webhook`: where records are pushed to."""

from dataclasses import replace

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import argument, option
from forewarn.cli.options import id_argument, path_by_id
from forewarn.cli.session import Noun, Session
from forewarn.client.replies import RequestRefused
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.record_answers import NewWebhookAnswer, WebhookTestAnswer, WebhookAnswer

app = Noun()

URL = argument("url", "URL", "http://… or https://…")
ID = id_argument("WEBHOOK")
KINDS = option("--kind", "KIND", "Only records of this kind, as event-scheduled; repeat it.", multiple=True)
SECRET = option("--secret", "TEXT", "What signs the calls, as whsec_…; left out: made.")

LIST = terminal.ItemTable[WebhookAnswer](
    columns={
        "WEBHOOK": lambda webhook: terminal.short(webhook.id),
        "URL": lambda webhook: webhook.url,
        "PROJECT": lambda webhook: webhook.project,
        "KINDS": lambda webhook: webhook.kinds,
        "BEHIND": lambda webhook: webhook.behind,
        "FAILING SINCE": lambda webhook: webhook.failing_since,
        "NEXT TRY": lambda webhook: _next_try(webhook),
        "ERROR": lambda webhook: webhook.error,
    },
    wraps=("KINDS", "ERROR"),
    spare=("KINDS", "PROJECT", "NEXT TRY"),
    empty="No webhooks: nothing is pushed.",
)


@app.verb(URL, KINDS, SECRET)
def add(session: Session, url: str, kind: tuple[str, ...], secret: str | None) -> None:
    """Push records to an address from now on; --project pushes only those of a project."""
    body = {"url": url, "kinds": kind, **session.scope, "secret": secret or None}
    reply = session.client.post("/v1/webhooks", NewWebhookAnswer, body)
    session.print_reply(reply, lambda added: _show_added(session, added))


@app.verb()
def list_(session: Session) -> None:
    """List webhooks, with what is stuck and why."""
    reply = session.client.all(WebhookAnswer, **session.scope)
    empty = formatting.none_found("webhooks", LIST.empty, **session.scope)
    session.print_reply(reply, lambda page: replace(LIST, empty=empty).print(page.items))


@app.verb(ID)
def show(session: Session, id_: str) -> None:
    """Show a webhook, with what is stuck and why."""
    session.print_reply(
        session.client.get(path_by_id(session.client, WebhookAnswer, id_), WebhookAnswer), _show
    )


@app.verb(ID)
def remove(session: Session, id_: str) -> None:
    """Push nothing to an address any more."""
    reply = session.client.call("DELETE", path_by_id(session.client, WebhookAnswer, id_), WebhookAnswer)
    session.print_reply(reply, lambda removed: terminal.echo(f"Nothing is pushed to {removed.url} any more."))


@app.verb(ID)
def test(session: Session, id_: str) -> None:
    """Call a webhook now, and say what came of it."""
    reply = session.client.post(f"{path_by_id(session.client, WebhookAnswer, id_)}/test", WebhookTestAnswer)
    if not reply.value.delivered:
        raise RequestRefused(f"the call was not taken: {reply.value.error}")
    session.print_reply(reply, lambda _: terminal.echo("The call was taken."))


def _show(webhook: WebhookAnswer) -> None:
    terminal.details_of(webhook, next_try_seconds=_next_try(webhook))


def _next_try(webhook: WebhookAnswer) -> str | None:
    wait = webhook.next_try_seconds
    return None if wait is None else f"in {format_span_briefly(wait)}"


def _show_added(session: Session, added: NewWebhookAnswer) -> None:
    short = terminal.short(added.webhook.id)
    terminal.echo(f"Records are pushed to {added.webhook.url} from now on (webhook {short}).")
    terminal.echo(f"  Signed with: {added.secret}   (shown this once)")
    terminal.echo(f"  Try it out:  {session.command(f'webhook test {short}')}")
