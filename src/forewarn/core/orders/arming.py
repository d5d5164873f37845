"""Arm the events of an order, unless rule 4 or a budget forbids it. The decision is saved."""

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
from forewarn.core.policy import Policy

# Why an approved event waits. The other events of the host may belong to another project, so the reason
# names none of them.
OTHERS_IN_GROUP = "other machines of its group"
OTHERS_ON_HOST = "other events of its host, which cannot start yet"
WITH_OTHERS = f"starts together with {OTHERS_ON_HOST}"


def arm(draft: Draft, order: Order, announced: Sequence[Event], policy: Policy) -> tuple[Waiting, ...]:
    """Arm all events that start together, or none of them; return what prevents it.

    They are armed at the first approval, or when one of them has only its minimum notice left. So no armed
    event waits for a group that another stage holds. An event that cannot be armed in time is postponed.
    """
    unarmed = [event for event in announced if not event.armed]
    if not any(
        event.approved or event.postponed is not None or events.arm_at(event, policy) <= draft.now
        for event in unarmed
    ):
        return ()
    refused = blockers(draft, order, _steps_of(order, unarmed), policy)
    if not refused:
        armed = [draft.put_event(replace(event, armed_at=draft.now)) for event in unarmed]
        record_emergency(draft, order, armed, policy)
        return ()
    for event in unarmed:
        if events.arm_at(event, policy) <= draft.now:
            own = [str(wait) for wait in refused if wait.group == event.group]
            until = events.postponed_until(event, now=draft.now, policy=policy)
            events.postpone(draft, event, until=until, reason="; ".join(own) or WITH_OTHERS)
    return (*refused, *(_why_approved_waits(event, refused) for event in unarmed if event.approved))


def blockers(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> tuple[Waiting, ...]:
    """Return the update domains and budgets that prevent these steps from being armed together."""
    return _domains_and_budgets(reasons.proposal(draft, order, affected, policy))


def record_emergency(draft: Draft, order: Order, announced: Iterable[Event], policy: Policy) -> None:
    """Record a broken promise for each armed event of an emergency that ignores a rule.

    Such rules are other update domains, budgets, windows and holds.
    """
    if not order.terms.emergency or not ACTIONS[order.action].can_wait:
        return
    for event in (each for each in announced if each.armed):
        if ignored := _ignored_rules(draft, order, event, policy):
            said = "; ".join(map(str, ignored)).replace(f"(order {order.id})", "(of this same order)")
            why = f"{order.terms.emergency}: announced although {said}"
            draft.record(Kind.PROMISE_BROKEN, event, by=order.by, reason=why)


def _ignored_rules(draft: Draft, order: Order, event: Event, policy: Policy) -> tuple[Waiting, ...]:
    regular = replace(order, terms=replace(order.terms, emergency="", despite_hold=False))
    steps = _steps_of(order, [event])
    windows = reasons.timing(draft, regular, steps, policy)
    return (
        *_domains_and_budgets(reasons.proposal(draft, regular, steps, policy)),
        *windows.why_not_start(f"{order.host}", now=event.not_before),
        *reasons.holds_on(draft, regular, steps),
    )


def _domains_and_budgets(proposal: Proposal) -> tuple[Waiting, ...]:
    return (
        *announcing.other_domains(proposal.footprint, proposal.armed, named=True),
        *announcing.short_budgets(proposal.host, proposal.footprint, proposal.budgets),
    )


def _steps_of(order: Order, announced: Sequence[Event]) -> tuple[Step, ...]:
    named = {resource.machine for event in announced for resource in event.resources}
    return tuple(step for step in order.stages[announced[0].stage].steps if step.machine in named)


def _why_approved_waits(event: Event, refused: Sequence[Waiting]) -> Waiting:
    """Return why an approved event waits. Its approval takes effect once its stage can be armed."""
    own = any(wait.group == event.group for wait in refused)
    others = OTHERS_IN_GROUP if own else OTHERS_ON_HOST
    return Waiting(what=event.id, reason=f"approved, waits for {others}")
