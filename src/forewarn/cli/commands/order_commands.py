"""`forewarn order`: show requested work and what it waits for; cancel, retry or report it."""

from collections.abc import Mapping, Sequence

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import flag, option
from forewarn.cli.options import OF_HOST, OF_MACHINE, ORDER, REASON, full_id, path_by_id
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.order_view import (
    action_of,
    show_broken_promises,
    show_still_degraded,
    show_waiting_of,
    show_ways_on,
)
from forewarn.cli.views.step_tables import is_unknown, show_steps
from forewarn.client.replies import Body
from forewarn.core.access import Right
from forewarn.core.basic_types import EXTERNAL, OrderState, ServiceMode, Source, StepState
from forewarn.core.disclosure import A_HOST
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import (
    OrderAnswer,
    OrderDetailWithEventsAnswer,
    OrderWithEventsAnswer,
)
from forewarn.wire.texts import is_guid

app = Noun()

STATE = option("--state", "STATE", "Only in this state.")
ONLY_OPEN = flag("--open only_open", "Only open orders.")


@app.verb(STATE, ONLY_OPEN, OF_MACHINE, OF_HOST)
def list_(session: Session, only_open: bool, **typed: str | None) -> None:
    """List orders, newest first."""
    wanted = {**typed, **session.scope}
    reply = session.client.all(OrderAnswer, **wanted, open=only_open or None)
    session.print_reply(reply, lambda page: _show_list(session, page.items, wanted))


@app.verb(ORDER)
def show(session: Session, id_: str) -> None:
    """Show the steps and the events of an order, and what it waits for."""
    reply = session.client.get(path_by_id(session.client, OrderAnswer, id_), OrderDetailWithEventsAnswer)
    session.print_reply(reply, lambda answer: _show(session, answer))


@app.verb(ORDER)
def retry(session: Session, id_: str) -> None:
    """Retry the failed steps of an order."""
    order = _change(session, id_, "retry", "retries its failed steps")
    is_started_outside = order.driver == EXTERNAL and order.state is OrderState.STARTED
    if not session.json and is_started_outside and Right.RUN in session.caller().rights:
        _show_external_steps(session, order)


@app.verb(ORDER)
def complete(session: Session, id_: str) -> None:
    """Report that the work of an external driver is done."""
    _change(session, id_, "complete", "reported as done")


@app.verb(ORDER, REASON)
def fail(session: Session, id_: str, reason: str | None) -> None:
    """Report that the work of an external driver has failed."""
    _change(session, id_, "fail", "reported as failed", {"reason": reason or None})


@app.verb(ORDER)
def heartbeat(session: Session, id_: str) -> None:
    """Report that the work of an external driver continues."""
    _change(session, id_, "heartbeat", "reported as continuing")


@app.verb(ORDER)
def abandon(session: Session, id_: str) -> None:
    """Abandon an order that has failed or runs; its driver is asked to cancel running steps."""
    _change(session, id_, "abandon", None)


@app.verb(ORDER)
def cancel(session: Session, id_: str) -> None:
    """Cancel an order with all its events."""
    order = _change(session, id_, "cancel", "cancelled with all its events")
    if not session.json:
        show_still_degraded(session, order)


def _change(session: Session, typed: str, verb: str, outcome: str | None, body: Body = None) -> OrderAnswer:
    id_ = full_id(session.client, OrderAnswer, typed)
    reply = session.client.post(f"/v1/orders/{id_}/{verb}", OrderWithEventsAnswer, body)
    order = reply.value.order
    session.print_reply(
        reply, lambda _: terminal.echo(f"Order {terminal.short(id_)} {outcome or _abandoned(order)}.")
    )
    return order


def _abandoned(order: OrderAnswer) -> str:
    if order.ended_at is not None:
        return "abandoned; steps that were not done stay undone"
    running = [step.machine for step in order.steps if step.state is StepState.RUNNING]
    return f"is being abandoned; its driver is asked to cancel {formatting.listing(running)}"


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
    """Say that there are no orders; members of a project see work on hosts only as events."""
    caller = session.caller()
    filtered = any(value for name, value in wanted.items() if name != "project")
    if caller.project is not None and not filtered:
        events = session.command("event list")
        return f"No orders of project {caller.project}: `{events}` shows what is announced to its machines."
    return formatting.none_found("orders", "No orders.", **wanted)


