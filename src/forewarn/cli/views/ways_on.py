"""How an order goes on at once: what it waits for, and the command that ends the waiting."""

import re
import shlex
from collections.abc import Iterator

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.cli.views.waiting_view import in_the_way
from forewarn.client.replies import FORBIDDEN, RequestRefused
from forewarn.core.words import Action, EventStatus, ServiceMode
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import OrderAnswer, WaitingAnswer
from forewarn.wire.answers.service_answers import HoldAnswer
from forewarn.wire.guid import is_guid

_ORDER = re.compile(r"waits for order (\S+) ")

Way = tuple[str, str]  # what it does, and the words of the command


def show_ways_on(session: Session, order: OrderAnswer) -> None:
    """Print how an order that waits can go on at once."""
    try:
        ways = sorted(dict.fromkeys(_ways(session, order)), key=lambda way: way[0].startswith("or "))
    except RequestRefused as refusal:
        if refusal.status != FORBIDDEN:
            raise
        return  # a tenant sees that it waits; to end that is the operator's
    if not ways:
        return
    terminal.echo("  To go on at once:")
    width = max(len(what) for what, _ in ways)
    for what, words in ways:
        terminal.echo(f"    {what + ':':{width + 1}}  {session.command(words)}")


def _ways(session: Session, order: OrderAnswer) -> Iterator[Way]:
    holds = {hold.reach: hold for hold in session.client.page(HoldAnswer).value.items}
    listed = session.client.all(EventAnswer).value.items
    for wait in order.waiting:
        if wait.what in holds:
            yield "lift the hold", f"release {terminal.short(holds[wait.what].id)}"
            if order.emergency:
                yield "or cancel it", f"order cancel {terminal.short(order.id)}"
                yield "or then order it again, past the hold", f"{_again(order)} --despite-hold"
        elif is_guid(wait.what):
            yield "start without waiting", f"event approve {terminal.short(wait.what)}"
        elif wait.reason.startswith("outside "):
            now = f"{session.now():%Y-%m-%dT%H:%M:%SZ}"
            yield "cancel it", f"order cancel {terminal.short(order.id)}"
            yield "and order it again, so that windows give way", f"{_again(order)} --deadline {now}"
        elif found := _ORDER.search(wait.reason):
            yield "see what it waits for", f"order show {terminal.short(found[1])}"
        else:
            yield from _past(wait, in_the_way(wait, order, listed))


def _past(wait: WaitingAnswer, listed: list[EventAnswer]) -> Iterator[Way]:
    """Give the ways past events of another update domain: they start now, or their order is cancelled."""
    for event in listed:
        order = terminal.short(event.order)
        if event.status is EventStatus.STARTED:
            yield f"{wait.what} is being worked on; see how far it is", f"order show {order}"
        else:
            named = formatting.listing(event.resources)
            yield f"let {event.type} of {named} start now", f"event approve {terminal.short(event.id)}"
            yield "or cancel that, with its order", f"order cancel {order}"


def _again(order: OrderAnswer) -> str:
    why = shlex.quote(order.emergency or "")
    match order.action:
        case Action.SERVICE:
            return f"host service {order.host} --{order.mode or ServiceMode.EVACUATE} --emergency {why}"
        case Action.DEGRADE:
            return f"host degrade {order.host} --emergency {why}"
        case _:
            return f"host maintenance {order.host} --action {order.work} --emergency {why}"
