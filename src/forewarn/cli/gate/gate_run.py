"""Seeing a gated order through: waiting for the guests, running the command, reporting how it ended.

The server may be away meanwhile, and the gate may be interrupted. Neither leaves an order behind unmentioned:
what becomes of it is printed, and what to do about it.
"""

import shlex
import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.gate.calls import Interrupts, RetryingCaller
from forewarn.cli.gate.gated_command import EmptyHost, GatedCommand, GateNotBegun
from forewarn.cli.gate.gated_order import (
    NO_SERVER,
    GatedOrder,
    is_service,
    is_undivided,
    is_worked_on,
    progress,
    show_notice,
    under_way,
    was_empty,
)
from forewarn.cli.session import Session
from forewarn.cli.views.order_view import show_broken_promises, show_ways_on
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.basic_types import OrderState, StepState
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.order_answers import OrderDetailWithEventsAnswer, OrderAnswer, OrderWithEventsAnswer

# As often as a guest polls.
LOOK_EVERY = 1.0
# A guest that has not polled after so many looks is worth a word.
LOOKS_UNPOLLED = 3

REPORTS = {
    "complete": "when it is done",
    "fail": "if it failed",
    "heartbeat": "now and then: silence for {silence} is a failure",
}


class Gate:
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
        """Take what is run: once for the order, or `one_by_one` for each part of it."""
        self._session = session
        self._interrupts = interrupts
        self._caller = RetryingCaller(interrupts)
        self._order = GatedOrder(session, self._caller, order)
        self._command = command
        # What is done in one go has no second part.
        self._one_by_one = one_by_one or is_undivided(order)
        self._flags = " --one-by-one" if one_by_one else ""

    def run(self) -> None:
        """See the order through, and end with what became of it."""
        ran = False
        try:
            while machines := under_way((seen := self._wait()).order):
                if not self._command:
                    self._show_reports(machines)
                    return
                if ran and not self._one_by_one:
                    self._refuse_another_part(machines)
                self._carry_out(self._command, machines)
                ran = True
                if is_service(seen.order):  # what comes after it, machines that come back, is not done here
                    seen = self._caller.call(self._order.look)
                    break
        except KeyboardInterrupt:
            self._cancel_order()
            raise click.exceptions.Exit(1) from None
        if seen.order.host is not None and was_empty(seen.order):
            self._carry_out_untold(seen.order.host)
        show_notice(seen)
        show_broken_promises(self._session, seen.order)

    # Waiting

    def _wait(self) -> OrderDetailWithEventsAnswer:
        """Wait until work may begin or all of it is done, and return the order as it is then.

        Each change of who is awaited is printed once.
        """
        said: list[str] = []
        looks: Counter[str] = Counter()
        with self._interrupts.heeded():
            while True:
                seen = self._caller.call(self._order.look)
                if self._is_decided(seen.order):
                    return seen
                looks.update(event.id for event in seen.events)
                known = {event for event, count in looks.items() if count > LOOKS_UNPOLLED}
                lines = progress(seen, known=known)
                for line in lines:
                    if line not in said:
                        terminal.echo(f"  {line}")
                said = lines
                threading.Event().wait(LOOK_EVERY)

    def _is_decided(self, order: OrderAnswer) -> bool:
        if order.state in (OrderState.CANCELLED, OrderState.FAILED):
            why = order.why or f"see `{self._session.command('order show ' + order.id)}`"
            terminal.print_error(f"Order {order.id} is {order.state}: {why}.")
            raise click.exceptions.Exit(1)
        waiting = any(step.state is StepState.WAITING for step in order.steps)
        if is_service(order):
            waiting = not is_worked_on(order)
        return bool(under_way(order)) or order.state is OrderState.DONE or not waiting

    def _show_reports(self, machines: list[str]) -> None:
        terminal.echo(f"The work may begin on {formatting.listing(machines)}. Report how it goes:")
        for report, when in REPORTS.items():
            when = when.format(silence=format_span_briefly(self._order.silence))
            terminal.echo(f"  {self._session.command(f'order {report} {self._order.id}')}   # {when}")

    # At work

    def _carry_out(self, command: Sequence[str], machines: list[str]) -> None:
        """Run the command, and report how it ended; a failure ends this program with the command's code."""
        terminal.echo(f"The work may begin on {formatting.listing(machines)}: {' '.join(command)}")
        code, problem = self._ended(command, machines)
        events = self._order.report(problem, "fail" if code else "complete", machines)
        if code:
            again = f"gate order {self._order.id}{self._flags} -- {shlex.join(command)}"
            self._order.show_failed(events, problem, again)
            raise click.exceptions.Exit(code)
        terminal.echo(f"Done with {formatting.listing(machines)}.")

    def _carry_out_untold(self, host: str) -> None:
        """Run the command for a host that carries no machine: nobody is to be told, and nothing reported."""
        if not self._command:
            terminal.echo(f"{host} carries no machines: the work may begin, and nothing is to be reported.")
            return
        empty = EmptyHost(self._session, self._caller, host)
        empty.close()
        terminal.echo(f"{host} carries no machines, the work may begin: {' '.join(self._command)}")
        try:
            code, problem = self._ended(self._command, [])
        finally:
            empty.open()
        if code:
            terminal.print_error(f"{problem}. Order {self._order.id} is over: order the work anew.")
            raise click.exceptions.Exit(code)

    def _ended(self, command: Sequence[str], machines: list[str]) -> tuple[int, str]:
        """Run the command to its end, and return its code and what is said of it.

        An interrupt ends it, and with it this gate. Then its code is not reported: one that ends well when it
        is asked to end need not have done its work.
        """
        try:
            running = GatedCommand(self._order, command, machines)
        except GateNotBegun as error:
            return 1, str(error)
        try:
            with self._interrupts.heeded():
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

    def _refuse_another_part(self, machines: list[str]) -> None:
        """Leave an order of which another part begins: a command for a whole host runs once."""
        self._leave(f"{formatting.listing(machines)} came to it later, and the command has run already")
        raise click.exceptions.Exit(1)

    # Cancelling

    def _cancel_order(self) -> None:
        """Cancel the order; of one that has begun, print what is to be done about it."""
        terminal.try_print_error(f"Calling off order {self._order.id}…")
        try:
            self._cancel()
        except ServerUnreachable:
            cancel = self._session.command("order cancel " + self._order.id)
            terminal.print_error(
                f"Order {self._order.id} could not be called off: {self._caller.trouble}\n"
                f"It would begin with nobody to do its work: run `{cancel}` once the server is back."
            )
            raise click.exceptions.Exit(NO_SERVER) from None

    def _cancel(self) -> None:
        key = new_key()
        try:
            self._caller.insist(lambda: self._order.post("cancel", key=key))
        except RequestRefused as refusal:
            order = self._caller.insist(self._order.look).order
            if order.ended_at is None:
                self._leave(str(refusal))
            else:
                terminal.print_error(f"Order {order.id} is over: it is {order.state}.")
        else:
            terminal.print_error(f"Called off: order {self._order.id} is cancelled.")

    def _leave(self, why: str) -> None:
        self._order.show_left(why, f"gate order {self._order.id}{self._flags} --yes -- COMMAND")


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
