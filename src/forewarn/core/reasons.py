"""Why an order cannot go on yet: everything that waits carries its reason as data."""

from collections.abc import Iterable
from datetime import datetime

from forewarn.core import events, holds, steps
from forewarn.core.draft import Draft
from forewarn.core.model import Event, Group, Order, Stage, Step, Waiting
from forewarn.core.policy import CAN_WAIT, Policy, told_at
from forewarn.core.words import Action, StepState


def not_to_announce(
    draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy
) -> tuple[Waiting, ...]:
    """Say what keeps a stage from being announced."""
    return (
        *_held(draft, order, affected),
        *_told_later(draft, order, affected, policy),
        *_other_domains(draft, order, affected),
    )


def not_to_start(draft: Draft, order: Order, stage: Stage, told: tuple[Event, ...]) -> tuple[Waiting, ...]:
    """Say what keeps an announced stage from starting."""
    return (
        *_held(draft, order, stage.steps),
        *_not_approved(draft, told),
        *_busy(draft, order, stage.steps),
    )


def not_to_finish(draft: Draft, order: Order, stage: Stage) -> tuple[Waiting, ...]:
    """Say what keeps a started stage from being finished, beside the work itself."""
    return (*failures(order), *_busy(draft, order, stage.steps))


def failures(order: Order) -> tuple[Waiting, ...]:
    """Say which steps wait for a person."""
    failed = (step for step in order.steps if step.state is StepState.FAILED)
    return tuple(Waiting(what=step.name, reason=f"failed: {step.why}") for step in failed)


def telling_at(draft: Draft, order: Order, affected: Iterable[Step], policy: Policy) -> datetime | None:
    """Say when guests want to be told of a degraded host; None if there is no such moment."""
    if order.action is not Action.DEGRADE:
        return None
    return told_at(order, groups_of(draft, affected), policy)


def groups_of(draft: Draft, affected: Iterable[Step]) -> list[Group]:
    """Return the groups of these steps."""
    return [draft.groups[name] for name in sorted({step.group for step in affected})]


def _held(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Holds that are in force here; a failed host waits for nobody."""
    if order.action is Action.FAIL or not draft.holds:
        return ()
    there = [draft.machines[step.machine] for step in affected if step.machine in draft.machines]
    hosts = {order.host, *(machine.host for machine in there)}
    return holds.in_the_way(draft, hosts=hosts, projects={machine.project for machine in there})


def _told_later(
    draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy
) -> tuple[Waiting, ...]:
    """Guests may want to be told of a degraded host later than its operator."""
    at = telling_at(draft, order, affected, policy)
    if at is None or at <= draft.now:
        return ()
    return (Waiting(what=f"host {order.host}", reason=f"guests are told at {_stamp(at)}"),)


def _other_domains(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Groups that have another update domain listed: guests drain when told, not when it starts."""
    if order.action not in CAN_WAIT:
        return ()
    found = {}
    for step in affected:
        others = [domain for domain in draft.listed_domains(step.group) if domain != step.domain]
        if others:
            reason = f"update domain {step.domain} waits for domain {others[0]}"
            found[step.group] = Waiting(what=step.group, reason=reason, group=step.group)
    return tuple(found[group] for group in sorted(found))


def _not_approved(draft: Draft, told: tuple[Event, ...]) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(what=event.id, reason=f"not approved; may start at {_stamp(at)}")
        for event in told
        if (at := events.may_start_at(draft, event)) > draft.now
    )


def _busy(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(what=step.name, reason=f"waits for order {other.id} ({other.action}) to finish with it")
        for step in affected
        if step.state is StepState.WAITING and (other := steps.running_elsewhere(draft, step.machine, order))
    )


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
