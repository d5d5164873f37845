"""The calls about one order whose work is done here: looking at it, heartbeats, reports, leaving it."""

import shlex
from collections.abc import Sequence

import typer

from forewarn.cli import terminal
from forewarn.cli.gate.retrying import RetryingCaller
from forewarn.cli.session import Session
from forewarn.client.replies import Body, RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.moments import format_span_briefly
from forewarn.core.words import EXTERNAL, Action, HostTask, OrderState, StageKind, StepState
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import (
    HeardAnswer,
    HostStepAnswer,
    NotedOrderWithEventsAnswer,
    OrderAnswer,
    OrderWithEventsAnswer,
)

# As long as a server lets an external driver be silent, unless it is set otherwise.
DEFAULT_SILENCE = 600.0
NO_SERVER = 3

# What a report makes of the steps that were under way.
STATES = {"complete": StepState.DONE, "fail": StepState.FAILED}


class GatedOrder:
    """One order whose work is done here, as the server knows it."""

    def __init__(self, session: Session, caller: RetryingCaller, order: OrderAnswer) -> None:
        self._session = session
        self._caller = caller
        self.id = order.id
        self.host = order.host
        self.silence = order.heartbeat_seconds or DEFAULT_SILENCE

    def look(self) -> NotedOrderWithEventsAnswer:
        """Read it anew."""
        return self._session.client.get(self._path, NotedOrderWithEventsAnswer).value

    def post(self, verb: str, body: Body = None, *, key: str) -> OrderWithEventsAnswer:
        """Ask something of the server about it."""
        path = f"{self._path}/{verb}"
        return self._session.client.post(path, OrderWithEventsAnswer, body, key=key).value

    def take_up(self) -> str | None:
        """Report that the work begins, and return why it must not; None: it may.

        Until then an abort calls the work off. From then on the work is done to its end.
        """
        key = new_key()
        try:
            return self._caller.call(lambda: self.beat(key=key)).stop
        except RequestRefused as refusal:
            return str(refusal)

    def beat(self, *, key: str) -> HeardAnswer:
        """Report that the work goes on, and hear whether it should."""
        return self._session.client.post(f"{self._path}/heartbeat", HeardAnswer, key=key).value

    def report(self, ended: str, verb: str, machines: Sequence[str]) -> Sequence[EventAnswer]:
        """Report how the work ended, for as long as one may be silent if the server is away."""
        body = {"reason": ended} if verb == "fail" else None
        try:
            return self._reported(verb, body, machines)
        except (ServerUnreachable, KeyboardInterrupt):
            reason = f" --reason {shlex.quote(ended)}" if verb == "fail" else ""
            report = self._session.command(f"order {verb} {self.id}{reason}")
            terminal.print_error(
                f"{ended}, but that could not be reported: {self._caller.trouble}\n"
                f"Order {self.id} is not over: run `{report}` once the server is back."
            )
            raise typer.Exit(NO_SERVER) from None
        except RequestRefused as refusal:
            show = self._session.command(f"order show {self.id}")
            raise RequestRefused(f"{ended}, but that was not taken: {refusal}\nSee `{show}`.") from None

    def _reported(self, verb: str, body: Body, machines: Sequence[str]) -> Sequence[EventAnswer]:
        key = new_key()
        try:
            return self._caller.call(lambda: self.post(verb, body, key=key), within=self.silence).events
        except RequestRefused:
            # It may know already: a server can be gone between hearing a report and answering it.
            seen = self._caller.call(self.look, within=self.silence)
            mine = [step.state for step in seen.order.steps if step.machine in machines]
            if is_service(seen.order):
                mine = [step.state for step in _own_work(seen.order)]
            if any(state is not STATES[verb] for state in mine):
                raise
            return seen.events

    def show_failed(self, events: Sequence[EventAnswer], problem: str, again: str) -> None:
        """Print that its work failed, and what can be done about that."""
        listed = any(event.ended_at is None for event in events)
        abandon = self._session.command(f"order abandon {self.id}")
        terminal.print_error(
            f"{problem}: order {self.id} has failed{', and its events stay listed' if listed else ''}.\n"
            f"Try again with `{self._session.command(again)}`, or abandon it with `{abandon}`."
        )

    def show_left(self, why: str, again: str) -> None:
        """Print that it goes on without whoever did its work here."""
        terminal.print_error(f"Order {self.id} goes on: {why}")
        report = self._session.command(f"order complete {self.id}")
        terminal.echo(
            f"Nobody does its work now, and silence for {format_span_briefly(self.silence)} is a failure."
        )
        terminal.echo(f"  Take it up again:  {self._session.command(again)}")
        terminal.echo(f"  Or report it:      {report}, or order fail")

    @property
    def _path(self) -> str:
        return f"/v1/orders/{self.id}"


def under_way(order: OrderAnswer) -> list[str]:
    """Name the machines that may be worked on now, or the host itself, if it carries none."""
    if not is_service(order):
        return [step.machine for step in order.steps if step.state is StepState.RUNNING]
    if not any(step.state is StepState.RUNNING for step in _own_work(order)):
        return []
    on_host = (step for stage in order.stages if stage.kind is StageKind.HOST for step in stage.steps)
    return [step.machine for step in on_host if step.state is StepState.RUNNING] or [f"{order.host}"]


def _own_work(order: OrderAnswer) -> list[HostStepAnswer]:
    """Return the work on a host itself, if it is done here."""
    return [step for step in order.host_steps if step.task is HostTask.WORK and step.driver == EXTERNAL]


def is_service(order: OrderAnswer) -> bool:
    """Return whether the host itself is worked on: then its machines are not the business of a command."""
    return order.action is Action.SERVICE


def is_worked_on(order: OrderAnswer) -> bool:
    """Return whether the work on a host itself, which is done here, is over."""
    return is_service(order) and all(step.state is StepState.DONE for step in _own_work(order))


def is_done_here(order: OrderAnswer) -> bool:
    """Return whether somebody outside the server does the work of an order."""
    return bool(_own_work(order)) if is_service(order) else order.driver == EXTERNAL


def is_undivided(order: OrderAnswer) -> bool:
    """Return whether an order is done in one go, so that a command for the whole host runs once."""
    return order.host is None or order.whole or order.together is not None


def was_empty(order: OrderAnswer) -> bool:
    """Return whether an order is done because there was no machine left to do it to."""
    moot = all(step.state is StepState.MOOT for step in order.steps)
    return order.state is OrderState.DONE and moot and not is_service(order)
