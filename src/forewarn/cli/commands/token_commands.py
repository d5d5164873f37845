"""`forewarn token`: create, list and revoke access tokens."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import option
from forewarn.cli.commands.serve_commands import installed
from forewarn.cli.options import duration, name_argument, path_of
from forewarn.cli.session import BAD_REQUEST, Noun, Session
from forewarn.client.replies import RequestRefused, given, reply_of, reply_of_page
from forewarn.wire.answers.access_answers import CallerAnswer, NewTokenAnswer, RevokedTokenAnswer, TokenAnswer

app = Noun()

DATABASE = option(
    "--database",
    "URL",
    "Write to the store without a server, as for the first token: sqlite:///FILE or postgresql://….",
)
NAME = name_argument("NAME")

LIST = terminal.ItemTable[TokenAnswer](
    columns={
        **terminal.columns("TOKEN=name ROLE PROJECT"),
        "STATE": lambda token: "revoked" if token.revoked_at else "in force",
        **terminal.columns("CREATED=created_at BY=created_by EXPIRES=expires_at"),
    },
    spare=("BY", "CREATED"),
    empty="No tokens: every local user of the server's machine has full access.",
)


@app.verb(
    option("--name", "NAME", "The name of the user, for the history.", required=True),
    option("--role", "ROLE", "The role: viewer, user (of --project) or operator.", required=True),
    duration("--expires expires_seconds", "The life of the token, such as 12h or 90d. Default: no end."),
    DATABASE,
)
def create(session: Session, database: str | None, **typed: Any) -> None:
    """Create a token. Only its secret goes to stdout, and only this once; messages go to stderr."""
    body = given({**typed, "project": session.project})
    if database is None:
        reply = session.client.post("/v1/tokens", NewTokenAnswer, body)
    else:
        made = _on_store(lambda store: store.create(database, _grant(body), say=_print_to_stderr))
        reply = reply_of(made, NewTokenAnswer, url=database)
    session.print_reply(reply, _show_new)


@app.verb(DATABASE)
def list_(session: Session, database: str | None) -> None:
    """List tokens, including revoked ones."""
    if database is None:
        reply = session.client.all(TokenAnswer)
    else:
        reply = reply_of_page(_on_store(lambda store: store.list_all(database)), TokenAnswer, url=database)
    session.print_reply(reply, lambda page: LIST.print(page.items))


@app.verb()
def show(session: Session) -> None:
    """Show the owner and the rights of your token."""
    reply = session.client.get("/v1/caller", CallerAnswer)
    session.print_reply(reply, terminal.details_of)


@app.verb(NAME, DATABASE)
def revoke(session: Session, name: str, database: str | None) -> None:
    """Revoke a token at once."""
    if database is None:
        reply = session.client.post(f"{path_of('token', name)}/revoke", RevokedTokenAnswer)
    else:
        revoked = _on_store(lambda store: store.revoke(database, name))
        reply = reply_of(revoked, RevokedTokenAnswer, url=database)
    session.print_reply(reply, _show_revoked)


def _on_store(work: Callable[[ModuleType], dict[str, Any]]) -> dict[str, Any]:
    from forewarn.core.errors import ForewarnError, Invalid

    try:
        return work(installed("forewarn.server.local_tokens"))
    except ForewarnError as error:
        raise RequestRefused(str(error), status=BAD_REQUEST if isinstance(error, Invalid) else None) from None


def _grant(body: dict[str, Any]) -> object:
    """Check the fields as the API does."""
    from datetime import timedelta

    from forewarn.core.access import Grant, Role
    from forewarn.wire import fields

    wanted = fields.read(
        body,
        {
            "name": fields.name,
            "role": fields.choice(tuple(Role)),
            "project": fields.name,
            "expires_seconds": lambda seconds: timedelta(seconds=float(str(seconds))),
        },
        "",
    )
    life = wanted.pop("expires_seconds", None)
    return Grant(**wanted, life=life)


def _print_to_stderr(text: str) -> None:
    print(text, file=sys.stderr)


def _show_new(answer: NewTokenAnswer) -> None:
    token = answer.token
    of = f" of {token.project}" if token.project else ""
    until = f", until {formatting.utc(token.expires_at)}" if token.expires_at else ""
    _print_to_stderr(
        f"Created token {token.name} ({token.role}{of}{until}).\n"
        "Copy the secret now: it is not shown again. Set FOREWARN_TOKEN to it."
    )
    terminal.echo(answer.secret)


def _show_revoked(answer: RevokedTokenAnswer) -> None:
    terminal.echo(f"Token {answer.token.name} revoked.")
    for warning in answer.warnings:
        terminal.print_error(warning)
