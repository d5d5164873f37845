"""One order whose work is done here: the calls about it, and what is printed of it."""

import shlex
from collections.abc import Sequence

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.gate.calls import RetryingCaller
from forewarn.cli.session import Session
from forewarn.cli.views.order_view import is_unfenced
from forewarn.client.replies import Body, RequestRefused, ServerUnreachable
from forewarn.client.retrying import new_key
from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    EventStatus,
    HostTask,
    OrderState,
    StageKind,
    StepState,
)
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.event_answers import EventAnswer, MachineNoticeAnswer, EventDetailAnswer
from forewarn.wire.answers.order_answers import (
    HeartbeatAnswer,
    HostStepAnswer,
    OrderDetailWithEventsAnswer,
    OrderAnswer,
    OrderWithEventsAnswer,
)

# As long as a server lets an external driver be silent, unless it is set otherwise.
DEFAULT_SILENCE = 600.0
NO_SERVER = 3

# What a report makes of the steps that were under way.
STATES = {"complete": StepState.DONE, "fail": StepState.FAILED}

# So long an event stays listed after its start, unless a server is set otherwise.
LINGER = 90


class GatedOrder:
    """One order whose work is done here, as the server knows it."""

    def __init__(self, session: Session, caller: RetryingCaller, order: OrderAnswer) -> None:
        self._session = session
        self._caller = caller
        self.id = order.id
        self.host = order.host
        self.silence = order.heartbeat_seconds or DEFAULT_SILENCE

    def look(self) -> OrderDetailWithEventsAnswer:
        """Read it anew."""
        return self._session.client.get(self._path, OrderDetailWithEventsAnswer).value

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

    def beat(self, *, key: str) -> HeartbeatAnswer:
        """Report that the work goes on, and hear whether it should."""
        return self._session.client.post(f"{self._path}/heartbeat", HeartbeatAnswer, key=key).value

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
            raise click.exceptions.Exit(NO_SERVER) from None
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


def progress(seen: OrderDetailWithEventsAnswer, *, known: set[str]) -> list[str]:
    """Write how far each event of an order is; of those `known` for a while, who never polled."""
    lines = []
    for event in seen.events:
        if event.ended_at is not None:
            continue
        what = f"{event.type} of {formatting.listing(event.resources)}"
        if event.status is EventStatus.STARTED:
            lines.append(f"{what}: {_lingers('done') if _is_over(event, seen.order) else 'under way'}")
        elif event.approved:
            by = formatting.listing([each.by for each in event.approvals])
            lines.append(f"{what}: approved by {by}")
        else:
            awaited = _awaited(event, known=event.id in known)
            lines.append(f"{what}: awaits {awaited}, until {formatting.utc(event.not_before)}")
    if not lines or is_unfenced(seen.order):
        lines += [f"{each.what}: {each.reason}" for each in seen.order.waiting]
    return lines


def _is_over(event: EventDetailAnswer, order: OrderAnswer) -> bool:
    """Return whether the machines of a started event are done with; those of an evacuation go by turns."""
    steps = order.steps if event.stage is None else order.stages[event.stage].steps
    mine = (step for step in steps if step.machine in event.resources)
    return all(step.state in (StepState.DONE, StepState.MOOT) for step in mine)


def show_notice(seen: OrderDetailWithEventsAnswer) -> None:
    """Print what notice was promised, what was delivered, and when the work really started."""
    for event in seen.events:
        promised = formatting.between(event.announced_at, event.not_before)
        started = formatting.between(event.announced_at, event.started_at)
        early = " (approved early)" if event.approved else ""
        named = formatting.listing(event.resources)
        terminal.echo(
            f"  {named}: promised {promised}, {_delivered(event.notices)}, started after {started}{early}"
        )
        if event.ended_at is None:
            terminal.echo(f"    {_lingers('still listed')}")


def _delivered(notices: Sequence[MachineNoticeAnswer]) -> str:
    """Write what notice machines got of an event: `delivered at least 14 m 58 s (never polled: web-0)`."""
    given = [notice.notice_seconds for notice in notices if notice.notice_seconds is not None]
    if not given:
        return "delivered to nobody (never polled)"
    late = [notice.machine for notice in notices if notice.late]
    faults = {"late": late, "never polled": _unsent(notices)}
    said = "; ".join(f"{fault}: {formatting.listing(names)}" for fault, names in faults.items() if names)
    least = "at least " if len(given) > 1 else ""
    return f"delivered {least}{format_span_briefly(min(given))}" + (f" ({said})" if said else "")


def _awaited(event: EventDetailAnswer, *, known: bool) -> str:
    silent = _unsent(event.notices) if known else []
    return formatting.listing(
        [f"{name} (never polled)" if name in silent else name for name in event.awaited]
    )


def _unsent(notices: Sequence[MachineNoticeAnswer]) -> list[str]:
    return [notice.machine for notice in notices if notice.sent_at is None]


def _lingers(state: str) -> str:
    return f"{state}; guests see it as over {LINGER} s after it started, so that slow ones notice"
