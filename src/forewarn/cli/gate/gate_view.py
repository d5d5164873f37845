"""What a gate prints about an order: who is awaited, and what notice was promised and delivered."""

from collections.abc import Sequence

from forewarn.cli import formatting, terminal
from forewarn.cli.views.order_view import is_unfenced
from forewarn.core.moments import format_span_briefly
from forewarn.core.words import EventStatus, StepState
from forewarn.wire.answers.event_answers import MachineNoticeAnswer, NotedEventAnswer
from forewarn.wire.answers.order_answers import NotedOrderWithEventsAnswer, OrderAnswer

# So long an event stays listed after its start, unless a server is set otherwise.
LINGER = 90


def progress(seen: NotedOrderWithEventsAnswer, *, known: set[str]) -> list[str]:
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


def _is_over(event: NotedEventAnswer, order: OrderAnswer) -> bool:
    """Return whether the machines of a started event are done with; those of an evacuation go by turns."""
    steps = order.steps if event.stage is None else order.stages[event.stage].steps
    mine = (step for step in steps if step.machine in event.resources)
    return all(step.state in (StepState.DONE, StepState.MOOT) for step in mine)


def show_notice(seen: NotedOrderWithEventsAnswer) -> None:
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


def _awaited(event: NotedEventAnswer, *, known: bool) -> str:
    silent = _unsent(event.notices) if known else []
    return formatting.listing(
        [f"{name} (never polled)" if name in silent else name for name in event.awaited]
    )


def _unsent(notices: Sequence[MachineNoticeAnswer]) -> list[str]:
    return [notice.machine for notice in notices if notice.sent_at is None]


def _lingers(state: str) -> str:
    return f"{state}; guests see it as over {LINGER} s after it started, so that slow ones notice"
