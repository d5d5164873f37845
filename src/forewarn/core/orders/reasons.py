"""Why an order cannot go on yet: everything that waits carries its reason as data."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from forewarn.core.admission import holds
from forewarn.core.admission.timing import Timing
from forewarn.core.draft import Draft
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.model.waiting import Waiting
from forewarn.core.moments import stamp
from forewarn.core.orders import events, steps
from forewarn.core.policy import CAN_WAIT, Policy, notice_of, told_at
from forewarn.core.words import Action, ApprovalRule, GroupName, MachineId, StepState


def not_to_announce(
    draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy
) -> tuple[Waiting, ...]:
    """Say what keeps a stage from being announced."""
    return (
        *_held(draft, order, affected),
        *_paused(order),
        *_told_later(draft, order, affected, policy),
        *_other_domains(draft, order, affected),
        *timing(draft, order, affected, policy).why_not_tell(f"{order.host}", now=draft.now),
        *_over_budget(draft, order, affected),
    )


def not_to_start(
    draft: Draft, order: Order, stage: Stage, told: tuple[Event, ...], policy: Policy
) -> tuple[Waiting, ...]:
    """Say what keeps an announced stage from starting."""
    return (
        *_held(draft, order, stage.steps),
        *_not_approved(draft, told),
        *timing(draft, order, stage.steps, policy).why_not_start(f"{order.host}", now=draft.now),
        *_busy(draft, order, stage.steps),
    )


def not_to_finish(draft: Draft, order: Order, stage: Stage) -> tuple[Waiting, ...]:
    """Say what keeps a started stage from being finished, beside the work itself."""
    return (*failures(order), *_busy(draft, order, stage.steps))


def failures(order: Order) -> tuple[Waiting, ...]:
    """Say which steps wait for a person."""
    failed = (step for step in order.steps if step.state is StepState.FAILED)
    return tuple(Waiting(what=step.name, reason=f"failed: {step.why}") for step in failed)


def timing(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> Timing:
    """Say what binds the start of a stage; only maintenance can wait for windows, and no emergency does."""
    if order.action is not Action.MAINTENANCE or order.terms.emergency:
        return Timing()
    groups = groups_of(draft, (step for step in affected if step.state is not StepState.MOOT))
    calendars = {group.project: draft.projects[group.project].calendar for group in groups}
    bound = {project: calendar for project, calendar in calendars.items() if not calendar.always}
    return Timing(
        # Without windows nobody asks how long the notice is.
        notice=notice_of(order, groups, policy).ahead if bound else timedelta(),
        work=order.terms.expected or policy.expected_work,
        calendars=bound,
        deadline=order.terms.deadline,
    )


def telling_at(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> datetime | None:
    """Say when a stage that waits only for the time to come is told; None if there is no such moment.

    That is when guests want to hear of a degraded host, or so long before a window as they need notice.
    """
    if order.action is Action.DEGRADE:
        return told_at(order, groups_of(draft, affected), policy)
    return timing(draft, order, affected, policy).tell_at(draft.now)


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


def _paused(order: Order) -> tuple[Waiting, ...]:
    """Say that the rollout of an order is paused: none of its hosts goes on to its next stage."""
    if not order.terms.paused:
        return ()
    return (Waiting(what=f"rollout {order.terms.rollout}", reason=f"paused: {order.terms.paused}"),)


def _over_budget(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Groups that would have fewer healthy machines than they need."""
    if order.action is not Action.MAINTENANCE or order.terms.emergency:
        return ()
    disturbed: dict[GroupName, set[MachineId]] = {}
    for step in affected:
        if draft.groups[step.group].policy.budget:
            disturbed.setdefault(step.group, set()).add(step.machine)
    together = {group: len(machines) for group, machines in disturbed.items()}
    for event in draft.events.values():
        # What was announced a moment ago is not saved yet.
        if event.listed and event.group in disturbed:
            disturbed[event.group].update(named.machine for named in event.resources)
    return tuple(
        budget.lack(group, f"{order.host}", together[group])
        for group, machines in sorted(disturbed.items())
        if (budget := draft.base.budgets.get(group)) and not budget.allows(machines)
    )


def _told_later(
    draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy
) -> tuple[Waiting, ...]:
    """Guests may want to be told of a degraded host later than its operator."""
    if order.action is not Action.DEGRADE:
        return ()
    at = told_at(order, groups_of(draft, affected), policy)
    if at <= draft.now:
        return ()
    return (Waiting(what=f"host {order.host}", reason=f"guests are told at {stamp(at)}"),)


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
        Waiting(what=event.id, reason=f"{_awaits(event)}; may start at {stamp(at)}")
        for event in told
        if (at := events.may_start_at(draft, event)) > draft.now
    )


def _awaits(event: Event) -> str:
    """Name those who must approve, where not just anybody may."""
    if event.rule is ApprovalRule.ANY:
        return "not approved"
    return f"not approved; awaits {events.awaits(event)}"


def _busy(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(what=step.name, reason=f"waits for order {other.id} ({other.action}) to finish with it")
        for step in affected
        if step.state is StepState.WAITING and (other := steps.running_elsewhere(draft, step.machine, order))
    )
