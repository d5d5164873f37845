"""Proof of notice: the promised notice, the notice that machines got, and the impact.

A machine's notice is the time between the first document with the event that it received and the start. The
notice was late if the machine could not see the event in time because the server was away. Notice is judged
when the event ends or the machine leaves it, because the server may learn later which documents it sent.
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

# A guest that polls this seldom still gets its notice.
TOLERANCE = timedelta(seconds=30)
# A notice this long is never late, whatever was promised: a degraded host is announced days ahead.
ENOUGH = timedelta(hours=1)
NOTHING = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNotice:
    """The notice of one machine of an event; the duration is known once the event has started."""

    machine: MachineName
    sent_at: datetime | None  # None: it never received the event
    notice: timedelta | None = None
    late: bool = False  # it could not see the event in time
    away: timedelta | None = None  # the real impact, if its driver measured it

    @property
    def never(self) -> bool:
        """Whether the machine never received the event, though it could have seen it in time."""
        return self.sent_at is None and not self.late


def promised(event: Event) -> timedelta:
    """Return the notice that an event promised; nothing if it was born Started."""
    return event.not_before - event.announced_at


def by_machine(
    event: Event,
    sent: Mapping[MachineId, datetime],
    order: Order | None = None,
    *,
    absences: Sequence[Absence] = (),
) -> tuple[MachineNotice, ...]:
    """Return the notice of each machine of an event.

    With its order, this includes the measured impact. Absences count until the event is judged. The result is
    empty for an event so old that its deliveries are no longer known.
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
    """Summarise the notice of one event; None if no promise fell due, or not yet."""
    if not _fell_due(event):
        return None
    return NoticeSummary(
        least=min((each.notice for each in machines if each.notice is not None), default=None),
        late=sum(each.late for each in machines),
        never=sum(each.never for each in machines),
        so_far=event.listed and not event.judged,
    )


def summary(events: Iterable[tuple[Event, tuple[MachineNotice, ...]]]) -> NoticeSummary:
    """Summarise the notice of several events."""
    return total(due for each in events if (due := summary_of(*each)) is not None)


def total(parts: Iterable[NoticeSummary]) -> NoticeSummary:
    """Add summaries."""
    parts = tuple(parts)
    return NoticeSummary(
        least=min((part.least for part in parts if part.least is not None), default=None),
        late=sum(part.late for part in parts),
        never=sum(part.never for part in parts),
        so_far=any(part.so_far for part in parts),
    )


def judge(draft: Draft, event: Event) -> Event:
    """Count the kept and broken promises of an event that ends, and record the broken ones. Idempotent."""
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
    """Return the longest impact on a machine of an event; None until all its steps are done.

    If a step was retried, its last attempt counts.
    """
    if event.hint:
        return None
    named = {resource.machine for resource in event.resources}
    steps = [step for step in order.stages[event.stage].steps if step.machine in named]
    spans = [_span(step) for step in steps if step.begun_at is not None]
    measured = [span for span in spans if span is not None]
    return max(measured) if measured and len(measured) == len(spans) else None


def _away(order: Order, event: Event) -> Mapping[MachineId, timedelta]:
    """Return the impact on machines where drivers measured it."""
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
    """Whether guests could see an event for less time before its start than it promised.

    An approval waives the rest of the notice for all machines of the event.
    """
    if event.started_at is None or not _fell_due(event):
        return False
    # The event counts as approved even if the machine that approved it has left it since.
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
    """Whether a promise fell due: not if the event was withdrawn, or started when it was announced."""
    if event.started_at is None or event.forgotten:
        return False
    return event.started_at > event.announced_at and promised(event) > NOTHING


def _span(step: Step) -> timedelta | None:
    """Return the impact of a step: as its driver measured it, otherwise its whole duration."""
    if step.impact is not None:
        return timedelta(seconds=step.impact)
    if step.begun_at is None or step.ended_at is None:
        return None
    return step.ended_at - step.begun_at


def _said(span: timedelta | None) -> str:
    return format_span(round((span or NOTHING).total_seconds()))
