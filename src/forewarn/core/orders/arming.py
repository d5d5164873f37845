"""Arming the events of an order: a step that is saved, and refused while rule 4 or a budget forbids it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from forewarn.core.admission import announcing
from forewarn.core.admission.announcing import Proposal
from forewarn.core.basic_types import Kind
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import events, reasons
from forewarn.core.orders.events import arm_at, is_ready, postponed_until
from forewarn.core.policy import Policy

# Why an approved event waits. The events that hinder its host may be another project's: it names none.
OTHERS_IN_GROUP = "other machines of its group"
OTHERS_ON_HOST = "other events of its host, which cannot start yet"
WITH_OTHERS = f"starts together with {OTHERS_ON_HOST}"


def arm(draft: Draft, order: Order, announced: Sequence[Event], policy: Policy) -> tuple[Waiting, ...]:
    """Arm events that start together, all of them or none; return what hinders that.

    The first approval arms them, or the moment when one of them has only its minimum of notice left. So no
    armed event waits for a group that another stage keeps. If they cannot be armed in time, NotBefore moves.
    """
    unarmed = [event for event in announced if not event.armed]
    if not any(is_ready(event, now=draft.now, policy=policy) for event in unarmed):
        return ()
    refused = hindered(draft, order, _steps_of(order, unarmed), policy)
    if not refused:
        arm_now(draft, order, unarmed, policy)
        return ()
    for event in unarmed:
        if arm_at(event, policy) <= draft.now:
            _postpone(draft, event, refused, policy)
    return (*refused, *(_approved(event, refused) for event in unarmed if event.approved))


def arm_now(draft: Draft, order: Order, events_: Iterable[Event], policy: Policy) -> None:
    """Arm events that nothing hinders."""
    armed = [draft.put_event(replace(event, armed_at=draft.now)) for event in events_ if not event.armed]
    record_emergency(draft, order, armed, policy)


def hindered(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> tuple[Waiting, ...]:
    """Return the update domains and budgets that keep machines from being armed together."""
    return _lacking(reasons.proposal(draft, order, affected, policy))


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


def _lacking(proposal: Proposal) -> tuple[Waiting, ...]:
    return (
        *announcing.other_domains(proposal.footprint, proposal.armed, named=True),
        *announcing.lacking(proposal.host, proposal.footprint, proposal.budgets),
    )


def _steps_of(order: Order, ready: Sequence[Event]) -> tuple[Step, ...]:
    named = {resource.machine for event in ready for resource in event.resources}
    return tuple(step for step in order.stages[ready[0].stage].steps if step.machine in named)


def _approved(event: Event, refused: Sequence[Waiting]) -> Waiting:
    """Return what an approved event waits for: its approval counts as soon as its stage can be armed."""
    own = any(wait.group == event.group for wait in refused)
    others = OTHERS_IN_GROUP if own else OTHERS_ON_HOST
    return Waiting(what=event.id, reason=f"approved, waits for {others}")


def _postpone(draft: Draft, event: Event, refused: Sequence[Waiting], policy: Policy) -> None:
    mine = [str(wait) for wait in refused if wait.group == event.group]
    until = postponed_until(event, now=draft.now, policy=policy)
    events.postpone(draft, event, until=until, reason="; ".join(mine) or WITH_OTHERS)
