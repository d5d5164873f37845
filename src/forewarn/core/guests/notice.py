"""Proof of notice: what guests were promised, what they got, and what they then went through.

The notice that a machine got is how long before the start it was first sent a document with the event. It was
late if the machine could not see the event in time, because the service was away. Notice is judged when the
event ends, or when the machine leaves it: what was sent may become known later than that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.core.basic_types import Kind, MachineId, MachineName
from forewarn.core.draft import Draft
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.event import Event, NoticeSummary, Resource
from forewarn.core.model.order import Order, Step
from forewarn.core.model.record import PromiseCounts
from forewarn.core.time_formats import format_span

# Guests poll; one that polls as seldom as this still gets its notice.
TOLERANCE = timedelta(seconds=30)
# So much notice is never late, whatever was promised: a degraded host is announced days ahead.
ENOUGH = timedelta(hours=1)
NOTHING = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNotice:
    """What notice one machine of an event got; how much is told once the event has started."""

    machine: MachineName
    sent_at: datetime | None  # None: it never was sent the event
    notice: timedelta | None = None
    late: bool = False  # it could not see the event in time
    away: timedelta | None = None  # for how long it was really away, if its driver has measured that

    @property
    def never(self) -> bool:
        """Whether the machine was never sent the event, though it could have seen it in time."""
        return self.sent_at is None and not self.late


def promised(event: Event) -> timedelta:
    """Return how long before its start an event was announced to be; nothing if it was born Started."""
    return event.not_before - event.announced_at


def by_machine(
    event: Event,
    sent: Mapping[MachineId, datetime],
    order: Order | None = None,
    *,
    absences: Sequence[Absence] = (),
) -> tuple[MachineNotice, ...]:
    """Return for each machine of an event when it was sent it, and whether it could not see it in time.

    With its order, also how long each was really away. Absences count until the event is judged.

    Nothing of an event so old that this is not kept any more: nobody was not told because of that.
    """
    if event.forgotten:
        return ()
    away = {} if order is None or event.hint else _away(order, event)
    is_short = not event.judged and _was_short(event, absences)
    return tuple(
        replace(
            _notice_of(event, resource, sent.get(resource.machine), is_short=is_short),
            away=away.get(resource.machine),
        )
        for resource in sorted(event.resources, key=lambda each: (each.name.casefold(), each.name))
    )


def summary_of(event: Event, machines: tuple[MachineNotice, ...]) -> NoticeSummary | None:
    """Sum up what notice the machines of one event got; None if no promise fell due, or not yet."""
    return summary([(event, machines)]) if _fell_due(event) else None


def summary(events: Iterable[tuple[Event, tuple[MachineNotice, ...]]]) -> NoticeSummary:
    """Sum up what notice the machines of these events got."""
    due = [(event, machines) for event, machines in events if _fell_due(event)]
    told = [each for _, machines in due for each in machines]
    return NoticeSummary(
        least=min((each.notice for each in told if each.notice is not None), default=None),
        late=sum(each.late for each in told),
        never=sum(each.never for each in told),
        so_far=any(event.listed and not event.judged for event, _ in due),
    )


def total(parts: Iterable[NoticeSummary]) -> NoticeSummary:
    """Sum up sums."""
    parts = tuple(parts)
    return NoticeSummary(
        least=min((part.least for part in parts if part.least is not None), default=None),
        late=sum(part.late for part in parts),
        never=sum(part.never for part in parts),
        so_far=any(part.so_far for part in parts),
    )


def judge(draft: Draft, event: Event) -> Event:
    """Count which machines of an event that ends had their notice, and record the others; once."""
    if event.judged or not _fell_due(event):
        return event
    machines = by_machine(event, draft.base.sent.get(event.id, {}), absences=draft.base.absences)
    due = f"promised {_said(promised(event))}"
    late = [f"{each.machine} got {_said(each.notice)}" for each in machines if each.late]
    never = [each.machine for each in machines if each.never]
    kept = len(machines) - len(late) - len(never)
    draft.count_promises(event, PromiseCounts(kept=kept, late=len(late), never=len(never)))
    for kind, names in ((Kind.NOTICE_LATE, late), (Kind.NOTICE_NEVER, never)):
        if names:
            draft.record(kind, event, reason=f"{due}: {', '.join(names)}")
            draft.count(kind, len(names))
    short = {each.machine for each in machines if each.late}
    resources = tuple(replace(each, late=True) if each.name in short else each for each in event.resources)
    return replace(event, judged=True, resources=resources)


def impact(order: Order, event: Event) -> timedelta | None:
    """Measure how long the machine of an event that was disturbed for longest was; None until all are done.

    Of a step that was tried again, the last attempt counts.
    """
    if event.hint:
        return None
    named = {resource.machine for resource in event.resources}
    steps = [step for step in order.stages[event.stage].steps if step.machine in named]
    spans = [_span(step) for step in steps if step.begun_at is not None]
    measured = [span for span in spans if span is not None]
    return max(measured) if measured and len(measured) == len(spans) else None


def _away(order: Order, event: Event) -> Mapping[MachineId, timedelta]:
    """Return how long machines were away, where drivers have measured it."""
    steps = order.stages[event.stage].steps
    return {step.machine: timedelta(seconds=step.impact) for step in steps if step.impact is not None}


def _notice_of(
    event: Event, resource: Resource, sent_at: datetime | None, *, is_short: bool
) -> MachineNotice:
    name, started = resource.name, event.started_at
    notice = None if sent_at is None or started is None else max(started - sent_at, NOTHING)
    late = resource.late or (is_short and (notice is None or notice < _needed(event)))
    return MachineNotice(machine=name, sent_at=sent_at, notice=notice, late=late)


def _was_short(event: Event, absences: Sequence[Absence]) -> bool:
    """Return whether guests could see an event for less time before its start than it promised.

    An approval waives the rest of the notice, for all machines of the event.
    """
    if event.started_at is None or not _fell_due(event):
        return False
    # The machine whose approval let it start early may have left it since.
    if event.approved or event.started_at < event.not_before:
        return False
    visible = event.started_at - event.announced_at
    for absence in absences:
        away = min(absence.until, event.started_at) - max(absence.since, event.announced_at)
        visible -= max(away, NOTHING)
    return visible < _needed(event)


def _needed(event: Event) -> timedelta:
    promise = promised(event)
    return min(promise, ENOUGH) - min(TOLERANCE, promise / 2)


def _fell_due(event: Event) -> bool:
    """Return whether a promise fell due: what was withdrawn, or started when it was announced, broke none."""
    if event.started_at is None or event.forgotten:
        return False
    return event.started_at > event.announced_at and promised(event) > NOTHING


def _span(step: Step) -> timedelta | None:
    """Return how long a step has disturbed its machine: as its driver has measured, else all of it."""
    if step.impact is not None:
        return timedelta(seconds=step.impact)
    if step.begun_at is None or step.ended_at is None:
        return None
    return step.ended_at - step.begun_at


def _said(span: timedelta | None) -> str:
    return format_span(round((span or NOTHING).total_seconds()))