def _reasons(order: OrderAnswer) -> str:
    """Write each reason once, with the groups and machines that it holds up; events are not named."""
    subjects: dict[str, list[str]] = {}
    for each in order.waiting:
        named = subjects.setdefault(each.reason, [])
        if not is_guid(each.what) and each.what not in (*named, order.machine, order.host):
            named.append(each.what)
    return "; ".join(f"{', '.join(named)}: {why}" if named else why for why, named in subjects.items())


def _show(session: Session, answer: OrderDetailWithEventsAnswer) -> None:
    order = answer.order
    optional = {
        "fenced, confirmed by": order.fenced,
        "emergency": order.emergency,
        "together": order.together,
        "rollout": order.rollout,
    }
    terminal.details(
        [
            ("order", order.id),
            ("action", f"{_action(order)} on {order.machine or order.host or A_HOST}"),
            ("state", _state(order)),
            ("requested by", order.by),
            ("reason", order.reason),
            *_driver(order),
            *((label, value) for label, value in optional.items() if value),
            ("ordered", order.created_at),
            ("ended", order.ended_at),
            *([("deadline", order.deadline)] if order.deadline else []),
            ("explanation", order.why),
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
        _show_next(session, order)


def _show_events(events: Sequence[EventAnswer]) -> None:
    any_over = any(event.ended_at is not None for event in events)
    table = terminal.ItemTable[EventAnswer](
        columns={
            "EVENT": lambda event: terminal.short(event.id),
            "TYPE": lambda event: event.type,
            "STATUS": lambda event: event.status if event.ended_at is None else "over",
            **terminal.columns("MACHINES=resources NOT-BEFORE ENDED=ended_at"),
        },
        wraps=("MACHINES",),
        spare=("NOT BEFORE",) if any_over else ("ENDED",),
    )
    table.print(events)


def _show_next(session: Session, order: OrderAnswer) -> None:
    """Print what the caller can do about failed and unknown steps."""
    failed = order.state is OrderState.FAILED
    unknown = any(map(is_unknown, order.steps)) or any(map(is_unknown, order.host_steps))
    if not failed and not unknown:
        return
    rights, short = session.caller().rights, terminal.short(order.id)
    is_operator = Right.RUN in rights
    if not is_operator and (order.source is not Source.USER or Right.USE not in rights):
        return
    terminal.echo()
    commands = {"Abandon": session.command(f"order abandon {short}")}
    if failed:
        outside = is_operator and order.driver == EXTERNAL
        again = f"gate order {short} -- COMMAND" if outside else f"order retry {short}"
        commands = {"Retry": session.command(again), **commands}
    else:
        text = "The driver does not know the state of a step. The server keeps asking it."
        terminal.echo_wrapped(text, indent="  ")
    terminal.echo_steps(commands)


def _show_external_steps(session: Session, order: OrderAnswer) -> None:
    """Print how to do and report the retried work of an external driver."""
    short = terminal.short(order.id)
    terminal.echo(
        "  An external program does this work. If it starts and then sends nothing, the order fails."
    )
    commands = {
        "Run a command": f"gate order {short} --yes -- COMMAND",
        "Report success": f"order complete {short}",
        "Report failure": f"order fail {short}",
    }
    terminal.echo_steps({label: session.command(words) for label, words in commands.items()})


def _state(order: OrderAnswer) -> str:
    """Return the state, and whether the order is abandoned or simulated."""
    parts: list[str] = [order.state]
    if order.state is OrderState.FAILED and order.ended_at is not None:
        parts.append("abandoned")
    elif order.abandoned_by and order.ended_at is None:
        releasing = order.state is OrderState.CANCELLED
        parts.append("releasing its host" if releasing else "being abandoned")
    if formatting.is_simulated(order):
        parts.append("simulated")
    return ", ".join(parts)


def _driver(order: OrderAnswer) -> list[tuple[str, str]]:
    if order.driver is None or order.work is None or not order.work.touches_machines:
        return []
    if formatting.is_simulated(order):
        return [("done by", formatting.SIMULATED_MARK)]
    return [
        (
            "done by",
            formatting.DONE_OUTSIDE if formatting.is_done_outside(order) else f"driver {order.driver}",
        )
    ]


def _action(order: OrderAnswer) -> str:
    return f"{order.action} in place" if order.mode is ServiceMode.IN_PLACE else action_of(order)
