"""What is printed after an order: what was done, and what can be done next."""

from typing import Any

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.wire.guid import is_guid

PROMISE_BROKEN = "promise-broken"


def show_order_on_machine(session: Session, answer: dict[str, Any]) -> None:
    """Print an order on one machine."""
    order, event = answer["order"], answer["event"]
    # A stage without an event counts as announced; to a person it waits for its machine.
    waits = event is None and bool(order["waiting"])
    progress = "waiting" if waits and order["state"] == "announced" else _progress(order)
    terminal.echo(f"{order['machine']}: {order['action']} ordered, {progress}.")
    if event is None:
        if waits:
            show_waiting(order)
        show_no_event(answer)
        _next(session, follow=order)
    else:
        now = session.client.get("/v1/clock")["now"]
        terminal.echo(f"  {_announcement(event, now)}")
        _next(session, event=event, follow=order)


def show_no_event(answer: dict[str, Any]) -> None:
    """Print why an order on one machine has no event, if it has none."""
    if answer["event"] is None and answer["reason"] and not answer["order"]["waiting"]:
        terminal.echo(f"  No event: {answer['reason']}.")


def show_order_on_host(session: Session, answer: dict[str, Any]) -> None:
    """Print an order on a host."""
    order, events = answer["order"], answer["events"]
    what = f"{order['action']} ({order['work']})" if order["action"] == "maintenance" else order["action"]
    terminal.echo(f"{order['host']}: {what} ordered, {_progress(order)}.")
    now = session.client.get("/v1/clock")["now"] if events else ""
    for event in events:
        terminal.echo(f"  {_announcement(event, now)}")
    if not events:
        show_waiting(order)
    _show_broken_promises(session, order)
    if order["ended_at"] is None:
        _next(session, event=events[0] if len(events) == 1 else None, follow=order)


def show_waiting(order: dict[str, Any]) -> None:
    """Print what an order waits for."""
    for waiting in order["waiting"]:
        terminal.echo(f"  {_what(waiting['what'])}: {waiting['reason']}")


def show_still_degraded(session: Session, order: dict[str, Any]) -> None:
    """Print that a host stays degraded after its order was cancelled."""
    if order["action"] != "degrade":
        return
    host = session.client.get(f"/v1/hosts/{order['host']}")["host"]
    if host["state"] == "degraded":
        terminal.echo(f"  {host['name']} stays degraded, and takes no machines.")
        terminal.echo(f"  It is sound after all:  {session.command('host restore ' + host['name'])}")


def _show_broken_promises(session: Session, order: dict[str, Any]) -> None:
    """Print which promises an emergency breaks; the history has them too."""
    if order["emergency"] is None:
        return
    broken = session.client.get("/v1/history", order=order["id"], kind=[PROMISE_BROKEN])["records"]
    for why in sorted({record["reason"] for record in broken}):
        terminal.echo(f"  A promise is broken: {why}. The history says so.")


def _progress(order: dict[str, Any]) -> str:
    match order["state"]:
        case "queued":
            return "not announced yet"
        case "announced":
            return "announced"
        case "started":
            return "under way"
        case state:
            return str(state)


def _announcement(event: dict[str, Any], now: str) -> str:
    told = (
        f"Event {terminal.short(event['id'])} tells {formatting.listing(event['resources'])}: {event['type']}"
    )
    if event["status"] == "Started":
        return f"{told}, started."
    not_before = event["not_before"]
    return f"{told} {formatting.countdown(not_before, now)} (not before {formatting.at(not_before)})."


def _what(text: str) -> str:
    """Shorten what waits if it is an event."""
    return f"event {terminal.short(text)}" if is_guid(text) else text


def _next(session: Session, *, follow: dict[str, Any], event: dict[str, Any] | None = None) -> None:
    if event is not None and event["status"] == "Scheduled":
        id_ = terminal.short(event["id"])
        terminal.echo(f"  Let it start now:  {session.command(f'event approve {id_}')}")
        terminal.echo(f"  Call it off:       {session.command(f'event cancel {id_}')}")
    order = terminal.short(follow["id"])
    terminal.echo(f"  Follow it:         {session.command(f'order show {order}')}")
