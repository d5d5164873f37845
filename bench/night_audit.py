"""Check the events and orders of a night against the rules."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.basic_types import Action, GroupName, HostTask, OrderId, StageKind, StepState, Work
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.policy import Policy

# Actions that rules 1, 4 and 11 exempt. The night has no user orders and no evictions.
EXEMPT = frozenset({Action.FAIL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """All events and orders of the night."""

    events: Sequence[Event]
    orders: Mapping[OrderId, Order]
    policy: Policy


def broken(night: Night) -> list[str]:
    """Return the violations of the rules."""
    rules = (_notice, _domains, _lateness, _host_work, _recovery)
    return [f"{rule.__name__[1:]}: {violation}" for rule in rules for violation in rule(night)]


def _bound_events(night: Night) -> Iterator[Event]:
    return (event for event in night.events if night.orders[event.order].action not in EXEMPT)


def _notice(night: Night) -> Iterator[str]:
    """Rule 1: every notice is long enough, and only approved events start early."""
    for event in _bound_events(night):
        if event.not_before - event.announced_at < night.policy.notice(event.type):
            yield f"{event.id} had {event.not_before - event.announced_at} of notice"
        if event.started_at is not None and not event.approvals and event.started_at < event.not_before:
            yield f"{event.id} started {event.not_before - event.started_at} early"


def _domains(night: Night) -> Iterator[str]:
    """Rule 4: no two update domains of a group are armed together."""
    by_group: dict[GroupName, list[Event]] = defaultdict(list)
    for event in _bound_events(night):
        if event.armed_at is not None:
            by_group[event.group].append(event)
    for group, events in by_group.items():
        for first, second in _overlapping(events):
            domains = f"{first.update_domain} and {second.update_domain}"
            yield f"{group}: {first.id} and {second.id} of domains {domains}"


def _overlapping(events: Iterable[Event]) -> Iterator[tuple[Event, Event]]:
    """Yield pairs of events of different update domains that were armed at the same time."""
    latest: dict[int, tuple[datetime, Event]] = {}
    for event in sorted(events, key=_armed):
        for domain, (until, other) in latest.items():
            if domain != event.update_domain and until > _armed(event):
                yield other, event
        until = event.ended_at or datetime.max.replace(tzinfo=event.announced_at.tzinfo)
        known = latest.get(event.update_domain)
        if known is None or known[0] < until:
            latest[event.update_domain] = (until, event)


def _armed(event: Event) -> datetime:
    return event.armed_at or event.announced_at


def _lateness(night: Night) -> Iterator[str]:
    """Rule 11: no event starts long after its NotBefore."""
    for event in _bound_events(night):
        if event.started_at is not None and event.started_at >= event.not_before + night.policy.stale_after:
            yield f"{event.id} started {event.started_at - event.not_before} after its NotBefore"


def _host_work(night: Night) -> Iterator[str]:
    """Rule 5: when the work on a host begins, each of its machines has started or has left."""
    for order in night.orders.values():
        work = next((step for step in order.host_steps if step.task is HostTask.WORK), None)
        if work is None or work.begun_at is None:
            continue
        for stage in order.stages:
            if stage.kind is StageKind.HOST and (stage.started_at or work.begun_at) > work.begun_at:
                yield f"work on {order.host} began before its machines were ready"
            if stage.kind is StageKind.EVACUATE:
                for step in stage.steps:
                    left = step.state is StepState.MOOT or (step.ended_at or work.begun_at) <= work.begun_at
                    if not left:
                        yield f"work on {order.host} began with {step.name} on it"


def _recovery(night: Night) -> Iterator[str]:
    """Rule 13: no machine of a failed host is recovered before the host is fenced."""
    for order in night.orders.values():
        if order.action is not Action.FAIL or order.terms.fenced:
            continue
        fenced = next((step.ended_at for step in order.host_steps if step.task is HostTask.FENCE), None)
        for step in order.steps:
            begun = step.begun_at if step.work is Work.RECOVER else None
            if begun is not None and (fenced is None or begun < fenced):
                yield f"{step.name} of {order.host} was recovered before the fence"
