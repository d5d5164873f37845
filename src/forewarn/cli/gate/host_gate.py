"""Work on a host that a command here does: ordered, and seen through to its end."""

import shutil
from collections.abc import Sequence
from typing import Any

import click

from forewarn.cli import terminal
from forewarn.cli.gate.gate_run import Gate
from forewarn.cli.gate.interrupts import Interrupts
from forewarn.cli.session import Session
from forewarn.cli.views.ways_on import show_ways_on
from forewarn.wire.answers.order_answers import OrderAnswer, OrderWithEventsAnswer


def check_program(command: Sequence[str] | None) -> None:
    """Refuse what could not be run before it is announced: guests drain as soon as it is."""
    if command and shutil.which(command[0]) is None:
        raise click.BadParameter(f"{command[0]} cannot be run: there is no such program here")


def run_on_host(
    session: Session,
    path: str,
    body: dict[str, Any],
    command: Sequence[str] | None,
    *,
    one_by_one: bool = False,
) -> None:
    """Order work on a host, and see it through: an interrupt from here on is about the order."""
    with Interrupts() as interrupts:
        placed = session.client.post(path, OrderWithEventsAnswer, body).value
        if placed.order.emergency:
            terminal.fold(f"An emergency: {placed.order.emergency}")
            show_ways_on(session, placed.order)
        see_through(session, interrupts, placed.order, command, one_by_one=one_by_one)


def see_through(
    session: Session,
    interrupts: Interrupts,
    order: OrderAnswer,
    command: Sequence[str] | None,
    *,
    one_by_one: bool,
) -> None:
    """Wait until the work of an order may begin, do it, and report how it ended."""
    terminal.echo(f"Order {order.id}:")
    Gate(session, interrupts, order, command, one_by_one=one_by_one).run()
