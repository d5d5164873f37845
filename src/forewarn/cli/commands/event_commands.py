"""`forewarn event`: show the events that guests see; approve or cancel them."""

from collections.abc import Callable, Sequence
from datetime import datetime

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import flag, option
from forewarn.cli.options import OF_HOST, OF_MACHINE, id_argument, path_by_id
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.confirmation import YES, ask_before_cancelling
from forewarn.cli.views.order_view import machines_of, name_order, show_still_degraded
from forewarn.core.basic_types import HINTS, EventStatus, Source
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.event_answers import (
    ApprovalAnswer,
    DeferralAnswer,
    EventAnswer,
    EventDetailAnswer,
    ListedEventAnswer,
    MachineNoticeAnswer,
    PostponementAnswer,
)
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.record_answers import RecordsAnswer

app = Noun()

ID = id_argument("EVENT")
ALL = flag("--all past", "Include past events, newest first.")
SINCE = option(
    "--since", "TIME", "Only events that were not over at this time, such as 2026-01-31T12:00:00Z."
)
UNTIL = option("--until", "TIME", "Only events that were announced before this time.")
NOTICES = flag("--notices", "Show the notice that machines got of each started event.")


@app.verb(ALL, OF_MACHINE, OF_HOST, SINCE, UNTIL, NOTICES)
def list_(session: Session, past: bool, notices: bool, **typed: str | None) -> None:
    """List current events."""
    wanted = {**typed, **session.scope}
    reply = session.client.all(ListedEventAnswer, **wanted, all=past or None, notices=notices or None)
    none = "No events were ever announced." if past else "No events are announced."
    empty = formatting.none_found("events", none, **wanted)
    session.print_reply(
        reply, lambda page: _show_list(session, page.items, past=past, notices=notices, empty=empty)
    )


@app.verb(ID)
def show(session: Session, id_: str) -> None:
    """Show an event, current or past."""
    reply = session.client.get(path_by_id(session.client, EventAnswer, id_), EventDetailAnswer)
    session.print_reply(reply, lambda event: _show(session, event))


@app.verb(ID)
def approve(session: Session, id_: str) -> None:
    """Approve an event: it may start now."""
    reply = session.client.post(f"{path_by_id(session.client, EventAnswer, id_)}/approve", EventAnswer)
    session.print_reply(reply, lambda event: _show_approved(session, event))


@app.verb(ID, YES)
def cancel(session: Session, id_: str, yes: bool) -> None:
    """Cancel the order of an event, with all its events."""
    path = path_by_id(session.client, EventAnswer, id_)
    event = session.client.get(path, EventDetailAnswer).value
    order = session.order(event.order)
    if event.status is EventStatus.SCHEDULED and event.ended_at is None:  # otherwise the server refuses
        ask_before_cancelling(order, yes=yes)
    reply = session.client.post(f"{path}/cancel", EventAnswer)
    session.print_reply(reply, lambda cancelled: _show_cancelled(session, cancelled, order))


def _show_list(
    session: Session, events: Sequence[ListedEventAnswer], *, past: bool, notices: bool, empty: str
) -> None:
    now = session.now()
    table = terminal.ItemTable[ListedEventAnswer](
        columns={
            "EVENT": lambda event: terminal.short(event.id),
            "TYPE": lambda event: event.type,
            "STATUS": _status,
            "PROJECT": lambda event: event.project,
            "MACHINES": lambda event: event.resources,
            "STARTS": lambda event: _starts(event, now),
            **({"NOTICE": lambda event: event.notice and formatting.notice(event.notice)} if notices else {}),
            **({"ENDED": lambda event: event.ended_at, "WHY": lambda event: event.why} if past else {}),
            "GROUP": lambda event: event.group,
            "UD": lambda event: event.update_domain,
            "APPROVED BY": lambda event: [approval.by for approval in event.approvals],
            "WAITS FOR": lambda event: event.awaits,
            "SOURCE": lambda event: event.source,
        },
        wraps=("MACHINES", "STARTS", "NOTICE", "APPROVED BY", "WAITS FOR", "WHY"),
        spare=("SOURCE", "UD", "GROUP", "APPROVED BY", "WAITS FOR"),
        spare_if_same=("PROJECT",),
        empty=empty,
    )
    table.print(events)


def _status(event: ListedEventAnswer) -> str:
    status = event.status if event.ended_at is None else "over"
    return f"{status}, simulated" if event.simulated else status


def _starts(event: EventAnswer, now: datetime) -> str | None:
    never = event.ended_at is not None and event.started_at is None
    return None if never else formatting.starts(event, now)


