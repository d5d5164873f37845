"""`forewarn history`: what happened; and all of it, as a file."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from forewarn.cli import console, words
from forewarn.cli.commands import Commands
from forewarn.cli.complete import names
from forewarn.cli.find import whole_id
from forewarn.cli.session import Json, Project, Server, Session, Token, remember, with_session

app = Commands(invoke_without_command=True)

LIST = console.Layout(
    columns=("NUMBER", "AT", "WHAT", "ON", "EVENT", "ORDER", "BY", "WHY"),
    wraps=("WHY",),
    spare=("NUMBER", "BY", "ORDER", "EVENT"),
)

Since = Annotated[
    int, typer.Option("--since", metavar="NUMBER", min=0, help="Only records after this number.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Left out, or -: to standard output."),
]
Format = Annotated[
    Literal["jsonl", "csv"] | None,
    typer.Option("--format", help="Left out: by the name of the file, else jsonl.", show_default=False),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on after the last record in the file, if there is one.")
]


@app.callback()
def history(
    ctx: typer.Context,
    machine: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only of this machine.", autocompletion=names("machines")),
    ] = None,
    event: Annotated[str | None, typer.Option(metavar="ID", help="Only of this event.")] = None,
    order: Annotated[str | None, typer.Option(metavar="ID", help="Only of this order.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="As 2026-01-31T12:00:00Z.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.", min=1, max=1000)] = 50,
    server: Server = None,
    token: Token = None,
    project: Project = None,
    json: Json = None,
) -> None:
    """Show what happened, newest first; `export` writes all of it."""
    remember(ctx, server=server, token=token, project=project, json=json)
    if ctx.invoked_subcommand is None:
        given = {"machine": machine, "event": event, "order": order, "since": since, "limit": limit}
        _listed(ctx=ctx, server=None, token=None, project=None, json=None, **given)


@app.command()
@with_session
def export(
    session: Session,
    output: Output = None,
    format_: Format = None,
    since: Since = 0,
    resume: Resume = False,
) -> None:
    """Write all records, oldest first, as lines of JSON or as CSV."""
    from forewarn.cli.history_export import export as run

    file = None if output is None or str(output) == "-" else output
    if resume and file is None:
        raise typer.BadParameter("needs a file: give --output too", param_hint="--resume")
    form = format_ or ("csv" if file is not None and file.suffix == ".csv" else "jsonl")
    run(session, file, form, since=since, resume=resume)


@with_session
def _listed(
    session: Session, machine: str | None, event: str | None, order: str | None, since: str | None, limit: int
) -> None:
    answer = session.client.get(
        "/v1/history",
        **session.scope,
        machine=machine,
        event=whole_id(session.client, "events", event) if event else None,
        order=whole_id(session.client, "orders", order) if order else None,
        since=since,
        limit=limit,
    )
    rows = (_row(each) for each in answer["records"])
    session.answer(answer, lambda: console.table(LIST, rows, empty="Nothing has happened."))


def _row(record: dict[str, Any]) -> tuple[object, ...]:
    return (
        record["number"],
        words.at(record["at"]),
        record["kind"],
        record["machine"] or record["host"] or record["group"],
        console.short(record["event"]),
        console.short(record["order"]),
        record["by"],
        record["reason"],
    )


def line(record: dict[str, Any]) -> str:
    """Write a record as one line."""
    about = record["machine"] or record["host"] or record["group"] or ""
    by = f"by {record['by']}" if record["by"] else ""
    said = (words.at(record["at"]), f"{record['kind']:16}", about, record["reason"], by)
    return "  ".join(part for part in said if part)
