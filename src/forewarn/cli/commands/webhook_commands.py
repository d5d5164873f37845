"""`forewarn webhook`: push records to URLs."""

from dataclasses import replace
from typing import Any

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import argument, option
from forewarn.cli.options import id_argument, kinds, path_by_id
from forewarn.cli.session import Noun, Session
from forewarn.client.replies import RequestRefused
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.record_answers import NewWebhookAnswer, WebhookAnswer, WebhookTestAnswer

app = Noun()

URL = argument("url", "URL", "The URL to call: http://… or https://….")
ID = id_argument("WEBHOOK")
SECRET = option("--secret", "TEXT", "The secret that signs the calls: whsec_…. Default: a new one.")

LIST = terminal.ItemTable[WebhookAnswer](
    columns={
        "WEBHOOK": lambda webhook: terminal.short(webhook.id),
        **terminal.columns("URL PROJECT KINDS BEHIND FAILING-SINCE"),
        "NEXT TRY": lambda webhook: _next_try(webhook),
        "ERROR": lambda webhook: webhook.error,
    },
    wraps=("KINDS", "ERROR"),
    spare=("KINDS", "PROJECT", "NEXT TRY"),
    empty="No webhooks.",
)


@app.verb(URL, kinds("--kind kinds"), SECRET)
def add(session: Session, **typed: Any) -> None:
    """Push new records to a URL; --project selects those of a project."""
    body = {**typed, **session.scope}
    reply = session.client.post("/v1/webhooks", NewWebhookAnswer, body)
    session.print_reply(reply, lambda added: _show_added(session, added))


@app.verb()
def list_(session: Session) -> None:
    """List webhooks, with failed deliveries."""
    reply = session.client.all(WebhookAnswer, **session.scope)
    empty = formatting.none_found("webhooks", LIST.empty, **session.scope)
    session.print_reply(reply, lambda page: replace(LIST, empty=empty).print(page.items))


@app.verb(ID)
def show(session: Session, id_: str) -> None:
    """Show a webhook, with its failed deliveries."""
    session.print_reply(
        session.client.get(path_by_id(session.client, WebhookAnswer, id_), WebhookAnswer), _show
    )


@app.verb(ID)
def remove(session: Session, id_: str) -> None:
    """Stop pushing to a webhook, and delete it."""
    reply = session.client.call("DELETE", path_by_id(session.client, WebhookAnswer, id_), WebhookAnswer)
    session.print_reply(reply, lambda removed: terminal.echo(f"Webhook to {removed.url} removed."))


@app.verb(ID)
def test(session: Session, id_: str) -> None:
    """Call a webhook now, and show the result."""
    reply = session.client.post(f"{path_by_id(session.client, WebhookAnswer, id_)}/test", WebhookTestAnswer)
    if not reply.value.delivered:
        raise RequestRefused(f"the webhook refused the call: {reply.value.error}")
    session.print_reply(reply, lambda _: terminal.echo("The webhook accepted the call."))


def _show(webhook: WebhookAnswer) -> None:
    terminal.details_of(webhook, next_try_seconds=_next_try(webhook))


def _next_try(webhook: WebhookAnswer) -> str | None:
    wait = webhook.next_try_seconds
    return None if wait is None else f"in {format_span_briefly(wait)}"


def _show_added(session: Session, added: NewWebhookAnswer) -> None:
    short = terminal.short(added.webhook.id)
    terminal.echo(f"Webhook {short} added: new records are pushed to {added.webhook.url}.")
    test = session.command(f"webhook test {short}")
    terminal.echo_steps({"Secret": f"{added.secret}   (not shown again)", "Test": test})
