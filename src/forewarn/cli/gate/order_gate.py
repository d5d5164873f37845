"""The gate of one order: wait for the guests, run the command, report how it ended.

The server may be unreachable meanwhile, and the gate may be interrupted. In both cases the gate prints the
state of the order and the next command.
"""

import shlex
import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import WrongUsage
from forewarn.cli.gate.gated_command import CommandNotStarted, EmptyHost, GatedCommand
from forewarn.cli.gate.gated_order import (
    NO_SERVER,
    GatedOrder,
    is_host_done,
    is_service,
    is_undivided,
    progress,
    show_notice,
    under_way,
    was_empty,
)
from forewarn.cli.gate.interrupts import Interrupts, RetryingCaller
from forewarn.cli.session import Session
from forewarn.cli.views.order_view import show_broken_promises, show_ways_on
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.basic_types import OrderState, StepState
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.order_answers import (
    OrderAnswer,
    OrderDetailWithEventsAnswer,
    OrderWithEventsAnswer,
)

# As often as a guest polls.
LOOK_SECONDS = 1.0
# After this many looks the gate names the guests that have not polled.
LOOKS_UNPOLLED = 3

REPORTS = {
    "complete": "when it is done",
    "fail": "if it failed",
    "heartbeat": "regularly: the order fails after {silence} of silence",
}


