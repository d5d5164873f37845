"""`forewarn gate`: give notice, wait for the guests, then run your own command.

A gate announces the work and shows which guests have approved. It runs the command once the work may start,
and completes or fails the order by the exit code. A failed order or rollout, and one whose gate has exited,
can be resumed by its id.
"""

import sys
from collections.abc import Sequence
from typing import Any, get_args

import click

from forewarn.cli import formatting, options, terminal
from forewarn.cli.command_group import CommandAfterDashes, WrongUsage, argument, flag, option
from forewarn.cli.commands.rollout_commands import GATED_ROLLOUT, gated_rollout_body
from forewarn.cli.gate.gated_order import is_done_here, is_undivided, under_way
from forewarn.cli.gate.interrupts import Interrupts
from forewarn.cli.gate.order_gate import OrderGate, check_program, run_gate, run_on_host
from forewarn.cli.gate.rollout_gate import RolloutGate
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.confirmation import YES, ask_before_emergency, ask_before_rollout
from forewarn.cli.views.order_view import show_no_event
from forewarn.client.replies import RequestRefused
from forewarn.core.basic_types import EXTERNAL, MaintenanceWord, OrderState
from forewarn.core.model.rollout import RolloutState
from forewarn.wire.answers.order_answers import (
    OrderAnswer,
    OrderDetailWithEventsAnswer,
    OrderOnMachineAnswer,
    OrderWithEventsAnswer,
)
from forewarn.wire.answers.rollout_answers import RolloutAnswer

app = Noun()

COMMAND = argument("command", "-- COMMAND...", "The command to run when the work may start.", nargs=-1)
WAIT = flag("--wait", "Run nothing; return when the work may start.")
ONE_BY_ONE = flag(
    "--one-by-one",
    "Run the command once for each part of a host, with the machines in FOREWARN_MACHINES.",
)
AGAIN = option("--again", "ROLLOUT", "Resume this rollout, by its id or a prefix.")
RESUME = flag("--yes", "Skip the question whether another gate does the work.")


def _action(*words: str) -> click.Option:
    about = "The effect of the command on the machines."
    return option("--action", None, about, type=click.Choice(words), required=True)


@app.verb(
    options.HOST,
    _action(*get_args(MaintenanceWord)),
    COMMAND,
    WAIT,
    options.REASON,
    option("--emergency", "REASON", "Shorten the notice. Recorded as a broken promise."),
    options.DEADLINE,
    options.TAKES,
    options.HEARTBEAT,
    ONE_BY_ONE,
    options.TOGETHER,
    YES,
)
def host(
    session: Session,
    name: str,
    action: MaintenanceWord,
    command: Sequence[str],
    wait: bool,
    one_by_one: bool,
    yes: bool,
    **body: Any,
) -> None:
    """Gate work on a host: the command runs once, for all its machines."""
    _check(command, wait=wait)
    body["driver"] = EXTERNAL
    # A host that reboots restarts its machines: that is work on the host, not on each machine.
    in_place = action == "reboot" and not one_by_one
    if in_place:
        body["mode"] = "in-place"
    else:
        body |= {"action": action, "whole": _whole(one_by_one, body["together"])}
    ask_before_emergency(session, name, body, yes=yes)
    verb = "service" if in_place else "maintenance"
    run_on_host(session, f"{options.path_of('host', name)}/{verb}", body, command, one_by_one=one_by_one)


@app.verb(
    options.MACHINE,
    _action("restart", "redeploy", "freeze"),
    COMMAND,
    WAIT,
    options.REASON,
    options.HEARTBEAT,
)
def machine(
    session: Session, name: str, action: str, command: Sequence[str], wait: bool, **body: Any
) -> None:
    """Gate work on one machine."""
    _check(command, wait=wait)
    with Interrupts() as interrupts:
        path = f"{options.path_of('machine', name)}/{action}"
        body["driver"] = EXTERNAL
        placed = session.client.post(path, OrderOnMachineAnswer, body, **session.scope).value
        terminal.echo(f"Order {placed.order.id}:")
        show_no_event(placed)
        OrderGate(session, interrupts, placed.order, command).run()


