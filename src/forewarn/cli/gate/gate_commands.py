"""`forewarn gate`: your own runbook does the work; forewarn gives notice first and says when to begin.

It announces, shows who has approved and who is awaited, waits until the work may begin, runs the command,
and completes or fails the order by the command's exit code. An order whose work failed, or whose gate has
gone, is taken up again by its id; so is a rollout.
"""

from typing import Annotated, Any, Literal

import typer

from forewarn.cli import terminal
from forewarn.cli.command_group import AFTER_DASHES, CommandAfterDashes
from forewarn.cli.gate.gate_run import Gate
from forewarn.cli.gate.gated_order import is_done_here, is_undivided, under_way
from forewarn.cli.gate.host_gate import check_program, run_on_host, see_through
from forewarn.cli.gate.interrupts import Interrupts
from forewarn.cli.gate.rollout_gate import RolloutGate
from forewarn.cli.gate.taking_up import ask_who_is_at_it, taken_up
from forewarn.cli.id_lookup import path_by_id, path_of
from forewarn.cli.options.rollout_options import with_gated_rollout
from forewarn.cli.options.shared_options import (
    Deadline,
    Heartbeat,
    HostArgument,
    MachineArgument,
    OrderArgument,
    Takes,
    Together,
    seconds_or_none,
)
from forewarn.cli.session import Noun, Session
from forewarn.cli.views.order_view import show_no_event
from forewarn.cli.views.questions import Yes as Sure
from forewarn.cli.views.questions import ask_before_emergency, ask_before_rollout
from forewarn.client.replies import RequestRefused
from forewarn.core.words import EXTERNAL, MaintenanceWord, OrderState
from forewarn.wire.answers.order_answers import (
    NotedOrderWithEventsAnswer,
    OrderAnswer,
    OrderOnMachineAnswer,
    OrderWithEventsAnswer,
)
from forewarn.wire.answers.rollout_answers import RolloutAnswer

app = Noun()

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether somebody else is at it.")]
HostAction = Annotated[
    MaintenanceWord,
    typer.Option("--action", help="What the command does to the machines."),
]
MachineAction = Annotated[
    Literal["restart", "redeploy", "freeze"],
    typer.Option("--action", help="What the command does to the machine."),
]
Command = Annotated[
    list[str] | None, typer.Argument(metavar="-- COMMAND...", help="Run when the work may begin.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Only wait until the work may begin, and run nothing.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the records.")]
Emergency = Annotated[
    str | None,
    typer.Option("--emergency", metavar="REASON", help="Shorten the notice; recorded as a broken promise."),
]
OneByOne = Annotated[
    bool,
    typer.Option(
        "--one-by-one",
        help="Run the command for each part of a host, with FOREWARN_MACHINES: for one that treats machines.",
    ),
]
Again = Annotated[
    str | None,
    typer.Option("--again", metavar="ROLLOUT", help="Take up a rollout again: by its id, or how it begins."),
]


@app.command()
def host(
    session: Session,
    name: HostArgument,
    action: HostAction,
    command: Command = None,
    wait: Wait = False,
    reason: Reason = "",
    emergency: Emergency = None,
    deadline: Deadline = None,
    takes: Takes = None,
    heartbeat: Heartbeat = None,
    one_by_one: OneByOne = False,
    together: Together = None,
    yes: Sure = False,
) -> None:
    """Gate work on a host: the command runs once, for all machines on it."""
    _check(command, wait=wait)
    body = {**_terms(reason, heartbeat), "emergency": emergency, "deadline": deadline}
    body["expected_seconds"] = seconds_or_none(takes, hint="--takes")
    done = parts(one_by_one=one_by_one, together=together)
    # A host that restarts takes its machines with it; what else is done to them in one go is theirs.
    in_place = action == "reboot" and not one_by_one
    verb = "service" if in_place else "maintenance"
    body |= {"mode": "in-place", "together": together} if in_place else {"action": action, **done}
    ask_before_emergency(session, name, emergency=emergency, notice=None, yes=yes)
    run_on_host(session, f"{path_of('host', name)}/{verb}", body, command, one_by_one=one_by_one)


@app.command()
def machine(
    session: Session,
    name: MachineArgument,
    action: MachineAction,
    command: Command = None,
    wait: Wait = False,
    reason: Reason = "",
    heartbeat: Heartbeat = None,
) -> None:
    """Gate work on one machine."""
    _check(command, wait=wait)
    body = _terms(reason, heartbeat)
    with Interrupts() as interrupts:
        path = f"{path_of('machine', name)}/{action}"
        placed = session.client.post(path, OrderOnMachineAnswer, body, **session.scope).value
        terminal.echo(f"Order {placed.order.id}:")
        show_no_event(placed)
        Gate(session, interrupts, placed.order, command).run()


@app.command()
def order(
    session: Session,
    id_: OrderArgument,
    command: Command = None,
    wait: Wait = False,
    yes: Yes = False,
    one_by_one: OneByOne = False,
) -> None:
    """Take up an order again: its work failed, or its gate has gone."""
    _check(command, wait=wait)
    path = path_by_id(session.client, OrderAnswer, id_)
    found: OrderAnswer = session.client.get(path, NotedOrderWithEventsAnswer).value.order
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
        ask_who_is_at_it(f"order {found.id}", running, yes=yes)
    with Interrupts() as interrupts:
        if found.state is OrderState.FAILED:
            found = session.client.post(f"{path}/retry", OrderWithEventsAnswer).value.order
        see_through(session, interrupts, found, command, one_by_one=one_by_one)


@app.command(cls=CommandAfterDashes)
@with_gated_rollout
def rollout(
    session: Session,
    ctx: typer.Context,
    body: dict[str, Any],
    one_by_one: OneByOne = False,
    again: Again = None,
    yes: Yes = False,
) -> None:
    """Gate work on many hosts in waves: the command runs once for each host."""
    command: list[str] = ctx.meta[AFTER_DASHES]
    _check(command, wait=False)
    if bool(body) == (again is not None):
        raise typer.BadParameter("name hosts or say --all; or take a rollout up again with --again, alone")
    flags = " --one-by-one" if one_by_one else ""
    with Interrupts() as interrupts:
        if again is not None:
            meant, over = taken_up(session, again, one_by_one=one_by_one, yes=yes)
        else:
            body |= {"driver": EXTERNAL, **parts(one_by_one=one_by_one, together=body["together"])}
            ask_before_rollout(session, body, yes=yes)
            meant, over = session.client.post("/v1/rollouts", RolloutAnswer, body).value, frozenset()
        terminal.echo(f"Rollout {meant.id}:")
        for warning in meant.warnings:
            terminal.echo(f"  Warning: {warning}")
        RolloutGate(session, interrupts, meant, command, over=over, flags=flags).run()


def parts(*, one_by_one: bool, together: str | None) -> dict[str, Any]:
    """Return what is asked of the parts of a host: that there are none, unless they are done one by one."""
    if one_by_one and together is not None:
        raise typer.BadParameter("say --one-by-one or --together, not both")
    return {"whole": True if not one_by_one else None, "together": together}


def _terms(reason: str, heartbeat: str | None) -> dict[str, Any]:
    silence = seconds_or_none(heartbeat, hint="--heartbeat")
    return {"driver": EXTERNAL, "reason": reason, "heartbeat_seconds": silence}


def _check(command: list[str] | None, *, wait: bool) -> None:
    if not command and not wait:
        raise typer.BadParameter("nothing to run: give a command after --, or --wait")
    check_program(command)
