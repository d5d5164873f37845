"""`forewarn event`: show what guests are being told, and approve or cancel it."""

from typing import Annotated, Any

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import full_id
from forewarn.cli.options.shared_options import id_argument
from forewarn.cli.session import Session, noun, with_session
from forewarn.cli.views.order_view import show_still_degraded
from forewarn.core.moments import format_span_briefly

app = noun("Show what guests are being told; approve or cancel it.")

Id = Annotated[str, id_argument("EVENT")]

LIST = terminal.TableLayout(
    columns=(
        "EVENT",
        "TYPE",
        "STATUS",
        "MACHINES",
        "STARTS",
        "GROUP",
        "UD",
        "APPROVED BY",
        "AWAITS",
        "SOURCE",
    ),
    wraps=("MACHINES", "APPROVED BY", "AWAITS"),
    spare=("SOURCE", "UD", "GROUP"),
)
NOTICES = terminal.TableLayout(columns=("MACHINE", "FIRST SENT", "NOTICE", "LATE"))


@app.command("list")
@with_session
def list_(session: Session) -> None:
    """List current events."""
    answer = session.client.all("events", **session.scope)
    session.print_answer(answer, lambda: _show_list(session, answer["events"]))


@app.command()
@with_session
def show(session: Session, id_: Id) -> None:
    """Show an event, current or over."""
    answer = session.client.get(f"/v1/events/{full_id(session.client, 'events', id_)}")
    session.print_answer(answer, lambda: _show(session, answer["event"]))


@app.command()
@with_session
def approve(session: Session, id_: Id) -> None:
    """Let an event start now."""
    answer = session.client.post(f"/v1/events/{full_id(session.client, 'events', id_)}/approve")
    session.print_answer(answer, lambda: _show_approved(session, answer["event"]))


@app.command()
@with_session
def cancel(session: Session, id_: Id) -> None:
    """Cancel the order of an event, with all its events."""
    answer = session.client.post(f"/v1/events/{full_id(session.client, 'events', id_)}/cancel")
    event = answer["event"]
    said = f"Event {terminal.short(event['id'])} is called off, with its order."
    session.print_answer(answer, lambda: terminal.echo(said))
    if not session.json and event["source"] == "Platform":
        show_still_degraded(session, session.client.get(f"/v1/orders/{event['order']}")["order"])


def _show_list(session: Session, events: list[dict[str, Any]]) -> None:
    now = session.client.get("/v1/clock")["now"] if events else ""
    rows = (
        (
            terminal.short(event["id"]),
            event["type"],
            event["status"],
            event["resources"],
            formatting.starts(event, now),
            event["group"],
            event["update_domain"],
            [approval["by"] for approval in event["approvals"]],
            event["awaits"],
            event["source"],
        )
        for event in events
    )
    terminal.table(LIST, rows, empty="No events: guests are told nothing.")


def _show(session: Session, event: dict[str, Any]) -> None:
    now = session.client.get("/v1/clock")["now"]
    terminal.details(
        [
            ("event", event["id"]),
            ("type", event["type"]),
            ("status", event["status"] if event["ended_at"] is None else f"over: {event['why']}"),
            ("machines", event["resources"]),
            ("group", event["group"]),
            ("update domain", event["update_domain"]),
            ("announced", formatting.at(event["announced_at"])),
            ("not before", formatting.at(event["not_before"])),
            ("starts", formatting.starts(event, now) if event["ended_at"] is None else None),
            ("ended", formatting.at(event["ended_at"])),
            ("source", event["source"]),
            ("description", event["description"]),
            (
                "lasts",
                format_span_briefly(event["duration_seconds"])
                if event["duration_seconds"] >= 0
                else "unknown",
            ),
            ("lasted", formatting.span_or_none(event["impact_seconds"])),
            ("approved by", [_approval(each) for each in event["approvals"]]),
            (
                "approval",
                f"{event['approval']}; awaits {event['awaits']}" if event["awaits"] else event["approval"],
            ),
            *_deferred_by(session, event),
            ("order", event["order"]),
        ]
    )
    terminal.echo()
    pending = event["started_at"] is None and event["ended_at"] is None
    terminal.table(NOTICES, (_notice(each, pending=pending) for each in event["notices"]), empty="")
    if not pending and any(told["sent_at"] is None for told in event["notices"]):
        terminal.echo("\n  never: none of its polls, if it polled at all, was answered with this event in it")


def _notice(told: dict[str, Any], *, pending: bool) -> tuple[object, ...]:
    sent = formatting.at(told["sent_at"]) or ("not yet" if pending else "never")
    return (told["machine"], sent, formatting.span_or_none(told["notice_seconds"]), told["late"])


def _approval(approval: dict[str, Any]) -> str:
    where = f" from {approval['address']}" if approval["address"] else ""
    return f"{approval['by']} ({approval['kind']}) at {formatting.at(approval['at'])}{where}"


def _deferred_by(session: Session, event: dict[str, Any]) -> list[tuple[str, object]]:
    """Return who deferred an event; one that moved with another of its stage has only records of it."""
    if event["deferred"]:
        return [("put off by", _deferral(event["deferred"]))]
    moved = session.client.get("/v1/history", event=event["id"], kind=["event-deferred"])["records"]
    return [
        ("put off with", f"another event by {each['by']} at {formatting.at(each['at'])}, {each['reason']}")
        for each in reversed(moved)
    ]


def _deferral(deferred: dict[str, Any]) -> str:
    said = f"{deferred['by']} at {formatting.at(deferred['at'])}, until {formatting.at(deferred['until'])}"
    asked, granted = deferred["asked_seconds"], deferred["granted_seconds"]
    if asked is None or granted is None:
        return said
    return f"{said}: asked for {format_span_briefly(asked)}, granted {format_span_briefly(granted)}"


def _show_approved(session: Session, event: dict[str, Any]) -> None:
    short = terminal.short(event["id"])
    if event["status"] == "Started":
        terminal.echo(f"Event {short} is approved and has started.")
    else:
        terminal.echo(f"Event {short} is approved; it starts when the rest of its stage may.")
    order = terminal.short(event["order"])
    terminal.echo(f"  Follow it:  {session.command(f'order show {order}')}")
