"""What is printed of an order: what was done, what it waits for, and what can be done next."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from urllib.parse import quote

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.client.replies import FORBIDDEN, RequestRefused
from forewarn.core.access import Right
from forewarn.core.basic_types import (
    EXTERNAL,
    HINTS,
    Action,
    EventStatus,
    HostState,
    HostTask,
    Kind,
    OrderState,
    ServiceMode,
    StageKind,
    StageState,
    StepState,
)
from forewarn.core.disclosure import A_HOST
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.fleet_answers import HostWithMachinesAnswer
from forewarn.wire.answers.order_answers import (
    OrderAnswer,
    OrderOnMachineAnswer,
    OrderWithEventsAnswer,
    StageAnswer,
    WaitingAnswer,
)
from forewarn.wire.answers.record_answers import RecordsAnswer
from forewarn.wire.answers.service_answers import HoldAnswer
from forewarn.wire.texts import is_guid

_ORDER = re.compile(r"waits for order (\S+) ")
Way = tuple[str, str]  # what it does, and the words of the command


def show_order_on_machine(session: Session, answer: OrderOnMachineAnswer) -> None:
    """Print an order on one machine."""
    order, event = answer.order, answer.event
    # A stage without an event counts as announced; to a person it waits for its machine.
    waits = event is None and bool(order.waiting)
    progress = "waiting" if waits and order.state is OrderState.ANNOUNCED else _progress(order)
    terminal.echo(f"{order.machine}: {order.action} ordered, {progress}.")
    _show_driver(session, order)
    if event is None:
        if waits:
            show_waiting(order.waiting)
        show_no_event(answer)
        _next(session, follow=order)
    else:
        terminal.fold(_announcement(event, session.now()), indent="  ", hanging="    ")
        _next(session, event=event, follow=order)


def _show_driver(session: Session, order: OrderAnswer) -> None:
    """Print who does the work, unless the server sees to it; how to do it is said to operators."""
    if formatting.is_simulated(order):
        terminal.echo(f"  {formatting.SIMULATED_MARK.capitalize()}.")
    elif is_unfenced(order):  # nobody can do the work before
        show_waiting(order.waiting)
    elif formatting.is_done_outside(order) and order.ended_at is None:
        caller = session.caller()
        in_parts = len(order.stages) > 1 and not (order.whole or order.together)
        parts = " --one-by-one" if in_parts else ""
        gate = session.command(f"gate order {terminal.short(order.id)}{parts} -- COMMAND")
        how = f": {gate}" if caller is None or Right.RUN in caller.rights else ""
        terminal.echo(f"  Done outside, by those who run the hosts{how}")


def is_unfenced(order: OrderAnswer) -> bool:
    """Return whether the machines of a failed host wait for somebody outside to fence it."""
    fences = (step for step in order.host_steps if step.task is HostTask.FENCE and step.driver == EXTERNAL)
    return any(step.state is StepState.RUNNING for step in fences)


def name_order(order: OrderAnswer) -> str:
    """Name what is done to what: `maintenance reboot of host-1`."""
    what = f"maintenance {order.work}" if order.action is Action.MAINTENANCE else order.action
    return f"{what} of {order.machine or order.host or A_HOST}"


def machines_of(order: OrderAnswer) -> list[str]:
    """Name the machines that an order is about."""
    return sorted({step.machine for step in order.steps})


def show_no_event(answer: OrderOnMachineAnswer) -> None:
    """Print why an order on one machine has no event, if it has none."""
    waits = answer.order.waiting and answer.order.state is not OrderState.STARTED
    if answer.event is None and answer.reason and not waits:
        terminal.echo(f"  No event: {answer.reason}.")


def show_order_on_host(session: Session, answer: OrderWithEventsAnswer) -> None:
    """Print an order on a host."""
    order, events = answer.order, answer.events
    what = str(order.action)
    if order.action is Action.MAINTENANCE:
        what += f" ({order.work})"
    if order.mode is not None:
        what += f" ({order.mode})"
    urgent = f" as an emergency ({order.emergency})" if order.emergency else ""
    terminal.fold(f"{order.host}: {what} ordered{urgent}, {_progress(order)}.")
    if order.fenced:
        terminal.fold(f"Taken as fenced, vouched for by {order.fenced}.", indent="  ")
    _show_driver(session, order)
    if events:
        now = session.now()
        for event in events:
            terminal.fold(_announcement(event, now), indent="  ", hanging="    ")
    else:
        show_waiting(order.waiting)
    show_later_stages(order)
    show_broken_promises(session, order)
    if order.emergency:
        show_ways_on(session, order)
    if order.ended_at is None:
        only = events[0] if len(events) == 1 and not order.emergency else None
        _next(session, event=only, follow=order)


def show_later_stages(order: OrderAnswer) -> None:
    """Print what of an order in several stages is still to be announced, and to whom."""
    whole = len(order.stages)
    for number, stage in enumerate(order.stages, start=1):
        if whole > 1 and stage.state is StageState.QUEUED:
            when = f"announced when stage {number - 1} is over" if number > 1 else "announced first"
            said = f"Stage {number} of {whole}, {_of_stage(order, stage)}, is {when}."
            terminal.fold(said, indent="  ", hanging="    ")


def _of_stage(order: OrderAnswer, stage: StageAnswer) -> str:
    named, alone = formatting.listing([step.machine for step in stage.steps]), len(stage.steps) == 1
    match stage.kind:
        case StageKind.HOST:
            return f"the work on {order.host}" + (f", with a reboot of {named}" if stage.steps else "")
        case StageKind.EVACUATE:
            return f"in which {named} {'leaves' if alone else 'leave'}"
        case StageKind.RETURN:
            return f"in which {named} {'comes' if alone else 'come'} back"
        case _:
            return f"{order.work} of {named}"


def show_still_degraded(session: Session, order: OrderAnswer) -> None:
    """Print that a host stays degraded after its order was cancelled."""
    if order.action is not Action.DEGRADE:
        return
    host = session.client.get(f"/v1/hosts/{quote(order.host or '', safe='')}", HostWithMachinesAnswer).value
    if host.state is HostState.DEGRADED:
        terminal.echo(f"  {host.name} stays degraded, and takes no machines.")
        terminal.echo(f"  It is sound after all:  {session.command('host restore ' + host.name)}")


def show_broken_promises(session: Session, order: OrderAnswer) -> None:
    """Print which promises an order breaks; the history has them too."""
    if order.emergency is None and order.together is None:
        return
    broken = session.client.get(
        "/v1/history", RecordsAnswer, order=order.id, kind=[Kind.PROMISE_BROKEN.value]
    )
    for why in sorted({record.reason or "" for record in broken.value.records}):
        terminal.echo(f"  A promise is broken: {why}. The history says so.")


def _progress(order: OrderAnswer) -> str:
    match order.state:
        case OrderState.QUEUED:
            return "not announced yet"
        case OrderState.STARTED:
            return "under way"
        case state:
            return state


def _announcement(event: EventAnswer, now: datetime) -> str:
    named = formatting.listing(event.resources)
    announced = f"Event {terminal.short(event.id)} announces to {named}: {event.type}"
    if event.status is EventStatus.STARTED:
        return f"{announced}, started."
    not_before = event.not_before
    if event.type in HINTS:
        return f"{announced}, until {formatting.utc(not_before)}. Nothing is done to it."
    return f"{announced} {formatting.until_start(not_before, now)} (not before {formatting.utc(not_before)})."


def _next(session: Session, *, follow: OrderAnswer, event: EventAnswer | None = None) -> None:
    if event is not None and event.status is EventStatus.SCHEDULED:
        id_ = terminal.short(event.id)
        if event.type not in HINTS:
            terminal.echo(f"  Let it start now:  {session.command(f'event approve {id_}')}")
        terminal.echo(f"  Cancel it:         {session.command(f'event cancel {id_}')}")
    order = terminal.short(follow.id)
    terminal.echo(f"  Follow it:         {session.command(f'order show {order}')}")


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
    host = session.order(id_).host
    return f" on {host}" if host else ""


def _what(text: str) -> str:
    """Shorten what waits if it is an event."""
    return f"event {terminal.short(text)}" if is_guid(text) else text


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
