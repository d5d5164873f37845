"""`forewarn history`: what happened; and all of it, as a file."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from forewarn.cli import console, words
from forewarn.cli.client import PAGE
from forewarn.cli.commands import Commands
from forewarn.cli.complete import names
from forewarn.cli.find import whole_id
from forewarn.cli.session import Json, Project, Server, Session, Token, remember, with_session

app = Commands(invoke_without_command=True)

CLOCK_ADVANCED = "clock-advanced"

LIST = console.Layout(
    columns=("NUMBER", "AT", "WHAT", "ON", "EVENT", "ORDER", "BY", "WHY"),
    wraps=("WHY",),
    spare=("NUMBER", "BY", "ORDER", "EVENT"),
)

Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Only records of this kind, as event-started; repeat it.",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="NUMBER|TIME",
        help="Only records after this number, or from this time on, as 2026-01-31T12:00:00Z.",
    ),
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
    kind: Kinds = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from this time on, as 2026-01-31T12:00:00Z.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.", min=1, max=1000)] = 50,
    server: Server = None,
    token: Token = None,
    project: Project = None,
    json: Json = None,
) -> None:
    """Show what happened, newest first; `export` writes all of it."""
    remember(ctx, server=server, token=token, project=project, json=json)
    if ctx.invoked_subcommand is None:
        given = {"machine": machine, "event": event, "order": order, "kind": kind, "since": since}
        _listed(limit=limit, ctx=ctx, server=None, token=None, project=None, json=None, **given)


@app.command()
@with_session
def export(
    session: Session,
    output: Output = None,
    format_: Format = None,
    kind: Kinds = None,
    since: Since = None,
    resume: Resume = False,
) -> None:
    """Write all records, oldest first, as lines of JSON or as CSV."""
    from forewarn.cli.history_export import export as run

    file = None if output is None or str(output) == "-" else output
    if resume and file is None:
        raise typer.BadParameter("needs a file: give --output too", param_hint="--resume")
    form = format_ or ("csv" if file is not None and file.suffix == ".csv" else "jsonl")
    above = int(since) if since and _is_number(since) else 0
    wanted = {**session.scope, "kind": kind, "since": None if since and _is_number(since) else since}
    run(session, file, form, above=above, wanted=wanted, resume=resume)


def _is_number(text: str) -> bool:
    """Tell the number of a record from a time, which is never all digits."""
    return text.isascii() and text.isdigit()


@with_session
def _listed(
    session: Session,
    machine: str | None,
    event: str | None,
    order: str | None,
    kind: list[str] | None,
    since: str | None,
    limit: int,
) -> None:
    if since and _is_number(since):
        raise typer.BadParameter(
            f"expected a time such as 2026-01-31T12:00:00Z, got {since!r}: a record's number is what "
            "`history export --since` takes",
            param_hint="--since",
        )
    wanted = {
        **session.scope,
        "machine": machine,
        "event": whole_id(session.client, "events", event) if event else None,
        "order": whole_id(session.client, "orders", order) if order else None,
        "kind": kind,
        "since": since,
    }
    answer = session.client.get("/v1/history", **wanted, limit=limit)
    session.answer(answer, lambda: _show(session, answer, wanted, limit=limit))


def _show(session: Session, answer: dict[str, Any], wanted: dict[str, Any], *, limit: int) -> None:
    """Show as many lines as are wanted; many turns of the clock in a row are one."""
    lines, after = folded(answer["records"]), answer["next"]
    while len(lines) < limit and after is not None:
        page = session.client.get("/v1/history", **wanted, limit=PAGE, after=after)
        lines, after = folded([*lines, *page["records"]]), page["next"]
    rows = (_row(each) for each in lines[:limit])
    console.table(LIST, rows, empty="Nothing has happened.")


def folded(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make one of turns of the clock in a row by the same person: a rehearsal turns it every moment.

    The newest of them is kept, with the moment from which on it was turned, and how often.
    """
    lines: list[dict[str, Any]] = []
    for record in records:
        newer = lines[-1] if lines else None
        if newer is None or not _is_same_turning(newer, record):
            lines.append(record)
            continue
        times = newer.get("turns", 1) + record.get("turns", 1)
        last = newer.get("last", newer["reason"])
        said = f"{times} times from {words.at(record['at'])} on, the last {last}"
        lines[-1] = {**newer, "turns": times, "last": last, "reason": said}
    return lines


def _is_same_turning(newer: dict[str, Any], record: dict[str, Any]) -> bool:
    return {newer["kind"], record["kind"]} == {CLOCK_ADVANCED} and newer["by"] == record["by"]


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