@app.verb(options.ORDER, COMMAND, WAIT, RESUME, ONE_BY_ONE)
def order(
    session: Session, id_: str, command: Sequence[str], wait: bool, yes: bool, one_by_one: bool
) -> None:
    """Resume an order whose work has failed or whose gate has exited."""
    _check(command, wait=wait)
    path = options.path_by_id(session.client, OrderAnswer, id_)
    found: OrderAnswer = session.client.get(path, OrderDetailWithEventsAnswer).value.order
    if not is_done_here(found):
        raise RequestRefused(f"the server itself does order {found.id}: a gate has nothing to run")
    if found.ended_at is not None:
        raise RequestRefused(f"order {found.id} is {found.state}: place a new order")
    if len(found.stages) > 1 and not is_undivided(found) and not one_by_one:
        raise RequestRefused(
            f"order {found.id} has {len(found.stages)} parts: use --one-by-one to run the command for each; "
            f"to run it once for {found.host}, cancel the order and use `gate host` --together"
        )
    if found.state is not OrderState.FAILED and (running := under_way(found)):
        _confirm_resume(f"order {found.id}", running, yes=yes)
    with Interrupts() as interrupts:
        if found.state is OrderState.FAILED:
            found = session.client.post(f"{path}/retry", OrderWithEventsAnswer).value.order
        run_gate(session, interrupts, found, command, one_by_one=one_by_one)


@app.verb(*GATED_ROLLOUT, ONE_BY_ONE, AGAIN, RESUME, cls=CommandAfterDashes)
def rollout(
    session: Session, command: Sequence[str], one_by_one: bool, again: str | None, yes: bool, **typed: Any
) -> None:
    """Gate work on many hosts in waves: the command runs once for each host."""
    body = gated_rollout_body(**typed)
    _check(command, wait=False)
    if bool(body) == (again is not None):
        raise WrongUsage("HOST, --all, --again", "name hosts, use --all, or resume with --again")
    flags = " --one-by-one" if one_by_one else ""
    with Interrupts() as interrupts:
        if again is not None:
            rollout, over = _resumed(session, again, one_by_one=one_by_one, yes=yes)
        else:
            body |= {"driver": EXTERNAL, "whole": _whole(one_by_one, body["together"])}
            ask_before_rollout(session, body, yes=yes)
            rollout, over = session.client.post("/v1/rollouts", RolloutAnswer, body).value, frozenset()
        terminal.echo(f"Rollout {rollout.id}:")
        for warning in rollout.warnings:
            terminal.echo(f"  Warning: {warning}")
        RolloutGate(session, interrupts, rollout, command, over=over, flags=flags).run()


def _whole(one_by_one: bool, together: str | None) -> bool | None:
    """Return whether the machines of a host must be done at once."""
    if one_by_one and together is not None:
        raise WrongUsage("--one-by-one, --together", "choose one of them")
    return None if one_by_one else True


def _check(command: Sequence[str], *, wait: bool) -> None:
    if not command and not wait:
        raise WrongUsage("COMMAND", "give a command after --, or --wait")
    check_program(command)


def _confirm_resume(what: str, machines: list[str], *, yes: bool) -> None:
    """Ask before resuming work that another gate may be doing now."""
    if yes:
        return
    running = f"{what} is working on {formatting.listing(machines)}, perhaps from another gate"
    if not sys.stdin.isatty():
        raise RequestRefused(f"{running}; use --yes if no other gate runs")
    if not click.confirm(f"{running[0].upper()}{running[1:]}. Continue here?", err=True):
        raise RequestRefused(f"{what} was not resumed")


def _resumed(
    session: Session, typed: str, *, one_by_one: bool, yes: bool
) -> tuple[RolloutAnswer, frozenset[str]]:
    """Resume a rollout that is paused or whose gate has exited; also return its orders that are over.

    Failed orders are retried, unless they were abandoned.
    """
    path = options.path_by_id(session.client, RolloutAnswer, typed)
    rollout: RolloutAnswer = session.client.get(path, RolloutAnswer).value
    if rollout.ended_at is not None:
        raise RequestRefused(f"rollout {rollout.id} is {rollout.state}: start a new one")
    if not (one_by_one or rollout.whole or rollout.together):
        raise RequestRefused(
            f"rollout {rollout.id} does hosts in parts: use --one-by-one to run the command for each part"
        )
    orders = [session.order(id_) for wave in rollout.waves for id_ in wave.orders]
    mine = [order for order in orders if order.ended_at is None and is_done_here(order)]
    if running := [machine for order in mine for machine in under_way(order)]:
        _confirm_resume(f"rollout {rollout.id}", running, yes=yes)
    for order in mine:
        if order.state is OrderState.FAILED:
            session.client.post(f"/v1/orders/{order.id}/retry", OrderWithEventsAnswer)
    if rollout.state is RolloutState.PAUSED and not rollout.aborting:
        terminal.echo(f"The rollout was paused: {rollout.why}")
        rollout = session.client.post(f"{path}/resume", RolloutAnswer, {"version": rollout.version}).value
    return rollout, frozenset(order.id for order in orders if order.ended_at is not None)
