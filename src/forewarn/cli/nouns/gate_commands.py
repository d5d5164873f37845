"""`forewarn gate`: your own runbook does the work; forewarn gives notice first and says when to begin.

It announces, shows who has approved and who is awaited, waits until the work may begin, runs the command,
and completes or fails the order by the command's exit code. An order whose work failed, or whose gate has
gone, is taken up again by its id; so is a rollout.
"""

import sys
from collections.abc import Sequence
from typing import Any, Literal, get_args

import click

from forewarn.cli import formatting, options, terminal
from forewarn.cli.command_group import CommandAfterDashes, argument, flag, option
from forewarn.cli.gate.calls import Interrupts
from forewarn.cli.gate.gate_run import Gate, check_program, run_on_host, see_through
from forewarn.cli.gate.gated_order import is_done_here, is_undivided, under_way
from forewarn.cli.gate.rollout_gate import RolloutGate
from forewarn.cli.nouns.rollout_commands import GATED_ROLLOUT, gated_rollout_body
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.order_view import show_no_event
from forewarn.cli.views.questions import YES as SURE
from forewarn.cli.views.questions import ask_before_emergency, ask_before_rollout
from forewarn.client.replies import RequestRefused
from forewarn.core.basic_types import EXTERNAL, MaintenanceWord, OrderState
from forewarn.core.model.rollout import RolloutState
from forewarn.wire.answers.order_answers import (
    OrderDetailWithEventsAnswer,
    OrderAnswer,
    OrderOnMachineAnswer,
    OrderWithEventsAnswer,
)
from forewarn.wire.answers.rollout_answers import RolloutAnswer

app = Noun()

YES = flag("--yes", "Do not ask whether somebody else is at it.")
HOST_ACTION = option(
    "--action",
    None,
    "What the command does to the machines.",
    type=click.Choice(get_args(MaintenanceWord)),
    required=True,
)
MACHINE_ACTION = option(
    "--action",
    None,
    "What the command does to the machine.",
    type=click.Choice(["restart", "redeploy", "freeze"]),
    required=True,
)
COMMAND = argument("command", "-- COMMAND...", "Run when the work may begin.", nargs=-1)
WAIT = flag("--wait", "Only wait until the work may begin, and run nothing.")
REASON = option("--reason", "TEXT", "Why, for the records.", default="")
EMERGENCY = option("--emergency", "REASON", "Shorten the notice; recorded as a broken promise.")
ONE_BY_ONE = flag(
    "--one-by-one",
    "Run the command for each part of a host, with FOREWARN_MACHINES: for one that treats machines.",
)
AGAIN = option("--again", "ROLLOUT", "Take up a rollout again: by its id, or how it begins.")


@app.verb(
    options.HOST,
    HOST_ACTION,
    COMMAND,
    WAIT,
    REASON,
    EMERGENCY,
    options.DEADLINE,
    options.TAKES,
    options.HEARTBEAT,
    ONE_BY_ONE,
    options.TOGETHER,
    SURE,
)
def host(
    session: Session,
    name: str,
    action: MaintenanceWord,
    command: Sequence[str],
    wait: bool,
    reason: str,
    emergency: str | None,
    deadline: str | None,
    takes: str | None,
    heartbeat: str | None,
    one_by_one: bool,
    together: str | None,
    yes: bool,
) -> None:
    """Gate work on a host: the command runs once, for all machines on it."""
    _check(command, wait=wait)
    body = {**_terms(reason, heartbeat), "emergency": emergency, "deadline": deadline}
    body["expected_seconds"] = options.seconds_or_none(takes, hint="--takes")
    done = _parts(one_by_one=one_by_one, together=together)
    # A host that restarts takes its machines with it; what else is done to them in one go is theirs.
    in_place = action == "reboot" and not one_by_one
    verb = "service" if in_place else "maintenance"
    body |= {"mode": "in-place", "together": together} if in_place else {"action": action, **done}
    ask_before_emergency(session, name, emergency=emergency, notice=None, yes=yes)
    run_on_host(session, f"{options.path_of('host', name)}/{verb}", body, command, one_by_one=one_by_one)


@app.verb(options.MACHINE, MACHINE_ACTION, COMMAND, WAIT, REASON, options.HEARTBEAT)
def machine(
    session: Session,
    name: str,
    action: Literal["restart", "redeploy", "freeze"],
    command: Sequence[str],
    wait: bool,
    reason: str,
    heartbeat: str | None,
) -> None:
    """Gate work on one machine."""
    _check(command, wait=wait)
    body = _terms(reason, heartbeat)
    with Interrupts() as interrupts:
        path = f"{options.path_of('machine', name)}/{action}"
        placed = session.client.post(path, OrderOnMachineAnswer, body, **session.scope).value
        terminal.echo(f"Order {placed.order.id}:")
        show_no_event(placed)
        Gate(session, interrupts, placed.order, command).run()


