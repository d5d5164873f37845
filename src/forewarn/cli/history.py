"""`forewarn history`: what happened."""

from typing import Annotated, Any

import typer

from forewarn.cli import console, words
from forewarn.cli.find import whole_id
from forewarn.cli.session import Session, with_session

LIST = console.Layout(
    columns=("NUMBER", "AT", "WHAT", "ON", "EVENT", "ORDER", "BY", "WHY"),
    wraps=("WHY",),
    spare=("NUMBER", "BY", "ORDER", "EVENT"),
)


@with_session
def history(
    session: Session,
    machine: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this machine.")] = None,
    event: Annotated[str | None, typer.Option(metavar="ID", help="Only of this event.")] = None,
    order: Annotated[str | None, typer.Option(metavar="ID", help="Only of this order.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="As 2026-01-31T12:00:00Z.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many at most.", min=1, max=1000)] = 50,
) -> None:
    """Show what happened, newest first."""
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
