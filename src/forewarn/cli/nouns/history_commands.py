"""`forewarn history`: what happened; and all of it, as a file."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from forewarn.cli import formatting
from forewarn.cli.command_group import CommandGroup
from forewarn.cli.id_lookup import full_id
from forewarn.cli.options.body_options import with_body
from forewarn.cli.options.completion import ids, names
from forewarn.cli.options.shared_options import OfHost, OfMachine
from forewarn.cli.session import Session, with_session
from forewarn.cli.views import history_lines
from forewarn.client.replies import PAGE
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.record_answers import RecordsAnswer

app = CommandGroup(invoke_without_command=True)

OfEvent = Annotated[
    str | None,
    typer.Option("--event", metavar="ID", help="Only of this event.", autocompletion=ids("events")),
]
OfOrder = Annotated[
    str | None,
    typer.Option("--order", metavar="ID", help="Only of this order.", autocompletion=ids("orders")),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Only records of this kind, as event-started; repeat it."),
]
Text = Annotated[
    str | None,
    typer.Option("--text", metavar="TEXT", help="Only with this text, in any case, somewhere in the record."),
]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Only what this person, guest or service did.")
]
OfGroup = Annotated[
    str | None,
    typer.Option("--group", metavar="GROUP", help="Only of this group.", autocompletion=names("groups")),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only from before this time.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="NUMBER|TIME",
        help="Only records after this number, or from this time on, as 2026-01-31T12:00:00Z.",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Left out, or -: to standard output.")
]
Format = Annotated[
    Literal["jsonl", "csv"] | None,
    typer.Option("--format", help="Left out: by the name of the file, else jsonl."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on after the last record in the file, if there is one.")
]


def _filters(
    machine: OfMachine = None,
    event: OfEvent = None,
    order: OfOrder = None,
    group: OfGroup = None,
    host: OfHost = None,
    by: By = None,
    text: Text = None,
    kind: Kinds = None,
    until: Until = None,
) -> dict[str, Any]:
    return dict(locals())


with_filters = with_body(_filters, inspect.signature(_filters).parameters.values())


@app.callback()
@with_session
@with_filters
def history(
    session: Session,
    ctx: typer.Context,
    body: dict[str, Any],
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from this time on, as 2026-01-31T12:00:00Z.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.", min=1, max=1000)] = 50,
) -> None:
    """Show what happened, newest first; `export` writes all of it."""
    if ctx.invoked_subcommand is not None:
        return
    if since and _is_number(since):
        raise typer.BadParameter(
            f"expected a time such as 2026-01-31T12:00:00Z, got {since!r}: a record's number is what "
            "`history export --since` takes",
            param_hint="--since",
        )
    wanted = _wanted(session, body, since=since)
    reply = session.client.get("/v1/history", RecordsAnswer, **wanted, limit=limit)
    session.print_reply(reply, lambda page: _show(session, page, wanted, limit=limit))


@app.command()
@with_session
@with_filters
def export(
    session: Session,
    body: dict[str, Any],
    output: Output = None,
    format_: Format = None,
    since: Since = None,
    resume: Resume = False,
) -> None:
    """Write all records, oldest first, as lines of JSON or as CSV."""
    from forewarn.cli.views.history_export import export as run

    file = None if output is None or str(output) == "-" else output
    if resume and file is None:
        raise typer.BadParameter("needs a file: give --output too", param_hint="--resume")
    form = format_ or ("csv" if file is not None and file.suffix == ".csv" else "jsonl")
    above = int(since) if since and _is_number(since) else 0
    wanted = _wanted(session, body, since=None if since and _is_number(since) else since)
    run(session, file, form, above=above, wanted=wanted, resume=resume)


def _wanted(session: Session, filters: dict[str, Any], *, since: str | None) -> dict[str, Any]:
    """Return which records are asked for; ids may be shortened."""
    event, order = filters["event"], filters["order"]
    return {
        **session.scope,
        **filters,
        "event": full_id(session.client, EventAnswer, event) if event else None,
        "order": full_id(session.client, OrderAnswer, order) if order else None,
        "since": since,
    }


def _is_number(text: str) -> bool:
    """Return whether a text is the number of a record; a time is never all digits."""
    return text.isascii() and text.isdigit()


def _show(session: Session, page: RecordsAnswer, wanted: dict[str, Any], *, limit: int) -> None:
    """Show as many lines as are wanted; many turns of the clock in a row are one."""
    lines = history_lines.folded(page.records)
    while len(lines) < limit and page.next is not None:
        more = session.client.get("/v1/history", RecordsAnswer, **wanted, limit=PAGE, after=page.next)
        page = more.value
        lines = history_lines.folded(page.records, lines)
    none = formatting.none_found("records", history_lines.LIST.empty, **wanted)
    replace(history_lines.LIST, empty=none).print(lines[:limit])
