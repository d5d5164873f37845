"""What a person is told after an order: what was done, and what can be done next."""

from typing import Any

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.wire.guid import is_guid

PROMISE_BROKEN = "promise-broken"


def show_order_on_machine(session: Session, answer: dict[str, Any]) -> None:
    """Tell of an order on one machine."""
    order, event = answer["order"], answer["event"]
    # A stage that nobody is told of is announced all the same; to a person it waits for its machine.
    waits = event is None and bool(order["waiting"])
    progress = "waiting" if waits and order["state"] == "announced" else _progress(order)
    terminal.say(f"{order['machine']}: {order['action']} ordered, {progress}.")
    if event is None:
        if waits:
            show_waiting(order)
        show_no_event(answer)
        _next(session, follow=order)
    else:
        now = session.client.get("/v1/clock")["now"]
        terminal.say(f"  {_told(event, now)}")
        _next(session, event=event, follow=order)


def show_no_event(answer: dict[str, Any]) -> None:
    """Tell why nobody is ever told of an order on one machine, if that is so."""
    if answer["event"] is None and answer["reason"] and not answer["order"]["waiting"]:
        terminal.say(f"  No event: {answer['reason']}.")


def show_order_on_host(session: Session, answer: dict[str, Any]) -> None:
    """Tell of an order on a host."""
    order, events = answer["order"], answer["events"]
    what = f"{order['action']} ({order['work']})" if order["action"] == "maintenance" else order["action"]
    terminal.say(f"{order['host']}: {what} ordered, {_progress(order)}.")
    now = session.client.get("/v1/clock")["now"] if events else ""
    for event in events:
        terminal.say(f"  {_told(event, now)}")
    if not events:
        show_waiting(order)
    _show_broken_promises(session, order)
    if order["ended_at"] is None:
        _next(session, event=events[0] if len(events) == 1 else None, follow=order)


def show_waiting(order: dict[str, Any]) -> None:
    """Tell what an order waits for."""
    for waiting in order["waiting"]:
        terminal.say(f"  {_what(waiting['what'])}: {waiting['reason']}")


def show_still_degraded(session: Session, order: dict[str, Any]) -> None:
    """Tell that a host whose moving was called off is still thought to be failing."""
    if order["action"] != "degrade":
        return
    host = session.client.get(f"/v1/hosts/{order['host']}")["host"]
    if host["state"] == "degraded":
        terminal.say(f"  {host['name']} stays degraded, and takes no machines.")
        terminal.say(f"  It is sound after all:  {session.command('host restore ' + host['name'])}")


def _show_broken_promises(session: Session, order: dict[str, Any]) -> None:
    """Tell whoever has declared an emergency what it breaks; the history has it too."""
    if order["emergency"] is None:
        return
    broken = session.client.get("/v1/history", order=order["id"], kind=[PROMISE_BROKEN])["records"]
    for why in sorted({record["reason"] for record in broken}):
        terminal.say(f"  A promise is broken: {why}. The history says so.")


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


def _told(event: dict[str, Any], now: str) -> str:
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
        terminal.say(f"  Let it start now:  {session.command(f'event approve {id_}')}")
        terminal.say(f"  Call it off:       {session.command(f'event cancel {id_}')}")
    order = terminal.short(follow["id"])
    terminal.say(f"  Follow it:         {session.command(f'order show {order}')}")
