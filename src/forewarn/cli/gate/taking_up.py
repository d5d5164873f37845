"""Taking up again what a gate has left: somebody else may be at it, and what failed is done once more."""

import sys

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.gate.gated_order import is_done_here, under_way
from forewarn.cli.id_lookup import path_by_id
from forewarn.cli.session import Session
from forewarn.client.replies import RequestRefused
from forewarn.core.model.rollout import RolloutState
from forewarn.core.words import OrderState
from forewarn.wire.answers.order_answers import NotedOrderWithEventsAnswer, OrderAnswer, OrderWithEventsAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer


def ask_who_is_at_it(what: str, machines: list[str], *, yes: bool) -> None:
    """Ask before work is begun that another gate may be doing at this moment."""
    if yes:
        return
    under_way = f"work on {formatting.listing(machines)} is under way, perhaps in other hands"
    if not sys.stdin.isatty():
        raise RequestRefused(f"{under_way}: say --yes if nobody is at it any more")
    if not typer.confirm(f"{under_way[0].upper()}{under_way[1:]}. Do it here?", err=True):
        raise RequestRefused(f"{what} is left to whoever is at it")


def taken_up(
    session: Session, typed: str, *, one_by_one: bool, yes: bool
) -> tuple[RolloutAnswer, frozenset[str]]:
    """Go on with a rollout that stands or whose gate has gone; also return its orders that are over.

    What has failed is tried again, unless it was abandoned.
    """
    path = path_by_id(session.client, RolloutAnswer, typed)
    rollout: RolloutAnswer = session.client.get(path, RolloutAnswer).value
    if rollout.ended_at is not None:
        raise RequestRefused(f"rollout {rollout.id} is {rollout.state}: begin another one")
    if not (one_by_one or rollout.whole or rollout.together):
        raise RequestRefused(
            f"rollout {rollout.id} does hosts in parts: say --one-by-one for a command that treats machines"
        )
    orders = [_order(session, id_) for wave in rollout.waves for id_ in wave.orders]
    mine = [order for order in orders if order.ended_at is None and is_done_here(order)]
    if running := [machine for order in mine for machine in under_way(order)]:
        ask_who_is_at_it(f"rollout {rollout.id}", running, yes=yes)
    for order in mine:
        if order.state is OrderState.FAILED:
            session.client.post(f"/v1/orders/{order.id}/retry", OrderWithEventsAnswer)
    if rollout.state is RolloutState.PAUSED and not rollout.aborting:
        terminal.echo(f"It was paused: {rollout.why}")
        rollout = session.client.post(f"{path}/resume", RolloutAnswer, {"version": rollout.version}).value
    return rollout, frozenset(order.id for order in orders if order.ended_at is not None)


def _order(session: Session, id_: str) -> OrderAnswer:
    return session.client.get(f"/v1/orders/{id_}", NotedOrderWithEventsAnswer).value.order
