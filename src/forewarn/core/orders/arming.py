"""Arming the events of an order: a step that is saved, and refused while rule 4 or a budget forbids it."""

from collections.abc import Iterable, Sequence

from forewarn.core.admission import announcing, budgets
from forewarn.core.admission.announcing import Proposal
from forewarn.core.admission.arming import arm_at, is_ready, postponed_until
from forewarn.core.catalogue import ACTIONS
from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Step
from forewarn.core.model.waiting import Waiting
from forewarn.core.orders import events, reasons
from forewarn.core.policy import Policy
from forewarn.core.words import Kind

# Said to a group that need not wait itself: what its host waits for may be another project's.
WITH_OTHERS = "starts together with others of its host, which cannot start yet"


def arm(draft: Draft, order: Order, announced: Sequence[Event], policy: Policy) -> tuple[Waiting, ...]:
    """Arm those of some events whose time has come; return whom they wait for if that cannot be.

    One that is approved is armed by itself. All others of a stage start together, so they are armed together:
    none keeps others away while it waits for the rest. What cannot be armed in time gets a later NotBefore.
    """
    ready = [
        event for event in announced if not event.armed and is_ready(event, now=draft.now, policy=policy)
    ]
    for event in ready:
        if event.approved and not _why_not(draft, order, [event], policy):
            _arm(draft, order, [event], policy)
    left = [event for event in ready if not draft.events[event.id].armed]
    refused = _why_not(draft, order, left, policy) if left else ()
    if not refused:
        _arm(draft, order, left, policy)
    for event in left if refused else ():
        if arm_at(event, policy) <= draft.now:
            _postpone(draft, event, refused, policy)
    return refused


def record_emergency(draft: Draft, order: Order, announced: Iterable[Event], policy: Policy) -> None:
    """Record as a broken promise what an emergency passes over as it is armed.

    That is other update domains, budgets, windows, and holds.
    """
    if not order.terms.emergency or not ACTIONS[order.action].can_wait:
        return
    for event in (each for each in announced if each.armed):
        if passed := _passed_over(draft, order, event, policy):
            said = "; ".join(map(str, passed)).replace(f"(order {order.id})", "(of this same order)")
            why = f"{order.terms.emergency}: announced although {said}"
            draft.record(Kind.PROMISE_BROKEN, event, by=order.by, reason=why)


def _passed_over(draft: Draft, order: Order, event: Event, policy: Policy) -> tuple[Waiting, ...]:
    bound = replace(order, terms=replace(order.terms, emergency="", despite_hold=False))
    steps = _steps_of(order, [event])
    windows = reasons.timing(draft, bound, steps, policy)
    return (
        *_lacking(reasons.proposal(draft, bound, steps, policy)),
        *windows.why_not_start(f"{order.host}", now=event.not_before),
        *reasons.held(draft, bound, steps),
    )


def _arm(draft: Draft, order: Order, ready: Iterable[Event], policy: Policy) -> None:
    armed = [draft.put_event(replace(event, armed_at=draft.now)) for event in ready]
    record_emergency(draft, order, armed, policy)


def _why_not(draft: Draft, order: Order, ready: Sequence[Event], policy: Policy) -> tuple[Waiting, ...]:
    """Return what keeps events from being armed together."""
    return _lacking(reasons.proposal(draft, order, _steps_of(order, ready), policy))


def _lacking(proposal: Proposal) -> tuple[Waiting, ...]:
    return (
        *announcing.other_domains(proposal.footprint, proposal.armed, named=True),
        *budgets.lacking(proposal.host, proposal.footprint, proposal.budgets),
    )


def _steps_of(order: Order, ready: Sequence[Event]) -> tuple[Step, ...]:
    named = {resource.machine for event in ready for resource in event.resources}
    return tuple(step for step in order.stages[ready[0].stage].steps if step.machine in named)


def _postpone(draft: Draft, event: Event, refused: Sequence[Waiting], policy: Policy) -> None:
    mine = [str(wait) for wait in refused if wait.group == event.group]
    until = postponed_until(event, now=draft.now, policy=policy)
    events.postpone(draft, event, until=until, reason="; ".join(mine) or WITH_OTHERS)
