"""`forewarn order`: show what is going to be done, and what it waits for."""

from collections.abc import Callable, Mapping, Sequence

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import flag, option
from forewarn.cli.options import OF_HOST, OF_MACHINE, ORDER, REASON, full_id, path_by_id
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.order_view import (
    show_broken_promises,
    show_still_degraded,
    show_waiting_of,
    show_ways_on,
)
from forewarn.cli.views.step_tables import is_unknown, show_steps
from forewarn.client.replies import Body
from forewarn.core.access import Right
from forewarn.core.basic_types import EXTERNAL, Action, OrderState, ServiceMode, Source, StepState
from forewarn.core.disclosure import A_HOST
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import (
    OrderDetailWithEventsAnswer,
    OrderAnswer,
    OrderWithEventsAnswer,
)
from forewarn.wire.texts import is_guid

app = Noun()

STATE = option("--state", "STATE", "Only in this state.")
ONLY_OPEN = flag("--open only_open", "Only those that are not over.")


@app.verb(STATE, ONLY_OPEN, OF_MACHINE, OF_HOST)
def list_(
    session: Session, state: str | None, only_open: bool, machine: str | None, host: str | None
) -> None:
    """List orders, newest first."""
    wanted = {"state": state, "machine": machine, "host": host, **session.scope}
    reply = session.client.all(OrderAnswer, **wanted, open=only_open or None)
    session.print_reply(reply, lambda page: _show_list(session, page.items, wanted))


@app.verb(ORDER)
def show(session: Session, id_: str) -> None:
    """Show an order: its steps, its events, and what it waits for."""
    reply = session.client.get(path_by_id(session.client, OrderAnswer, id_), OrderDetailWithEventsAnswer)
    session.print_reply(reply, lambda answer: _show(session, answer))


@app.verb(ORDER)
def retry(session: Session, id_: str) -> None:
    """Carry out the failed steps once more."""
    order = _do(session, id_, "retry", "its failed steps are to be done once more")
    if not session.json and order.driver == EXTERNAL and order.state is OrderState.STARTED:
        caller = session.caller()
        if caller is None or Right.RUN in caller.rights:
            _show_done_outside(session, order)


@app.verb(ORDER)
def complete(session: Session, id_: str) -> None:
    """Report that the work of an order with an external driver is done."""
    _do(session, id_, "complete", "its work is reported as done")


@app.verb(ORDER, REASON)
def fail(session: Session, id_: str, reason: str | None) -> None:
    """Report that the work of an order with an external driver failed."""
    _do(session, id_, "fail", "its work is reported as failed", {"reason": reason or None})


@app.verb(ORDER)
def heartbeat(session: Session, id_: str) -> None:
    """Report that the work of an order with an external driver goes on."""
    _do(session, id_, "heartbeat", "its work goes on")


@app.verb(ORDER)
def abandon(session: Session, id_: str) -> None:
    """Abandon an order that failed or is under way; its driver is asked to call off what runs."""
    _do(session, id_, "abandon", _abandoned)


@app.verb(ORDER)
def cancel(session: Session, id_: str) -> None:
    """Cancel an order, with all its events."""
    order = _do(session, id_, "cancel", "called off, with all its events")
    if not session.json:
        show_still_degraded(session, order)


def _do(
    session: Session, typed: str, verb: str, said: str | Callable[[OrderAnswer], str], body: Body = None
) -> OrderAnswer:
    id_ = full_id(session.client, OrderAnswer, typed)
    reply = session.client.post(f"/v1/orders/{id_}/{verb}", OrderWithEventsAnswer, body)
    words = said if isinstance(said, str) else said(reply.value.order)
    session.print_reply(reply, lambda _: terminal.echo(f"Order {terminal.short(id_)}: {words}."))
    return reply.value.order


def _abandoned(order: OrderAnswer) -> str:
    """Say what has become of an order that was abandoned."""
    if order.ended_at is not None:
        return "abandoned; what was not done stays undone"
    running = [step.machine for step in order.steps if step.state is StepState.RUNNING]
    return f"being abandoned; its driver is asked to call off what runs: {formatting.listing(running)}"


def _show_list(session: Session, orders: Sequence[OrderAnswer], wanted: Mapping[str, object]) -> None:
    now = session.now()
    table = terminal.ItemTable[OrderAnswer](
        columns={
            "ORDER": lambda order: terminal.short(order.id),
            "ACTION": _action,
            "PROJECT": lambda order: order.project,
            "ON": lambda order: order.machine or order.host or A_HOST,
            "STATE": _state,
            "ORDERED": lambda order: formatting.countdown(order.created_at, now),
            "BY": lambda order: order.by,
            "WHY": lambda order: terminal.readable(order.why or _reasons(order) or order.reason or ""),
        },
        wraps=("ACTION", "STATE", "WHY"),
        spare=("BY", "ORDERED"),
        spare_if_same=("PROJECT",),
        empty=_none_found(session, wanted) if not orders else "",
    )
    table.print(orders)


def _none_found(session: Session, wanted: Mapping[str, object]) -> str:
    """Say that there are no orders; a project's people are told of work on hosts as events alone."""
    caller = session.caller()
    filtered = any(value for name, value in wanted.items() if name != "project")
    if caller is not None and caller.project is not None and not filtered:
        events = session.command("event list")
        return f"No orders of project {caller.project}: `{events}` shows what is announced to its machines."
    return formatting.none_found("orders", "No orders: nothing is going to be done.", **wanted)


