"""Seeing a gated order through: waiting for the guests, running the command, reporting how it ended.

The server may be away meanwhile, and the gate may be interrupted. Neither leaves an order behind unmentioned:
what becomes of it is printed, and what to do about it.
"""

import os
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from signal import SIGINT
from typing import TypeVar

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.gate import gate_view
from forewarn.cli.gate.interrupts import Interrupts
from forewarn.cli.gate.retrying import RetryingCaller
from forewarn.cli.session import Session
from forewarn.client.replies import Body, RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.moments import format_span_briefly
from forewarn.core.words import OrderState, StepState
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import NotedOrderWithEventsAnswer, OrderAnswer, OrderWithEventsAnswer

T = TypeVar("T")

# As often as a guest polls.
LOOK_EVERY = 1.0
# A guest that has not polled after so many looks is worth a word.
LOOKS_UNPOLLED = 3
# As long as a server lets an external driver be silent, unless it is set otherwise.
DEFAULT_SILENCE = 600.0
# Well within the limit after which silence is a failure.
BEATS_IN_LIMIT = 4
# A gate that is interrupted ends soon.
CANCELLING_SECONDS = 8.0
# What a command may take to tidy up.
ENDING_SECONDS = 10.0
NO_SERVER = 3

REPORTS = {
    "complete": "when it is done",
    "fail": "if it failed",
    "heartbeat": "now and then: silence for {silence} is a failure",
}

# What a report makes of the steps that were under way.
STATES = {"complete": StepState.DONE, "fail": StepState.FAILED}


