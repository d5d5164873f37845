"""`forewarn order`: show what is going to be done, and what it waits for."""

from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import full_id
from forewarn.cli.options.shared_options import OrderArgument, Reason
from forewarn.cli.session import Session, noun, with_session
from forewarn.cli.views.order_view import show_still_degraded, show_waiting
from forewarn.wire.guid import is_guid

app = noun("Show what is going to be done; cancel, retry or abandon it.")

EXTERNAL = "external"

State = Annotated[str | None, typer.Option("--state", metavar="STATE", help="Only in this state.")]

LIST = terminal.TableLayout(
    columns=("ORDER", "ACTION", "ON", "STATE", "ORDERED", "BY", "WHY"),
    wraps=("WHY",),
    spare=("BY", "ORDERED"),
)
EVENTS = terminal.TableLayout(
    columns=("EVENT", "TYPE", "STATUS", "MACHINES", "NOT BEFORE", "ENDED"),
    wraps=("MACHINES",),
    spare=("ENDED",),
)
STEPS = terminal.TableLayout(
    columns=("MACHINE", "STEP", "ATTEMPT", "TO", "BEGUN", "ENDED", "WHY"),
    wraps=("WHY",),
    spare=("ATTEMPT", "ENDED"),
)


@app.command("list")
@with_session
def list_(session: Session, state: State = None) -> None:
    """List orders, newest first."""
    answer = session.client.all("orders", **session.scope, state=state)
    session.print_answer(answer, lambda: _show_list(session, answer["orders"]))


@app.command()
@with_session
def show(session: Session, id_: OrderArgument) -> None:
    """Show an order: its steps, its events, and what it waits for."""
    answer = session.client.get(f"/v1/orders/{full_id(session.client, 'orders', id_)}")
    session.print_answer(answer, lambda: _show(session, answer))


@app.command()
@with_session
def retry(session: Session, id_: OrderArgument) -> None:
    """Carry out the failed steps once more."""
    order = _do(session, id_, "retry", "its failed steps are to be done once more")
    if not session.json and order["driver"] == EXTERNAL and order["state"] == "started":
        _show_done_outside(session, order)


@app.command()
@with_session
def complete(session: Session, id_: OrderArgument) -> None:
    """Report that the work of an order with an external driver is done."""
    _do(session, id_, "complete", "its work is reported as done")


@app.command()
@with_session
def fail(session: Session, id_: OrderArgument, reason: Reason = None) -> None:
    """Report that the work of an order with an external driver failed."""
    _do(session, id_, "fail", "its work is reported as failed", {"reason": reason} if reason else None)


@app.command()
@with_session
def heartbeat(session: Session, id_: OrderArgument) -> None:
    """Report that the work of an order with an external driver goes on."""
    _do(session, id_, "heartbeat", "its work goes on")


@app.command()
@with_session
def abandon(session: Session, id_: OrderArgument) -> None:
    """Abandon an order that failed."""
    _do(session, id_, "abandon", "given up; what was not done stays undone")


@app.command()
@with_session
def cancel(session: Session, id_: OrderArgument) -> None:
    """Cancel an order, with all its events."""
    order = _do(session, id_, "cancel", "called off, with all its events")
    if not session.json:
        show_still_degraded(session, order)


def _do(
    session: Session, typed: str, verb: str, said: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    id_ = full_id(session.client, "orders", typed)
    answer = session.client.post(f"/v1/orders/{id_}/{verb}", body)
    session.print_answer(answer, lambda: terminal.echo(f"Order {terminal.short(id_)}: {said}."))
    return dict(answer["order"])


def _show_list(session: Session, orders: list[dict[str, Any]]) -> None:
    now = session.client.get("/v1/clock")["now"] if orders else ""
    rows = (
        (
            terminal.short(order["id"]),
            _action(order),
            order["machine"] or order["host"],
            _state(order),
            formatting.countdown(order["created_at"], now),
            order["by"],
            order["why"] or _reasons(order) or order["reason"],
        )
        for order in orders
    )
    terminal.table(LIST, rows, empty="No orders: nothing is going to be done.")


def _reasons(order: dict[str, Any]) -> str:
    """Write what an order waits for, each reason once and whose it is; events are not named by their ids."""
    whose: dict[str, list[str]] = {}
    for each in order["waiting"]:
        named = whose.setdefault(each["reason"], [])
        if not is_guid(each["what"]) and each["what"] not in (*named, order["machine"], order["host"]):
            named.append(each["what"])
    return "; ".join(f"{', '.join(named)}: {why}" if named else why for why, named in whose.items())


def _show(session: Session, answer: dict[str, Any]) -> None:
    order = answer["order"]
    terminal.details(
        [
            ("order", order["id"]),
            ("action", f"{_action(order)} on {order['machine'] or order['host']}"),
            ("state", _state(order)),
            ("by", order["by"]),
            ("reason", order["reason"]),
            *([("done by", "somebody outside, who reports")] if order["driver"] == EXTERNAL else []),
            *([("emergency", order["emergency"])] if order["emergency"] else []),
            *([("rollout", order["rollout"])] if order["rollout"] else []),
            ("ordered", formatting.at(order["created_at"])),
            ("ended", formatting.at(order["ended_at"])),
            *([("deadline", formatting.at(order["deadline"]))] if order["deadline"] else []),
            ("why", order["why"]),
            ("notice", formatting.notice(order["notice"])),
        ]
    )
    if order["waiting"]:
        terminal.echo("\nWaiting:")
        show_waiting(order)
    if answer["events"]:
        terminal.echo()
        terminal.table(EVENTS, (_event(each) for each in answer["events"]), empty="")
    if order["steps"]:
        terminal.echo()
        terminal.table(STEPS, (_step(each) for each in order["steps"]), empty="")
    if order["state"] == "failed" and order["ended_at"] is None:
        short = terminal.short(order["id"])
        again = f"gate order {short} -- COMMAND" if order["driver"] == EXTERNAL else f"order retry {short}"
        terminal.echo(f"\n  Try again:  {session.command(again)}")
        terminal.echo(f"  Give it up: {session.command(f'order abandon {short}')}")


def _show_done_outside(session: Session, order: dict[str, Any]) -> None:
    """Print how work is done that was retried and is done outside."""
    short = terminal.short(order["id"])
    terminal.echo(
        "  It is done outside, so nobody begins it by itself, and long silence is a failure. Either"
    )
    terminal.echo(f"    run a command for it:   {session.command(f'gate order {short} --yes -- COMMAND')}")
    terminal.echo(f"    or do it, and report:   {session.command(f'order complete {short}')}")
    terminal.echo(f"                            {session.command(f'order fail {short}')}")


def _state(order: dict[str, Any]) -> str:
    """Return the state, and whether a failed order has been abandoned."""
    if order["state"] != "failed":
        return str(order["state"])
    return "failed" if order["ended_at"] is None else "failed, abandoned"


def _action(order: dict[str, Any]) -> str:
    return f"maintenance {order['work']}" if order["action"] == "maintenance" else str(order["action"])


def _event(event: dict[str, Any]) -> tuple[object, ...]:
    return (
        event["id"],
        event["type"],
        event["status"],
        event["resources"],
        formatting.at(event["not_before"]),
        formatting.at(event["ended_at"]),
    )


def _step(step: dict[str, Any]) -> tuple[object, ...]:
    return (
        step["machine"],
        step["state"],
        step["attempt"],
        step["target"],
        formatting.at(step["begun_at"]),
        formatting.at(step["ended_at"]),
        step["why"],
    )