def _show(session: Session, event: EventDetailAnswer) -> None:
    terminal.details(
        [
            ("event", event.id),
            ("type", event.type),
            ("status", event.status if event.ended_at is None else f"over: {event.why}"),
            *([("done by", formatting.SIMULATED_MARK)] if event.simulated else []),
            ("machines", event.resources),
            ("project", event.project),
            ("group", event.group),
            ("update domain", event.update_domain),
            ("announced", event.announced_at),
            ("armed", event.armed_at or (None if event.ended_at or event.type in HINTS else "not yet")),
            ("not before", event.not_before),
            ("starts", _starts(event, session.now())),
            *([("waiting for", reason)] if (reason := _why_it_waits(session, event)) else []),
            ("ended", event.ended_at),
            ("source", event.source),
            ("description", event.description),
            (
                "expected impact",
                format_span_briefly(event.duration_seconds) if event.duration_seconds >= 0 else "unknown",
            ),
            ("measured impact", formatting.measured(event.impact_seconds)),
            ("approved by", [_approval(each) for each in event.approvals]),
            ("approval", f"{event.approval}; waiting for {event.awaits}" if event.awaits else event.approval),
            *_deferred_by(session, event),
            *([("postponed", _postponement(event.postponed))] if event.postponed else []),
            ("order", event.order),
        ]
    )
    terminal.echo()
    pending = event.ended_at is None
    columns: dict[str, Callable[[MachineNoticeAnswer], object]] = {
        "MACHINE": lambda given: given.machine,
        "FIRST SENT": lambda given: given.sent_at or ("not yet" if pending else "never"),
        "NOTICE": lambda given: formatting.span_or_none(given.notice_seconds),
        "LATE": lambda given: given.late,
    }
    if any(given.away_seconds is not None for given in event.notices):
        columns["AWAY"] = lambda given: formatting.measured(given.away_seconds)
    terminal.ItemTable[MachineNoticeAnswer](columns=columns).print(event.notices)
    if not pending and any(given.sent_at is None for given in event.notices):
        terminal.echo("\n  never: no poll of this machine returned the event")


def _approval(approval: ApprovalAnswer) -> str:
    where = f" from {approval.address}" if approval.address else ""
    return f"{approval.by} ({approval.kind}) at {formatting.utc(approval.at)}{where}"


def _why_it_waits(session: Session, event: EventAnswer) -> str:
    """Return the reason why an approved event has not started; "" if the order gives none."""
    if not event.approved or event.status is not EventStatus.SCHEDULED or event.ended_at is not None:
        return ""
    order = session.order(event.order)
    return next((wait.reason for wait in order.waiting if wait.what == event.id), "")


def _deferred_by(session: Session, event: EventAnswer) -> list[tuple[str, object]]:
    """Return who deferred an event. If it moved with another event of its stage, only the history says so."""
    if event.deferred:
        return [("deferred by", _deferral(event.deferred))]
    asked = session.client.get("/v1/history", RecordsAnswer, event=event.id, kind=["event-deferred"])
    return [
        ("deferred with", f"another event by {each.by} at {formatting.utc(each.at)}, {each.reason}")
        for each in reversed(asked.value.records)
    ]


def _deferral(deferred: DeferralAnswer) -> str:
    when = f"{deferred.by} at {formatting.utc(deferred.at)}, until {formatting.utc(deferred.until)}"
    asked, granted = map(format_span_briefly, (deferred.asked_seconds, deferred.granted_seconds))
    return f"{when}: asked for {asked}, granted {granted}"


def _postponement(postponed: PostponementAnswer) -> str:
    since, at = formatting.utc(postponed.since), formatting.utc(postponed.at)
    return f"from {since}, at {at}: {postponed.reason}"


def _show_approved(session: Session, event: EventAnswer) -> None:
    short = terminal.short(event.id)
    if event.status == "Started":
        terminal.echo(f"Event {short} is approved and has started.")
    elif event.type in HINTS:
        terminal.echo(f"Event {short} is a recommendation; it needs no approval.")
    elif reason := _why_it_waits(session, event):
        terminal.echo_wrapped(f"Event {short} is {reason}.")
    else:
        terminal.echo(f"Event {short} is approved; it starts with the rest of its stage.")
    # A caller who cannot list the orders of hosts needs the whole id.
    order = event.order if event.source is Source.PLATFORM else terminal.short(event.order)
    terminal.echo_steps({"Follow": session.command(f"order show {order}")})


def _show_cancelled(session: Session, event: EventAnswer, order: OrderAnswer) -> None:
    machines = machines_of(order)
    others = f", for {formatting.listing(machines)}" if len(machines) > 1 else ""
    short = terminal.short(event.id)
    terminal.echo_wrapped(f"Event {short} is cancelled, with its order: {name_order(order)}{others}.")
    if event.source is Source.PLATFORM:
        show_still_degraded(session, order)