def _reasons(order: OrderAnswer) -> str:
    """Write what an order waits for, each reason once and whose it is; events are not named by their ids."""
    whose: dict[str, list[str]] = {}
    for each in order.waiting:
        named = whose.setdefault(each.reason, [])
        if not is_guid(each.what) and each.what not in (*named, order.machine, order.host):
            named.append(each.what)
    return "; ".join(f"{', '.join(named)}: {why}" if named else why for why, named in whose.items())


def _show(session: Session, answer: OrderDetailWithEventsAnswer) -> None:
    order = answer.order
    terminal.details(
        [
            ("order", order.id),
            ("action", f"{_action(order)} on {order.machine or order.host or A_HOST}"),
            ("state", _state(order)),
            ("by", order.by),
            ("reason", order.reason),
            *_driver(order),
            *([("vouched for", order.fenced)] if order.fenced else []),
            *([("emergency", order.emergency)] if order.emergency else []),
            *([("together", order.together)] if order.together else []),
            *([("rollout", order.rollout)] if order.rollout else []),
            ("ordered", order.created_at),
            ("ended", order.ended_at),
            *([("deadline", order.deadline)] if order.deadline else []),
            ("why", order.why),
            ("notice", formatting.notice(order.notice)),
        ]
    )
    show_broken_promises(session, order)
    show_waiting_of(session, order)
    if order.waiting and order.emergency:
        show_ways_on(session, order)
    if answer.events:
        terminal.echo()
        _show_events(answer.events)
    show_steps(order)
    if order.ended_at is None and not order.abandoned_by:
        _show_ways_on(session, order)


def _show_events(events: Sequence[EventAnswer]) -> None:
    any_over = any(event.ended_at is not None for event in events)
    table = terminal.ItemTable[EventAnswer](
        columns={
            "EVENT": lambda event: terminal.short(event.id),
            "TYPE": lambda event: event.type,
            "STATUS": lambda event: event.status if event.ended_at is None else "over",
            "MACHINES": lambda event: event.resources,
            "NOT BEFORE": lambda event: event.not_before,
            "ENDED": lambda event: event.ended_at,
        },
        wraps=("MACHINES",),
        # When something could begin is of less interest once it is over.
        spare=("NOT BEFORE",) if any_over else ("ENDED",),
    )
    table.print(events)


def _show_ways_on(session: Session, order: OrderAnswer) -> None:
    """Print what can be done about failed and unknown steps; the platform's are its operators' business."""
    failed = order.state is OrderState.FAILED
    unknown = any(map(is_unknown, order.steps)) or any(map(is_unknown, order.host_steps))
    if not failed and not unknown:
        return
    caller, short = session.caller(), terminal.short(order.id)
    rights = tuple(Right) if caller is None else caller.rights
    is_operator = Right.RUN in rights
    if not is_operator and (order.source is not Source.USER or Right.USE not in rights):
        return
    abandon = session.command(f"order abandon {short}")
    terminal.echo()
    if not failed:
        said = "A driver that cannot tell is asked again, for as long as it takes. To wait no longer:"
        terminal.fold(said, indent="  ")
        terminal.echo(f"  Abandon it:  {abandon}")
        return
    outside = is_operator and order.driver == EXTERNAL
    again = f"gate order {short} -- COMMAND" if outside else f"order retry {short}"
    terminal.echo(f"  Try again:   {session.command(again)}")
    terminal.echo(f"  Abandon it:  {abandon}")


def _show_done_outside(session: Session, order: OrderAnswer) -> None:
    """Print how work is done that was retried and is done outside."""
    short = terminal.short(order.id)
    terminal.echo(
        "  It is done outside, so nobody begins it by itself; once begun, long silence is a failure. Either"
    )
    terminal.echo(f"    run a command for it:   {session.command(f'gate order {short} --yes -- COMMAND')}")
    terminal.echo(f"    or do it, and report:   {session.command(f'order complete {short}')}")
    terminal.echo(f"                            {session.command(f'order fail {short}')}")


def _state(order: OrderAnswer) -> str:
    """Return the state, whether an order was or is being abandoned, and whether all of it is simulated."""
    abandoned = order.state is OrderState.FAILED and order.ended_at is not None
    abandoning = order.abandoned_by and order.ended_at is None
    letting_go = "its host is being let go" if order.state is OrderState.CANCELLED else "being abandoned"
    given_up = ["abandoned"] if abandoned else [letting_go] if abandoning else []
    parts = [order.state, *given_up]
    return ", ".join([*parts, *(["simulated"] if formatting.is_simulated(order) else [])])


def _driver(order: OrderAnswer) -> list[tuple[str, str]]:
    if order.driver is None or order.work is None or not order.work.touches_machines:
        return []
    if formatting.is_simulated(order):
        return [("done by", f"nobody ({formatting.SIMULATED_MARK})")]
    if formatting.is_done_outside(order):
        return [("done by", "somebody outside, who reports")]
    return [("done by", f"driver {order.driver}")]


def _action(order: OrderAnswer) -> str:
    if order.action is Action.MAINTENANCE:
        return f"maintenance {order.work}"
    return f"{order.action} in place" if order.mode is ServiceMode.IN_PLACE else order.action
