"""A gated order: calls to the server, messages, and the state of the work."""

import shlex
from collections.abc import Sequence

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.gate.interrupts import RetryingCaller
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
from forewarn.wire.answers.event_answers import EventAnswer, EventDetailAnswer, MachineNoticeAnswer
from forewarn.wire.answers.order_answers import (
    HeartbeatAnswer,
    HostStepAnswer,
    OrderAnswer,
    OrderDetailWithEventsAnswer,
    OrderWithEventsAnswer,
)

# The default of the server: an external driver that is silent for longer fails.
DEFAULT_SILENCE = 600.0
NO_SERVER = 3

# The states of running steps after a report.
STATES = {"complete": StepState.DONE, "fail": StepState.FAILED}

# The default of the server: the seconds that an event stays listed after its start.
LINGER = 90


class GatedOrder:
    """An order whose work is done here."""

    def __init__(self, session: Session, caller: RetryingCaller, order: OrderAnswer) -> None:
        self._session = session
        self._caller = caller
        self.id = order.id
        self.host = order.host
        self.silence = order.heartbeat_seconds or DEFAULT_SILENCE

    def look(self) -> OrderDetailWithEventsAnswer:
        """Read the order."""
        return self._session.client.get(self._path, OrderDetailWithEventsAnswer).value

    def post(self, verb: str, body: Body = None, *, key: str) -> OrderWithEventsAnswer:
        """Change the order."""
        path = f"{self._path}/{verb}"
        return self._session.client.post(path, OrderWithEventsAnswer, body, key=key).value

    def begin(self) -> str | None:
        """Report that the work starts; return the reason if it must not.

        Until this report an abort cancels the work. Afterwards the work is finished.
        """
        key = new_key()
        try:
            return self._caller.call(lambda: self.beat(key=key)).stop
        except RequestRefused as refusal:
            return str(refusal)

    def beat(self, *, key: str) -> HeartbeatAnswer:
        """Send a heartbeat; the answer says whether to stop."""
        return self._session.client.post(f"{self._path}/heartbeat", HeartbeatAnswer, key=key).value

    def report(self, ended: str, verb: str, machines: Sequence[str]) -> Sequence[EventAnswer]:
        """Report the end of the work, and retry until the order would fail for silence."""
        body = {"reason": ended} if verb == "fail" else None
        try:
            return self._reported(verb, body, machines)
        except (ServerUnreachable, KeyboardInterrupt):
            reason = f" --reason {shlex.quote(ended)}" if verb == "fail" else ""
            report = self._session.command(f"order {verb} {self.id}{reason}")
            terminal.print_error(
                f"{ended}, but the report failed: {self._caller.trouble}\n"
                f"Order {self.id} is still open. Run `{report}` once the server answers."
            )
            raise click.exceptions.Exit(NO_SERVER) from None
        except RequestRefused as refusal:
            show = self._session.command(f"order show {self.id}")
            raise RequestRefused(
                f"{ended}, but the server refused the report: {refusal}\nSee `{show}`."
            ) from None

    def _reported(self, verb: str, body: Body, machines: Sequence[str]) -> Sequence[EventAnswer]:
        key = new_key()
        try:
            return self._caller.call(lambda: self.post(verb, body, key=key), within=self.silence).events
        except RequestRefused:
            # The server may have saved the report and crashed before it answered.
            seen = self._caller.call(self.look, within=self.silence)
            mine = [step.state for step in seen.order.steps if step.machine in machines]
            if is_service(seen.order):
                mine = [step.state for step in _own_work(seen.order)]
            if any(state is not STATES[verb] for state in mine):
                raise
            return seen.events

    def show_failed(self, events: Sequence[EventAnswer], problem: str, again: str) -> None:
        """Print that the work failed, and the next commands."""
        listed = any(event.ended_at is None for event in events)
        abandon = self._session.command(f"order abandon {self.id}")
        terminal.print_error(
            f"{problem}: order {self.id} has failed{', and its events stay listed' if listed else ''}\n"
            f"Retry with `{self._session.command(again)}`, or abandon the order with `{abandon}`."
        )

    def show_left(self, why: str, again: str) -> None:
        """Print that the order stays open without a gate, and the next commands."""
        terminal.print_error(f"order {self.id} stays open: {why}")
        silence = format_span_briefly(self.silence)
        terminal.echo(f"No gate does this work now. Without a report the order fails after {silence}.")
        report = f"{self._session.command(f'order complete {self.id}')}, or order fail"
        terminal.echo_steps({"Resume": self._session.command(again), "Report": report})

    @property
    def _path(self) -> str:
        return f"/v1/orders/{self.id}"


