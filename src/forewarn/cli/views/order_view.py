"""How commands show orders: the state, the reasons to wait, and the next commands."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from forewarn.cli import formatting, terminal
from forewarn.cli.options import path_of
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
# Orders that report a state. All other orders request work.
REPORTED = {
    Action.DEGRADE: "reported as degraded",
    Action.FAIL: "reported as failed",
    Action.RESTORE: "reported as sound",
    Action.CORDON: "cordoned",
    Action.UNCORDON: "uncordoned",
}
Way = tuple[str, str]  # a label, and the words of a command


def show_order_on_machine(session: Session, answer: OrderOnMachineAnswer) -> None:
    """Print an order on one machine."""
    order, event = answer.order, answer.event
    # A stage without an event counts as announced, although it waits for its machine.
    waits = event is None and bool(order.waiting)
    progress = "waiting" if waits and order.state is OrderState.ANNOUNCED else _progress(order)
    terminal.echo(f"{order.machine}: {order.action} ordered, {progress}.")
    _show_driver(session, order)
    if event is not None:
        terminal.echo_wrapped(_announcement(event, session.now()), indent="  ", hanging="    ")
    elif waits:
        show_waiting(order.waiting)
    show_no_event(answer)
    _show_next(session, order, event)


def _show_driver(session: Session, order: OrderAnswer) -> None:
    """Print who does the work, unless the server itself does it."""
    if formatting.is_simulated(order):
        terminal.echo(f"  {formatting.SIMULATED_MARK.capitalize()}.")
    elif is_unfenced(order):
        show_waiting(order.waiting)
    elif formatting.is_done_outside(order) and order.ended_at is None:
        in_parts = len(order.stages) > 1 and not (order.whole or order.together)
        parts = " --one-by-one" if in_parts else ""
        gate = session.command(f"gate order {terminal.short(order.id)}{parts} -- COMMAND")
        how = f": {gate}" if Right.RUN in session.caller().rights else ""
        terminal.echo(f"  Done by an external program{how}")


def is_unfenced(order: OrderAnswer) -> bool:
    """Return whether an external program must still fence the failed host."""
    fences = (step for step in order.host_steps if step.task is HostTask.FENCE and step.driver == EXTERNAL)
    return any(step.state is StepState.RUNNING for step in fences)


def action_of(order: OrderAnswer) -> str:
    """Name the action: `maintenance reboot`."""
    return f"maintenance {order.work}" if order.action is Action.MAINTENANCE else order.action


def name_order(order: OrderAnswer) -> str:
    """Name the action and the target: `maintenance reboot of host-1`."""
    return f"{action_of(order)} of {order.machine or order.host or A_HOST}"


def machines_of(order: OrderAnswer) -> list[str]:
    """Return the names of the machines of an order."""
    return sorted({step.machine for step in order.steps})


def show_no_event(answer: OrderOnMachineAnswer) -> None:
    """Print why an order on one machine has no event, if it has none."""
    waits = answer.order.waiting and answer.order.state is not OrderState.STARTED
    if answer.event is None and answer.reason and not waits:
        terminal.echo(f"  No event: {answer.reason}.")


def show_order_on_host(session: Session, answer: OrderWithEventsAnswer) -> None:
    """Print an order on a host."""
    order, events = answer.order, answer.events
    terminal.echo_wrapped(_headline(order))
    if order.fenced:
        terminal.echo_wrapped(f"Fenced, confirmed by {order.fenced}.", indent="  ")
    _show_driver(session, order)
    if events:
        now = session.now()
        for event in events:
            terminal.echo_wrapped(_announcement(event, now), indent="  ", hanging="    ")
    else:
        show_waiting(order.waiting)
    _show_later_stages(order)
    show_broken_promises(session, order)
    if order.emergency:
        show_ways_on(session, order)
    if order.ended_at is None:
        only = events[0] if len(events) == 1 and not order.emergency else None
        _show_next(session, order, only)


def _headline(order: OrderAnswer) -> str:
    urgent = f" as an emergency ({order.emergency})" if order.emergency else ""
    if order.action in REPORTED:
        progress = "" if order.state is OrderState.DONE else f"; order {_progress(order)}"
        return f"{order.host} {REPORTED[order.action]}{urgent}{progress}."
    detail = order.work if order.action is Action.MAINTENANCE else order.mode
    what = f"{order.action} ({detail})" if detail else order.action
    return f"{order.host}: {what} ordered{urgent}, {_progress(order)}."


def _show_later_stages(order: OrderAnswer) -> None:
    """Print the stages that are not announced yet, if there are several stages."""
    whole = len(order.stages)
    for number, stage in enumerate(order.stages, start=1):
        if whole > 1 and stage.state is StageState.QUEUED:
            when = f"after stage {number - 1}" if number > 1 else "first"
            text = f"Stage {number} of {whole}, announced {when}: {_describe_stage(order, stage)}."
            terminal.echo_wrapped(text, indent="  ", hanging="    ")


def _describe_stage(order: OrderAnswer, stage: StageAnswer) -> str:
    named, single = formatting.listing([step.machine for step in stage.steps]), len(stage.steps) == 1
    match stage.kind:
        case StageKind.HOST:
            return f"work on {order.host}" + (f", with a reboot of {named}" if stage.steps else "")
        case StageKind.EVACUATE:
            return f"{named} {'leaves' if single else 'leave'}"
        case StageKind.RETURN:
            return f"{named} {'returns' if single else 'return'}"
        case _:
            return f"{order.work} of {named}"


def show_still_degraded(session: Session, order: OrderAnswer) -> None:
    """Print that a host stays degraded after its order was cancelled."""
    if order.action is not Action.DEGRADE:
        return
    host = session.client.get(path_of("host", order.host or ""), HostWithMachinesAnswer).value
    if host.state is HostState.DEGRADED:
        terminal.echo(f"  {host.name} stays degraded, and accepts no machines.")
        terminal.echo_steps({"If the host is sound": session.command(f"host restore {host.name}")})


def show_broken_promises(session: Session, order: OrderAnswer) -> None:
    """Print the promises that an order breaks."""
    if order.emergency is None and order.together is None:
        return
    broken = session.client.get(
        "/v1/history", RecordsAnswer, order=order.id, kind=[Kind.PROMISE_BROKEN.value]
    )
    for why in sorted({record.reason or "" for record in broken.value.records}):
        terminal.echo(f"  Broken promise, recorded in the history: {why}.")


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
    announced = f"Event {terminal.short(event.id)} announced to {named}: {event.type}"
    if event.status is EventStatus.STARTED:
        return f"{announced}, started."
    not_before = event.not_before
    if event.type in HINTS:
        return f"{announced}, until {formatting.utc(not_before)}. The server does nothing to the machine."
    return f"{announced} {formatting.until_start(not_before, now)} (not before {formatting.utc(not_before)})."


def _show_next(session: Session, order: OrderAnswer, event: EventAnswer | None) -> None:
    commands = {}
    if event is not None and event.status is EventStatus.SCHEDULED:
        id_ = terminal.short(event.id)
        if event.type not in HINTS:
            commands["Start now"] = f"event approve {id_}"
        commands["Cancel"] = f"event cancel {id_}"
    commands["Follow"] = f"order show {terminal.short(order.id)}"
    terminal.echo_steps({label: session.command(words) for label, words in commands.items()})


def show_waiting(waiting: Iterable[WaitingAnswer]) -> None:
    """Print the reasons why an order waits."""
    for each in waiting:
        what = f"event {terminal.short(each.what)}" if is_guid(each.what) else each.what
        terminal.echo_wrapped(f"{what}: {terminal.readable(each.reason)}", indent="  ", hanging="    ")


def show_waiting_of(session: Session, order: OrderAnswer) -> None:
    """Print the reasons why an order waits, with the events and orders that block it."""
    if not order.waiting:
        return
    terminal.echo("\nWaiting for:")
    groups = {each.what for each in order.waiting if not is_guid(each.what)}
    listed: Sequence[EventAnswer] = session.client.all(EventAnswer).value.items if groups else ()
    hosts: dict[str, str] = {}
    for wait in order.waiting:
        show_waiting([wait])
        for event in blocking_events(wait, order, listed):
            if event.order not in hosts:
                host = session.order(event.order).host
                hosts[event.order] = f" on {host}" if host else ""
            named = formatting.listing(event.resources)
            blocking = f"order {terminal.short(event.order)}{hosts[event.order]}"
            text = f"{event.type} of {named} (event {terminal.short(event.id)}, {blocking})"
            terminal.echo_wrapped(text, indent="    ", hanging="      ")


def blocking_events(
    wait: WaitingAnswer, order: OrderAnswer, listed: Sequence[EventAnswer]
) -> list[EventAnswer]:
    """Return the armed events of other orders in the group that an order waits for."""
    others = (event for event in listed if event.armed_at is not None and event.order != order.id)
    return [event for event in others if event.group == wait.what]


def show_ways_on(session: Session, order: OrderAnswer) -> None:
    """Print the commands that let a waiting order continue at once."""
    try:
        ways = sorted(dict.fromkeys(_ways(session, order)), key=lambda way: way[0].startswith("or "))
    except RequestRefused as refusal:
        if refusal.status != FORBIDDEN:
            raise
        return  # only operators can do this
    if not ways:
        return
    terminal.echo("  To continue at once:")
    width = max(len(what) for what, _ in ways)
    for what, words in ways:
        terminal.echo(f"    {what + ':':{width + 1}}  {session.command(words)}")


def _ways(session: Session, order: OrderAnswer) -> Iterator[Way]:
    holds = {hold.reach: hold for hold in session.client.page(HoldAnswer).value.items}
    listed = session.client.all(EventAnswer).value.items
    for wait in order.waiting:
        if wait.what in holds:
            yield "release the hold", f"hold release {terminal.short(holds[wait.what].id)}"
            if order.emergency:
                yield "or cancel the order", f"order cancel {terminal.short(order.id)}"
                yield "or then order it again despite the hold", f"{_again(order)} --despite-hold"
        elif is_guid(wait.what):
            yield "start without waiting", f"event approve {terminal.short(wait.what)}"
        elif wait.reason.startswith("outside "):
            now = f"{session.now():%Y-%m-%dT%H:%M:%SZ}"
            yield "cancel the order", f"order cancel {terminal.short(order.id)}"
            yield "and order it again, ignoring windows", f"{_again(order)} --deadline {now}"
        elif found := _ORDER.search(wait.reason):
            yield "see the blocking order", f"order show {terminal.short(found[1])}"
        else:
            yield from _ways_past(wait, blocking_events(wait, order, listed))


def _ways_past(wait: WaitingAnswer, listed: list[EventAnswer]) -> Iterator[Way]:
    """Return the ways past events of another update domain: start them now, or cancel their orders."""
    for event in listed:
        order = terminal.short(event.order)
        if event.status is EventStatus.STARTED:
            yield f"see the progress of {wait.what}", f"order show {order}"
        else:
            named = formatting.listing(event.resources)
            yield f"start {event.type} of {named} now", f"event approve {terminal.short(event.id)}"
            yield "or cancel that order", f"order cancel {order}"


def _again(order: OrderAnswer) -> str:
    why = shlex.quote(order.emergency or "")
    match order.action:
        case Action.SERVICE:
            return f"host service {order.host} --{order.mode or ServiceMode.EVACUATE} --emergency {why}"
        case Action.DEGRADE:
            return f"host degrade {order.host} --emergency {why}"
        case _:
            return f"host maintenance {order.host} --action {order.work} --emergency {why}"