class Gate:
    """One order whose work is done here."""

    def __init__(
        self, session: Session, interrupts: Interrupts, order: OrderAnswer, command: list[str] | None
    ) -> None:
        self._session = session
        self._interrupts = interrupts
        self._caller = RetryingCaller(interrupts)
        self._id = order.id
        self._silence = order.heartbeat_seconds or DEFAULT_SILENCE
        self._command = command

    def run(self) -> None:
        """See the order through, and end with what became of it."""
        try:
            while machines := under_way((seen := self._wait()).order):
                if not self._command:
                    self._show_reports(machines)
                    return
                self._carry_out(self._command, machines)
        except KeyboardInterrupt:
            self._cancel_order()
            raise typer.Exit(1) from None
        gate_view.show_notice(seen)

    # Waiting

    def _wait(self) -> NotedOrderWithEventsAnswer:
        """Wait until work may begin or all of it is done, and return the order as it is then.

        A host that carries two update domains of a group is done in two parts. Each change of who is awaited
        is printed once.
        """
        said: list[str] = []
        looks: Counter[str] = Counter()
        with self._interrupts.heeded():
            while True:
                seen = self._caller.call(self._look)
                if self._is_decided(seen.order):
                    return seen
                looks.update(event.id for event in seen.events)
                known = {event for event, count in looks.items() if count > LOOKS_UNPOLLED}
                lines = gate_view.progress(seen, known=known)
                for line in lines:
                    if line not in said:
                        terminal.echo(f"  {line}")
                said = lines
                threading.Event().wait(LOOK_EVERY)

    def _look(self) -> NotedOrderWithEventsAnswer:
        return self._session.client.get(self._path(), NotedOrderWithEventsAnswer).value

    def _is_decided(self, order: OrderAnswer) -> bool:
        if order.state in (OrderState.CANCELLED, OrderState.FAILED):
            why = order.why or f"see `{self._session.command('order show ' + self._id)}`"
            terminal.print_error(f"Order {self._id} is {order.state}: {why}.")
            raise typer.Exit(1)
        waiting = any(step.state is StepState.WAITING for step in order.steps)
        return bool(under_way(order)) or order.state is OrderState.DONE or not waiting

    def _show_reports(self, machines: list[str]) -> None:
        terminal.echo(f"The work may begin on {formatting.listing(machines)}. Report how it goes:")
        for report, when in REPORTS.items():
            when = when.format(silence=format_span_briefly(self._silence))
            terminal.echo(f"  {self._session.command(f'order {report} {self._id}')}   # {when}")

    # At work

    def _carry_out(self, command: list[str], machines: list[str]) -> None:
        """Run the command, and report how it ended; a failure ends this program with the command's code."""
        terminal.echo(f"The work may begin on {formatting.listing(machines)}: {' '.join(command)}")
        stop = threading.Event()
        beats = threading.Thread(target=self._send_heartbeats, args=(stop,), daemon=True)
        beats.start()
        try:
            code = self._ended(self._begun(command, machines), command[0])
            problem = f"{command[0]} ended with code {code}"
        except _NotBegun as error:
            code, problem = 1, str(error)
        finally:
            stop.set()
            beats.join(LOOK_EVERY)
        events = self._report(problem, "fail" if code else "complete", machines)
        if code:
            self._show_failed(events, problem, command)
            raise typer.Exit(code)
        terminal.echo(f"Done with {formatting.listing(machines)}.")

    def _begun(self, command: list[str], machines: list[str]) -> "subprocess.Popen[bytes]":
        environment = os.environ | {"FOREWARN_ORDER": self._id, "FOREWARN_MACHINES": ",".join(machines)}
        try:
            return subprocess.Popen(command, env=environment)  # noqa: S603 - their runbook
        except OSError as error:
            raise _NotBegun(f"{command[0]} cannot be run: {error.strerror}") from None

    def _ended(self, process: "subprocess.Popen[bytes]", name: str) -> int:
        """Wait for the command's end, and return its code; an interrupt ends it, and with it this gate.

        Then its code is not reported: one that ends well when it is asked to end need not have done its work.
        """
        try:
            with self._interrupts.heeded():
                return process.wait()
        except KeyboardInterrupt:
            self._end(process, name)
        self._leave(f"{name} was interrupted, and ended with code {process.returncode}")
        raise typer.Exit(1)

    def _end(self, process: "subprocess.Popen[bytes]", name: str) -> None:
        terminal.try_print_error(f"Ending {name}…")
        harder = [process.terminate, process.kill]
        # Ctrl-C at a terminal has reached the command too; to many a second signal means: drop everything.
        if self._interrupts.came == SIGINT and sys.stdin.isatty():
            harder.insert(0, lambda: None)
        for signal_end in harder:
            signal_end()
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDING_SECONDS)
                return

    def _send_heartbeats(self, stop: threading.Event) -> None:
        """Send heartbeats while the work goes on; a lost one does no harm while the next one comes."""
        while not stop.wait(self._silence / BEATS_IN_LIMIT):
            with suppress(RequestRefused, ServerUnreachable):
                self._post("heartbeat", key=new_key())

    # Reporting

    def _report(self, ended: str, verb: str, machines: list[str]) -> Sequence[EventAnswer]:
        """Report how the work ended, for as long as one may be silent if the server is away."""
        body = {"reason": ended} if verb == "fail" else None
        try:
            return self._reported(verb, body, machines)
        except (ServerUnreachable, KeyboardInterrupt):
            reason = f" --reason {shlex.quote(ended)}" if verb == "fail" else ""
            report = self._session.command(f"order {verb} {self._id}{reason}")
            terminal.print_error(
                f"{ended}, but that could not be reported: {self._caller.trouble}\n"
                f"Order {self._id} is not over: run `{report}` once the server is back."
            )
            raise typer.Exit(NO_SERVER) from None
        except RequestRefused as refusal:
            show = self._session.command(f"order show {self._id}")
            raise RequestRefused(f"{ended}, but that was not taken: {refusal}\nSee `{show}`.") from None

    def _reported(self, verb: str, body: Body, machines: list[str]) -> Sequence[EventAnswer]:
        key = new_key()
        try:
            return self._caller.call(lambda: self._post(verb, body, key=key), within=self._silence).events
        except RequestRefused:
            # It may know already: a server can be gone between hearing a report and answering it.
            seen = self._caller.call(self._look, within=self._silence)
            steps = [step for step in seen.order.steps if step.machine in machines]
            if any(step.state is not STATES[verb] for step in steps):
                raise
            return seen.events

    def _show_failed(self, events: Sequence[EventAnswer], problem: str, command: list[str]) -> None:
        listed = any(event.ended_at is None for event in events)
        again = self._session.command(f"gate order {self._id} -- {shlex.join(command)}")
        abandon = self._session.command(f"order abandon {self._id}")
        terminal.print_error(
            f"{problem}: order {self._id} has failed{', and its events stay listed' if listed else ''}.\n"
            f"Try again with `{again}`, or abandon it with `{abandon}`."
        )

    # Cancelling

    def _cancel_order(self) -> None:
        """Cancel the order; of one that has begun, print what is to be done about it."""
        terminal.try_print_error(f"Calling off order {self._id}…")
        try:
            self._cancel()
        except ServerUnreachable:
            cancel = self._session.command("order cancel " + self._id)
            terminal.print_error(
                f"Order {self._id} could not be called off: {self._caller.trouble}\n"
                f"It would begin with nobody to do its work: run `{cancel}` once the server is back."
            )
            raise typer.Exit(NO_SERVER) from None

    def _cancel(self) -> None:
        key = new_key()
        try:
            self._insist(lambda: self._post("cancel", key=key))
        except RequestRefused as refusal:
            order = self._insist(self._look).order
            if order.ended_at is None:
                self._leave(str(refusal))
            else:
                terminal.print_error(f"Order {self._id} is over: it is {order.state}.")
        else:
            terminal.print_error(f"Called off: order {self._id} is cancelled.")

    def _insist(self, call: Callable[[], T]) -> T:
        return self._caller.call(call, within=CANCELLING_SECONDS, heed=False)

    def _leave(self, why: str) -> None:
        """Print that an order goes on without this gate."""
        terminal.print_error(f"Order {self._id} goes on: {why}")
        again = self._session.command(f"gate order {self._id} --yes -- COMMAND")
        report = self._session.command(f"order complete {self._id}")
        terminal.echo(
            f"Nobody does its work now, and silence for {format_span_briefly(self._silence)} is a failure."
        )
        terminal.echo(f"  Take it up again:  {again}")
        terminal.echo(f"  Or report it:      {report}, or order fail")

    def _post(self, verb: str, body: Body = None, *, key: str) -> OrderWithEventsAnswer:
        path = f"{self._path()}/{verb}"
        return self._session.client.post(path, OrderWithEventsAnswer, body, key=key).value

    def _path(self) -> str:
        return f"/v1/orders/{self._id}"


class _NotBegun(Exception):
    """The command cannot be run."""


def under_way(order: OrderAnswer) -> list[str]:
    """Name the machines that may be worked on now."""
    return [step.machine for step in order.steps if step.state is StepState.RUNNING]
