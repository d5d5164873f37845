"""`forewarn history`: what happened; and all of it, as a file."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from forewarn.cli import formatting
from forewarn.cli.command_group import PATH, flag, option
from forewarn.cli.completion import ids, names
from forewarn.cli.options import OF_HOST, OF_MACHINE, full_id
from forewarn.cli.session import EVERYWHERE, Noun, Session
from forewarn.cli.views.history_view import LIST, folded
from forewarn.client.replies import PAGE
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.record_answers import RecordsAnswer

OF_EVENT = option("--event", "ID", "Only of this event.", shell_complete=ids("events"))
OF_ORDER = option("--order", "ID", "Only of this order.", shell_complete=ids("orders"))
KINDS = option("--kind", "KIND", "Only records of this kind, as event-started; repeat it.", multiple=True)
TEXT = option("--text", "TEXT", "Only with this text, in any case, somewhere in the record.")
BY = option("--by", "NAME", "Only what this person, guest or service did.")
OF_GROUP = option("--group", "GROUP", "Only of this group.", shell_complete=names("groups"))
UNTIL = option("--until", "TIME", "Only from before this time.")
SINCE = option(
    "--since", "NUMBER|TIME", "Only records after this number, or from this time on, as 2026-01-31T12:00:00Z."
)
OUTPUT = option("--output -o", "FILE", "Left out, or -: to standard output.", type=PATH)
FORMAT = option(
    "--format format_",
    None,
    "Left out: by the name of the file, else jsonl.",
    type=click.Choice(["jsonl", "csv"]),
)
RESUME = flag("--resume", "Go on after the last record in the file, if there is one.")


FILTERS = (OF_MACHINE, OF_EVENT, OF_ORDER, OF_GROUP, OF_HOST, BY, TEXT, KINDS, UNTIL)


def history(session: Session, since: str | None, limit: int, **filters: Any) -> None:
    """Show what happened, newest first; `export` writes all of it."""
    if since and _is_number(since):
        raise click.BadParameter(
            f"expected a time such as 2026-01-31T12:00:00Z, got {since!r}: a record's number is what "
            "`history export --since` takes",
            param_hint="--since",
        )
    wanted = _wanted(session, filters, since=since)
    reply = session.client.get("/v1/history", RecordsAnswer, **wanted, limit=limit)
    session.print_reply(reply, lambda page: _show(session, page, wanted, limit=limit))


app = Noun(
    [
        *FILTERS,
        option("--since", "TIME", "Only from this time on, as 2026-01-31T12:00:00Z."),
        option("--limit", "N", "How many at most.", type=click.IntRange(min=1, max=1000), default=50),
        *EVERYWHERE,
    ],
    alone=history,
    no_args_is_help=False,
)


@app.verb(*FILTERS, OUTPUT, FORMAT, SINCE, RESUME)
def export(
    session: Session,
    output: Path | None,
    format_: Literal["jsonl", "csv"] | None,
    since: str | None,
    resume: bool,
    **filters: Any,
) -> None:
    """Write all records, oldest first, as lines of JSON or as CSV."""
    from forewarn.cli.views.history_view import export as run

    file = None if output is None or str(output) == "-" else output
    if resume and file is None:
        raise click.BadParameter("needs a file: give --output too", param_hint="--resume")
    form = format_ or ("csv" if file is not None and file.suffix == ".csv" else "jsonl")
    above = int(since) if since and _is_number(since) else 0
    wanted = _wanted(session, filters, since=None if since and _is_number(since) else since)
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
    lines = folded(page.records)
    while len(lines) < limit and page.next is not None:
        more = session.client.get("/v1/history", RecordsAnswer, **wanted, limit=PAGE, after=page.next)
        page = more.value
        lines = folded(page.records, lines)
    none = formatting.none_found("records", LIST.empty, **wanted)
    replace(LIST, empty=none).print(lines[:limit])
