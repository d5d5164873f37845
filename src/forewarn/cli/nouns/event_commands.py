"""`forewarn event`: show what is announced to guests, and approve or cancel it."""

from collections.abc import Callable, Sequence
from datetime import datetime

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import flag, option
from forewarn.cli.options import OF_HOST, OF_MACHINE, id_argument, path_by_id
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.order_view import machines_of, name_order, show_still_degraded
from forewarn.cli.views.questions import YES, ask_before_cancelling
from forewarn.core.basic_types import HINTS, EventStatus, Source
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.event_answers import (
    ApprovalAnswer,
    DeferralAnswer,
    EventAnswer,
    ListedEventAnswer,
    MachineNoticeAnswer,
    EventDetailAnswer,
    PostponementAnswer,
)
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.record_answers import RecordsAnswer

app = Noun()

ID = id_argument("EVENT")
ALL = flag("--all past", "Past ones too, newest first.")
SINCE = option("--since", "TIME", "Only those that were not over by then; as 2026-01-31T12:00:00Z.")
UNTIL = option("--until", "TIME", "Only those that were announced before.")
NOTICES = flag("--notices", "With what notice the machines of each got that has started.")


@app.verb(ALL, OF_MACHINE, OF_HOST, SINCE, UNTIL, NOTICES)
def list_(
    session: Session,
    past: bool,
    machine: str | None,
    host: str | None,
    since: str | None,
    until: str | None,
    notices: bool,
) -> None:
    """List current events."""
    wanted = {"machine": machine, "host": host, "since": since, "until": until, **session.scope}
    reply = session.client.all(ListedEventAnswer, **wanted, all=past or None, notices=notices or None)
    none = "No events: nothing was ever announced." if past else "No events: nothing is announced."
    empty = formatting.none_found("events", none, **wanted)
    session.print_reply(
        reply, lambda page: _show_list(session, page.items, past=past, notices=notices, empty=empty)
    )


@app.verb(ID)
def show(session: Session, id_: str) -> None:
    """Show an event, current or over."""
    reply = session.client.get(path_by_id(session.client, EventAnswer, id_), EventDetailAnswer)
    session.print_reply(reply, lambda event: _show(session, event))


@app.verb(ID)
def approve(session: Session, id_: str) -> None:
    """Let an event start now."""
    reply = session.client.post(f"{path_by_id(session.client, EventAnswer, id_)}/approve", EventAnswer)
    session.print_reply(reply, lambda event: _show_approved(session, event))


@app.verb(ID, YES)
def cancel(session: Session, id_: str, yes: bool) -> None:
    """Cancel the order of an event, with all its events."""
    path = path_by_id(session.client, EventAnswer, id_)
    event = session.client.get(path, EventDetailAnswer).value
    order = session.order(event.order)
    if (
        event.status is EventStatus.SCHEDULED and event.ended_at is None
    ):  # else it is too late, whatever the answer
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
            "AWAITS": lambda event: event.awaits,
            "SOURCE": lambda event: event.source,
        },
        wraps=("MACHINES", "STARTS", "NOTICE", "APPROVED BY", "AWAITS", "WHY"),
        spare=("SOURCE", "UD", "GROUP", "APPROVED BY", "AWAITS"),
        spare_if_same=("PROJECT",),
        empty=empty,
    )
    table.print(events)


def _status(event: ListedEventAnswer) -> str:
    said = event.status if event.ended_at is None else "over"
    return f"{said}, simulated" if event.simulated else said


def _starts(event: EventAnswer, now: datetime) -> str | None:
    never = event.ended_at is not None and event.started_at is None
    return None if never else formatting.starts(event, now)


def _show(session: Session, event: EventDetailAnswer) -> None:
    terminal.details(
        [
            ("event", event.id),
            ("type", event.type),
            ("status", event.status if event.ended_at is None else f"over: {event.why}"),
            *([("done by", f"nobody ({formatting.SIMULATED_MARK})")] if event.simulated else []),
            ("machines", event.resources),
            ("project", event.project),
            ("group", event.group),
            ("update domain", event.update_domain),
            ("announced", event.announced_at),
            ("armed", event.armed_at or (None if event.ended_at or event.type in HINTS else "not yet")),
            ("not before", event.not_before),
            ("starts", _starts(event, session.now())),
            *([("waits", reason)] if (reason := _why_it_waits(session, event)) else []),
            ("ended", event.ended_at),
            ("source", event.source),
            ("description", event.description),
            (
                "lasts",
                format_span_briefly(event.duration_seconds) if event.duration_seconds >= 0 else "unknown",
            ),
            ("lasted", formatting.measured(event.impact_seconds)),
            ("approved by", [_approval(each) for each in event.approvals]),
            ("approval", f"{event.approval}; awaits {event.awaits}" if event.awaits else event.approval),
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
        terminal.echo("\n  never: none of its polls, if it polled at all, was answered with this event in it")


def _approval(approval: ApprovalAnswer) -> str:
    where = f" from {approval.address}" if approval.address else ""
    return f"{approval.by} ({approval.kind}) at {formatting.utc(approval.at)}{where}"


def _why_it_waits(session: Session, event: EventAnswer) -> str:
    """Return why an approved event has not started, as its order says; "" if it does not say."""
    if not event.approved or event.status is not EventStatus.SCHEDULED or event.ended_at is not None:
        return ""
    order = session.order(event.order)
    return next((wait.reason for wait in order.waiting if wait.what == event.id), "")


def _deferred_by(session: Session, event: EventAnswer) -> list[tuple[str, object]]:
    """Return who deferred an event; one that moved with another of its stage has only records of it."""
    if event.deferred:
        return [("put off by", _deferral(event.deferred))]
    asked = session.client.get("/v1/history", RecordsAnswer, event=event.id, kind=["event-deferred"])
    return [
        ("put off with", f"another event by {each.by} at {formatting.utc(each.at)}, {each.reason}")
        for each in reversed(asked.value.records)
    ]


def _deferral(deferred: DeferralAnswer) -> str:
    said = f"{deferred.by} at {formatting.utc(deferred.at)}, until {formatting.utc(deferred.until)}"
    asked, granted = map(format_span_briefly, (deferred.asked_seconds, deferred.granted_seconds))
    return f"{said}: asked for {asked}, granted {granted}"


def _postponement(postponed: PostponementAnswer) -> str:
    since, at = formatting.utc(postponed.since), formatting.utc(postponed.at)
    return f"from {since}, at {at}: {postponed.reason}"


def _show_approved(session: Session, event: EventAnswer) -> None:
    short = terminal.short(event.id)
    if event.status == "Started":
        terminal.echo(f"Event {short} is approved and has started.")
    elif event.type in HINTS:
        terminal.echo(f"Event {short} only recommends something: there is nothing to approve.")
    elif reason := _why_it_waits(session, event):
        terminal.fold(f"Event {short} is {reason}.")
    else:
        terminal.echo(f"Event {short} is approved; it starts when the rest of its stage may.")
    # Who has no part in the order of a host finds it by its whole id alone.
    order = event.order if event.source is Source.PLATFORM else terminal.short(event.order)
    terminal.echo(f"  Follow it:  {session.command(f'order show {order}')}")


def _show_cancelled(session: Session, event: EventAnswer, order: OrderAnswer) -> None:
    machines = machines_of(order)
    others = f", for {formatting.listing(machines)}" if len(machines) > 1 else ""
    short = terminal.short(event.id)
    terminal.fold(f"Event {short} is cancelled, with its order: {name_order(order)}{others}.")
    if event.source is Source.PLATFORM:
        show_still_degraded(session, order)
