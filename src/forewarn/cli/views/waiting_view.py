"""What an order waits for, and whose events are in its way."""

from collections.abc import Iterable, Sequence

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import NotedOrderWithEventsAnswer, OrderAnswer, WaitingAnswer
from forewarn.wire.texts import is_guid


def show_waiting(waiting: Iterable[WaitingAnswer]) -> None:
    """Print what an order waits for."""
    for each in waiting:
        terminal.fold(f"{_what(each.what)}: {terminal.readable(each.reason)}", indent="  ", hanging="    ")


def show_waiting_of(session: Session, order: OrderAnswer) -> None:
    """Print what an order waits for; of groups, which events of others keep it away and whose those are."""
    if not order.waiting:
        return
    terminal.echo("\nWaiting:")
    groups = {each.what for each in order.waiting if not is_guid(each.what)}
    listed: Sequence[EventAnswer] = session.client.all(EventAnswer).value.items if groups else ()
    hosts: dict[str, str] = {}
    for wait in order.waiting:
        show_waiting([wait])
        for event in in_the_way(wait, order, listed):
            if event.order not in hosts:
                hosts[event.order] = _on_host(session, event.order)
            named = formatting.listing(event.resources)
            whose = f"order {terminal.short(event.order)}{hosts[event.order]}"
            said = f"{event.type} of {named} (event {terminal.short(event.id)}, {whose})"
            terminal.fold(said, indent="    ", hanging="      ")


def in_the_way(wait: WaitingAnswer, order: OrderAnswer, listed: Sequence[EventAnswer]) -> list[EventAnswer]:
    """Return the armed events of others that a group's own one waits for."""
    others = (event for event in listed if event.armed_at is not None and event.order != order.id)
    return [event for event in others if event.group == wait.what]


def _on_host(session: Session, id_: str) -> str:
    host = session.client.get(f"/v1/orders/{id_}", NotedOrderWithEventsAnswer).value.order.host
    return f" on {host}" if host else ""


def _what(text: str) -> str:
    """Shorten what waits if it is an event."""
    return f"event {terminal.short(text)}" if is_guid(text) else text