@app.verb(options.ORDER, COMMAND, WAIT, YES, ONE_BY_ONE)
def order(
    session: Session, id_: str, command: Sequence[str], wait: bool, yes: bool, one_by_one: bool
) -> None:
    """Take up an order again: its work failed, or its gate has gone."""
    _check(command, wait=wait)
    path = options.path_by_id(session.client, OrderAnswer, id_)
    found: OrderAnswer = session.client.get(path, OrderDetailWithEventsAnswer).value.order
    if not is_done_here(found):
        raise RequestRefused(
            f"order {found.id} is done by the server itself: there is nothing to run for it here"
        )
    if found.ended_at is not None:
        raise RequestRefused(f"order {found.id} is over ({found.state}): order the work anew")
    if len(found.stages) > 1 and not is_undivided(found) and not one_by_one:
        raise RequestRefused(
            f"order {found.id} is done in {len(found.stages)} parts: say --one-by-one for a command that "
            f"treats machines; for one that treats {found.host} whole, cancel it, then `gate host` --together"
        )
    if found.state is not OrderState.FAILED and (running := under_way(found)):
        _ask_who_is_at_it(f"order {found.id}", running, yes=yes)
    with Interrupts() as interrupts:
        if found.state is OrderState.FAILED:
            found = session.client.post(f"{path}/retry", OrderWithEventsAnswer).value.order
        see_through(session, interrupts, found, command, one_by_one=one_by_one)


@app.verb(*GATED_ROLLOUT, ONE_BY_ONE, AGAIN, YES, cls=CommandAfterDashes)
def rollout(
    session: Session, command: Sequence[str], one_by_one: bool, again: str | None, yes: bool, **typed: Any
) -> None:
    """Gate work on many hosts in waves: the command runs once for each host."""
    body = gated_rollout_body(**typed)
    _check(command, wait=False)
    if bool(body) == (again is not None):
        raise click.BadParameter("name hosts or say --all; or take a rollout up again with --again, alone")
    flags = " --one-by-one" if one_by_one else ""
    with Interrupts() as interrupts:
        if again is not None:
            meant, over = _taken_up(session, again, one_by_one=one_by_one, yes=yes)
        else:
            body |= {"driver": EXTERNAL, **_parts(one_by_one=one_by_one, together=body["together"])}
            ask_before_rollout(session, body, yes=yes)
            meant, over = session.client.post("/v1/rollouts", RolloutAnswer, body).value, frozenset()
        terminal.echo(f"Rollout {meant.id}:")
        for warning in meant.warnings:
            terminal.echo(f"  Warning: {warning}")
        RolloutGate(session, interrupts, meant, command, over=over, flags=flags).run()


def _parts(*, one_by_one: bool, together: str | None) -> dict[str, Any]:
    """Return what is asked of the parts of a host: that there are none, unless they are done one by one."""
    if one_by_one and together is not None:
        raise click.BadParameter("say --one-by-one or --together, not both")
    return {"whole": True if not one_by_one else None, "together": together}


def _terms(reason: str, heartbeat: str | None) -> dict[str, Any]:
    silence = options.seconds_or_none(heartbeat, hint="--heartbeat")
    return {"driver": EXTERNAL, "reason": reason, "heartbeat_seconds": silence}


def _check(command: Sequence[str], *, wait: bool) -> None:
    if not command and not wait:
        raise click.BadParameter("nothing to run: give a command after --, or --wait")
    check_program(command)


def _ask_who_is_at_it(what: str, machines: list[str], *, yes: bool) -> None:
    """Ask before work is begun that another gate may be doing at this moment."""
    if yes:
        return
    under_way = f"work on {formatting.listing(machines)} is under way, perhaps in other hands"
    if not sys.stdin.isatty():
        raise RequestRefused(f"{under_way}: say --yes if nobody is at it any more")
    if not click.confirm(f"{under_way[0].upper()}{under_way[1:]}. Do it here?", err=True):
        raise RequestRefused(f"{what} is left to whoever is at it")


def _taken_up(
    session: Session, typed: str, *, one_by_one: bool, yes: bool
) -> tuple[RolloutAnswer, frozenset[str]]:
    """Go on with a rollout that stands or whose gate has gone; also return its orders that are over.

    What has failed is tried again, unless it was abandoned.
    """
    path = options.path_by_id(session.client, RolloutAnswer, typed)
    rollout: RolloutAnswer = session.client.get(path, RolloutAnswer).value
    if rollout.ended_at is not None:
        raise RequestRefused(f"rollout {rollout.id} is {rollout.state}: begin another one")
    if not (one_by_one or rollout.whole or rollout.together):
        raise RequestRefused(
            f"rollout {rollout.id} does hosts in parts: say --one-by-one for a command that treats machines"
        )
    orders = [session.order(id_) for wave in rollout.waves for id_ in wave.orders]
    mine = [order for order in orders if order.ended_at is None and is_done_here(order)]
    if running := [machine for order in mine for machine in under_way(order)]:
        _ask_who_is_at_it(f"rollout {rollout.id}", running, yes=yes)
    for order in mine:
        if order.state is OrderState.FAILED:
            session.client.post(f"/v1/orders/{order.id}/retry", OrderWithEventsAnswer)
    if rollout.state is RolloutState.PAUSED and not rollout.aborting:
        terminal.echo(f"It was paused: {rollout.why}")
        rollout = session.client.post(f"{path}/resume", RolloutAnswer, {"version": rollout.version}).value
    return rollout, frozenset(order.id for order in orders if order.ended_at is not None)