def under_way(order: OrderAnswer) -> list[str]:
    """Return the machines to work on now, or the host itself if it has none."""
    if not is_service(order):
        return [step.machine for step in order.steps if step.state is StepState.RUNNING]
    if not any(step.state is StepState.RUNNING for step in _own_work(order)):
        return []
    on_host = (step for stage in order.stages if stage.kind is StageKind.HOST for step in stage.steps)
    return [step.machine for step in on_host if step.state is StepState.RUNNING] or [f"{order.host}"]


def _own_work(order: OrderAnswer) -> list[HostStepAnswer]:
    """Return the steps on the host itself that are done here."""
    return [step for step in order.host_steps if step.task is HostTask.WORK and step.driver == EXTERNAL]


def is_service(order: OrderAnswer) -> bool:
    """Return whether the work is on the host itself rather than on its machines."""
    return order.action is Action.SERVICE


def is_host_done(order: OrderAnswer) -> bool:
    """Return whether the work on the host itself is done."""
    return is_service(order) and all(step.state is StepState.DONE for step in _own_work(order))


def is_done_here(order: OrderAnswer) -> bool:
    """Return whether an external program does the work of an order."""
    return bool(_own_work(order)) if is_service(order) else order.driver == EXTERNAL


def is_undivided(order: OrderAnswer) -> bool:
    """Return whether the command runs once for the whole order."""
    return order.host is None or order.whole or order.together is not None


def was_empty(order: OrderAnswer) -> bool:
    """Return whether an order is done because the host had no machines."""
    moot = all(step.state is StepState.MOOT for step in order.steps)
    return order.state is OrderState.DONE and moot and not is_service(order)


def progress(seen: OrderDetailWithEventsAnswer, *, known: set[str]) -> list[str]:
    """Write the progress of each event; of events in `known`, name the machines that never polled."""
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
            lines.append(f"{what}: waiting for {awaited}, until {formatting.utc(event.not_before)}")
    if not lines or is_unfenced(seen.order):
        lines += [f"{each.what}: {each.reason}" for each in seen.order.waiting]
    return lines


def _is_over(event: EventDetailAnswer, order: OrderAnswer) -> bool:
    """Return whether the machines of a started event are done. An evacuation treats them in turn."""
    steps = order.steps if event.stage is None else order.stages[event.stage].steps
    mine = (step for step in steps if step.machine in event.resources)
    return all(step.state in (StepState.DONE, StepState.MOOT) for step in mine)


def show_notice(seen: OrderDetailWithEventsAnswer) -> None:
    """Print the promised notice, the delivered notice, and when the work started."""
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
    """Write the notice that machines got: `delivered at least 14 m 58 s (never polled: web-0)`."""
    given = [notice.notice_seconds for notice in notices if notice.notice_seconds is not None]
    if not given:
        return "not delivered (no machine polled)"
    late = [notice.machine for notice in notices if notice.late]
    faults = {"late": late, "never polled": _unsent(notices)}
    text = "; ".join(f"{fault}: {formatting.listing(names)}" for fault, names in faults.items() if names)
    least = "at least " if len(given) > 1 else ""
    return f"delivered {least}{format_span_briefly(min(given))}" + (f" ({text})" if text else "")


def _awaited(event: EventDetailAnswer, *, known: bool) -> str:
    unsent = _unsent(event.notices) if known else []
    return formatting.listing(
        [f"{name} (never polled)" if name in unsent else name for name in event.awaited]
    )


def _unsent(notices: Sequence[MachineNoticeAnswer]) -> list[str]:
    return [notice.machine for notice in notices if notice.sent_at is None]


def _lingers(state: str) -> str:
    return f"{state}; stays listed for {LINGER} s after its start, for guests that poll slowly"