class OrderGate:
    """One order whose work is done here."""

    def __init__(
        self,
        session: Session,
        interrupts: Interrupts,
        order: OrderAnswer,
        command: Sequence[str] | None,
        *,
        one_by_one: bool = False,
    ) -> None:
        """Take the command to run: once for the order or, with `one_by_one`, for each part of it."""
        self._session = session
        self._interrupts = interrupts
        self._caller = RetryingCaller(interrupts)
        self._order = GatedOrder(session, self._caller, order)
        self._command = command
        self._one_by_one = one_by_one or is_undivided(order)
        self._again = f"gate order {order.id}{' --one-by-one' if one_by_one else ''}"

    def run(self) -> None:
        """Wait for the order, run the command, and show the outcome."""
        ran = False
        try:
            while machines := under_way((seen := self._wait()).order):
                if not self._command:
                    self._show_reports(machines)
                    return
                if ran and not self._one_by_one:  # a command for a whole host runs once
                    self._leave(f"{formatting.listing(machines)} joined after the command had run")
                    raise click.exceptions.Exit(1)
                self._run_command(self._command, machines)
                ran = True
                if is_service(seen.order):  # the server itself moves the machines back
                    seen = self._caller.call(self._order.look)
                    break
        except KeyboardInterrupt:
            self._cancel_order()
            raise click.exceptions.Exit(1) from None
        if seen.order.host is not None and was_empty(seen.order):
            self._run_on_empty_host(seen.order.host)
        show_notice(seen)
        show_broken_promises(self._session, seen.order)

    def _wait(self) -> OrderDetailWithEventsAnswer:
        """Wait until work may start or the order is done; print each change of the guests' approvals."""
        shown: list[str] = []
        looks: Counter[str] = Counter()
        with self._interrupts.raising():
            while True:
                seen = self._caller.call(self._order.look)
                if self._is_decided(seen.order):
                    return seen
                looks.update(event.id for event in seen.events)
                known = {event for event, count in looks.items() if count > LOOKS_UNPOLLED}
                lines = progress(seen, known=known)
                for line in lines:
                    if line not in shown:
                        terminal.echo(f"  {line}")
                shown = lines
                threading.Event().wait(LOOK_SECONDS)

    def _is_decided(self, order: OrderAnswer) -> bool:
        if order.state in (OrderState.CANCELLED, OrderState.FAILED):
            why = order.why or f"see `{self._session.command('order show ' + order.id)}`"
            terminal.print_error(f"order {order.id} is {order.state}: {why}")
            raise click.exceptions.Exit(1)
        waiting = any(step.state is StepState.WAITING for step in order.steps)
        if is_service(order):
            waiting = not is_host_done(order)
        return bool(under_way(order)) or order.state is OrderState.DONE or not waiting

    def _show_reports(self, machines: list[str]) -> None:
        terminal.echo(f"Work may start on {formatting.listing(machines)}. Report its progress:")
        for report, when in REPORTS.items():
            when = when.format(silence=format_span_briefly(self._order.silence))
            terminal.echo(f"  {self._session.command(f'order {report} {self._order.id}')}   # {when}")

    def _run_command(self, command: Sequence[str], machines: list[str]) -> None:
        """Run the command and report how it ended; a failure ends this program with the command's code."""
        terminal.echo(f"Work may start on {formatting.listing(machines)}: {' '.join(command)}")
        code, problem = self._exit_code(command, machines)
        events = self._order.report(problem, "fail" if code else "complete", machines)
        if code:
            self._order.show_failed(events, problem, f"{self._again} -- {shlex.join(command)}")
            raise click.exceptions.Exit(code)
        terminal.echo(f"Done: {formatting.listing(machines)}.")

    def _run_on_empty_host(self, host: str) -> None:
        """Run the command for a host without machines: there is no notice and no report."""
        if not self._command:
            terminal.echo(f"{host} has no machines: work may start, and needs no report.")
            return
        empty = EmptyHost(self._session, self._caller, host)
        empty.close()
        terminal.echo(f"{host} has no machines; work may start: {' '.join(self._command)}")
        try:
            code, problem = self._exit_code(self._command, [])
        finally:
            empty.open()
        if code:
            terminal.print_error(f"{problem}; order {self._order.id} is over: place a new order")
            raise click.exceptions.Exit(code)

    def _exit_code(self, command: Sequence[str], machines: list[str]) -> tuple[int, str]:
        """Run the command, and return its exit code with a description.

        An interrupt ends the command and this gate. The code is then not reported, because a command that
        exits with 0 after a signal may not have done its work.
        """
        try:
            running = GatedCommand(self._order, command, machines)
        except CommandNotStarted as error:
            return 1, str(error)
        try:
            with self._interrupts.raising():
                code = running.wait()
        except KeyboardInterrupt:
            running.end(self._interrupts)
        else:
            return code, f"{running.name} ended with code {code}"
        finally:
            running.close()
        interrupted = f"{running.name} was interrupted, and ended with code {running.code}"
        if machines:
            self._leave(interrupted)
        else:
            terminal.print_error(interrupted)
        raise click.exceptions.Exit(1)

    def _cancel_order(self) -> None:
        """Cancel the order. If that is impossible, print the next command."""
        terminal.try_print_error(f"cancelling order {self._order.id}…")
        try:
            self._cancel()
        except ServerUnreachable:
            cancel = self._session.command("order cancel " + self._order.id)
            terminal.print_error(
                f"order {self._order.id} could not be cancelled: {self._caller.trouble}\n"
                f"It will start without a gate. Run `{cancel}` once the server answers."
            )
            raise click.exceptions.Exit(NO_SERVER) from None

    def _cancel(self) -> None:
        key = new_key()
        try:
            self._caller.call_last(lambda: self._order.post("cancel", key=key))
        except RequestRefused as refusal:
            order = self._caller.call_last(self._order.look).order
            if order.ended_at is None:
                self._leave(str(refusal))
            else:
                terminal.print_error(f"order {order.id} is {order.state}")
        else:
            terminal.print_error(f"order {self._order.id} is cancelled")

    def _leave(self, why: str) -> None:
        self._order.show_left(why, f"{self._again} --yes -- COMMAND")


def check_program(command: Sequence[str] | None) -> None:
    """Refuse a missing program before the work is announced, because guests drain at once."""
    if command and shutil.which(command[0]) is None:
        raise WrongUsage("COMMAND", f"program {command[0]} does not exist here")


def run_on_host(
    session: Session,
    path: str,
    body: dict[str, Any],
    command: Sequence[str] | None,
    *,
    one_by_one: bool = False,
) -> None:
    """Order work on a host, and run its gate; an interrupt from here on cancels the order."""
    with Interrupts() as interrupts:
        placed = session.client.post(path, OrderWithEventsAnswer, body).value
        if placed.order.emergency:
            terminal.echo_wrapped(f"Emergency: {placed.order.emergency}")
            show_ways_on(session, placed.order)
        run_gate(session, interrupts, placed.order, command, one_by_one=one_by_one)


def run_gate(
    session: Session,
    interrupts: Interrupts,
    order: OrderAnswer,
    command: Sequence[str] | None,
    *,
    one_by_one: bool,
) -> None:
    """Run the gate of an order."""
    terminal.echo(f"Order {order.id}:")
    OrderGate(session, interrupts, order, command, one_by_one=one_by_one).run()
