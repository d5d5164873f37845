"""`forewarn token`: say who may do what."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import quoted_name
from forewarn.cli.nouns.serve_commands import installed
from forewarn.cli.options.shared_options import name_argument, seconds
from forewarn.cli.session import BAD_REQUEST, Session, noun, with_session
from forewarn.client.replies import RequestRefused

app = noun("Say who may do what: make, list and revoke tokens.")

Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Work on the store itself, as for the first token: sqlite:///FILE or postgresql://…",
        show_default=False,
    ),
]
Name = Annotated[str, name_argument("NAME")]

LIST = terminal.TableLayout(
    columns=("TOKEN", "ROLE", "PROJECT", "STATE", "MADE", "BY", "EXPIRES"), spare=("BY", "MADE")
)


@app.command()
@with_session
def create(
    session: Session,
    *,
    name: Annotated[str, typer.Option(metavar="NAME", help="Who uses it, for the records.")],
    role: Annotated[str, typer.Option(metavar="ROLE", help="viewer, user (of --project) or operator.")],
    expires: Annotated[
        str | None, typer.Option(metavar="DURATION", help="As 12h or 90d. Left out: never.")
    ] = None,
    database: Database = None,
) -> None:
    """Make a token. Its secret is printed this once; everything else goes beside the output."""
    life = None if expires is None else seconds(expires, hint="--expires")
    given = {"name": name, "role": role, "project": session.project, "expires_seconds": life}
    body = {key: value for key, value in given.items() if value is not None}
    if database is None:
        answer = session.client.post("/v1/tokens", body)
    else:
        answer = _on_store(lambda store: store.create(database, _grant(body), say=_print_beside))
    session.print_answer(answer, lambda: _show_new(answer))


@app.command("list")
@with_session
def list_(session: Session, database: Database = None) -> None:
    """List tokens, revoked ones too."""
    if database is None:
        answer = session.client.all("tokens")
    else:
        answer = _on_store(lambda store: store.list_all(database))
    session.print_answer(answer, lambda: _show_list(answer["tokens"]))


@app.command()
@with_session
def revoke(session: Session, name: Name, database: Database = None) -> None:
    """End a token at once."""
    if database is None:
        answer = session.client.post(f"/v1/tokens/{quoted_name('token', name)}/revoke")
    else:
        answer = _on_store(lambda store: store.revoke(database, name))
    session.print_answer(answer, lambda: _show_revoked(answer))


def _on_store(work: Callable[[ModuleType], dict[str, Any]]) -> dict[str, Any]:
    from forewarn.core.errors import ForewarnError, Invalid

    try:
        return work(installed("local_tokens"))
    except ForewarnError as error:
        raise RequestRefused(str(error), status=BAD_REQUEST if isinstance(error, Invalid) else None) from None


def _grant(body: dict[str, Any]) -> object:
    """Check what the API would have checked."""
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


def _print_beside(text: str) -> None:
    """Print to stderr what is not the secret."""
    print(text, file=sys.stderr)


def _show_new(answer: dict[str, Any]) -> None:
    token = answer["token"]
    of = f" of {token['project']}" if token["project"] else ""
    until = f", until {formatting.at(token['expires_at'])}" if token["expires_at"] else ""
    _print_beside(
        f"Token {token['name']} ({token['role']}{of}{until}) is made. Its secret is shown only now;\n"
        "whoever has it sets FOREWARN_TOKEN to it:"
    )
    terminal.echo(answer["secret"])


def _show_revoked(answer: dict[str, Any]) -> None:
    terminal.echo(f"Token {answer['token']['name']} is revoked.")
    for warning in answer["warnings"]:
        terminal.print_error(warning)


def _show_list(tokens: list[dict[str, Any]]) -> None:
    rows = (
        (
            token["name"],
            token["role"],
            token["project"],
            "revoked" if token["revoked_at"] else "in force",
            formatting.at(token["created_at"]),
            token["created_by"],
            formatting.at(token["expires_at"]),
        )
        for token in tokens
    )
    terminal.table(
        LIST, rows, empty="No tokens: whoever reaches the server on its own machine may do everything."
    )
