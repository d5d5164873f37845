"""Why an order cannot go on yet: everything that waits carries its reason as data."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.admission import announcing, holds, work_durations
from forewarn.core.admission.announcing import Proposal
from forewarn.core.admission.timing import Timing, calendars
from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    ApprovalRule,
    GroupName,
    HostTask,
    MachineState,
    StageKind,
    StepState,
    Work,
)
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Budget, Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.group import Group
from forewarn.core.model.order import HostStep, Order, Stage, Step
from forewarn.core.time_formats import format_time
from forewarn.core.orders import events, fencing, lost_hosts, placement, steps
from forewarn.core.orders.host_failures import not_empty
from forewarn.core.policy import Policy, degrade_announced_at, is_planned, notice_of
from forewarn.core.redaction import machine_names


def not_to_announce(
    draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy, *, armed: bool | None = None
) -> tuple[Waiting, ...]:
    """Return what keeps machines from being announced.

    `armed`: whether their events are armed with the announcement; None: as their notice says.
    """
    proposed = proposal(draft, order, affected, policy)
    if proposed.armed or proposed.budgets:
        if armed is None:
            notice = notice_of(order, affected[0].work, groups_of(draft, affected), policy)
            armed = events.armed_at_once(notice)
        # Events that are armed later are held against other domains and budgets then.
        proposed = proposed if armed else replace(proposed, armed={}, budgets={})
    return (
        *held(draft, order, affected),
        *_paused(order),
        *_announced_later(draft, order, affected, policy),
        *announcing.why_not(proposed, now=draft.now),
        *placement.without_room(draft, order, affected),
    )


def proposal(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> Proposal:
    """Return a stage as work that is to be announced, without the rules that its order is exempt from."""
    budgets = draft.budgets({step.group for step in affected}) if is_planned(order) else {}
    footprint = _footprint(draft, order, affected, budgets)
    patient = footprint.counts if ACTIONS[order.action].can_wait and not order.terms.emergency else ()
    # Domains that are done together wait for those of other orders, not for each other.
    own = order.id if order.terms.together else None
    return Proposal(
        host=f"{order.host}",
        footprint=footprint,
        armed={group: draft.armed_domains(group, but_of=own) for group in patient},
        budgets=budgets,
        timing=timing(draft, order, affected, policy),
        whole=order.terms.whole,
    )


def divided(draft: Draft, order: Order, policy: Policy) -> tuple[Waiting, ...]:
    """Return the groups that keep a host from being done in one go: machines may have come since."""
    in_one_go = [stage for stage in order.stages if stage.kind in (StageKind.MACHINES, StageKind.HOST)]
    if not order.terms.whole or (len(in_one_go) == 1 and order.action is not Action.SERVICE):
        return ()
    affected = tuple(step for stage in in_one_go for step in stage.steps)
    return announcing.divided(proposal(draft, order, affected, policy))


def check_possible(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> None:
    """Refuse what could only wait for ever."""
    what = f"host {order.host}"
    announcing.check(proposal(draft, order, affected, policy), what=what, now=draft.now)


def _footprint(
    draft: Draft, order: Order, affected: Sequence[Step], budgets: Mapping[GroupName, Budget]
) -> Footprint:
    counts: dict[GroupName, Counter[int]] = {}
    unwell: Counter[GroupName] = Counter()
    for step in sorted(affected, key=lambda each: each.group):
        counts.setdefault(step.group, Counter())[step.update_domain] += 1
        unwell[step.group] += step.group in budgets and step.machine in budgets[step.group].unwell
    projects = frozenset(draft.groups[group].project for group in counts)
    at_once = bool(order.terms.together)
    footprint = Footprint(counts=counts, projects=projects, unwell=unwell, at_once=at_once)
    works = {step.work for step in affected}
    # What is treated in several ways at once keeps to update domains.
    most = {group: draft.groups[group].policy.at_most(work) for work in works for group in counts}
    return footprint.with_free(
        {group: limit for group, limit in most.items() if limit != 0 and len(works) == 1}
    )


def not_to_start(
    draft: Draft,
    order: Order,
    stage: Stage,
    announced: tuple[Event, ...],
    policy: Policy,
    *,
    alone: bool = False,
) -> tuple[Waiting, ...]:
    """Return what keeps announced machines from starting; `alone`: they wait for no others on the host."""
    return (
        *held(draft, order, stage.steps),
        *(() if alone else untold(draft, order, stage)),
        *_not_approved(draft, announced),
        *timing(draft, order, stage.steps, policy).why_not_start(f"{order.host}", now=draft.now),
        *busy(draft, order, stage.steps),
        *(() if alone else lost_hosts.stranded(draft, order, stage.steps)),
    )


def untold(draft: Draft, order: Order, stage: Stage) -> tuple[Waiting, ...]:
    """Return the machines beside those of the stage, where work is done to the whole host.

    One that is leaving is waited for; one of another update domain came after the announcement.
    """
    if order.host is None or not order.terms.undivided:
        return ()
    told = {step.machine for step in stage.steps if step.state is not StepState.MOOT}
    others = (machine for machine in draft.machines_on(order.host) if machine.id not in told)
    return tuple(
        Waiting(what=machine.name, reason=f"is on {order.host} too, and has not been told of this work")
        for machine in others
        if machine.state is not MachineState.STOPPED
    )


def not_to_finish(draft: Draft, order: Order, stage: Stage) -> tuple[Waiting, ...]:
    """Return what keeps a started stage from being finished, beside the work itself."""
    return (
        *lost_hosts.lost(draft, order),
        *failures(order),
        *_unknown(order),
        *fencing.not_fenced(draft, order),
        *_done_outside(order, order.driven),
        *busy(draft, order, stage.steps),
        *lost_hosts.stranded(draft, order, stage.steps),
    )


def not_to_empty(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return what keeps a failed host from being empty on which nothing is recovered any more."""
    own = (*failures(order), *_unknown(order), *fencing.not_fenced(draft, order))
    return (*own, *_done_outside(order, order.driven), *not_empty(draft, order))


def not_to_close(order: Order) -> tuple[Waiting, ...]:
    """Return what keeps an order that was given up from being closed: all of it that still runs."""
    names = machine_names(step.name for step in order.driven)
    what = f"the work on {names} is called off or over"
    if all(step.name == HostTask.UNCORDON for step in order.driven):
        what = f"host {order.host} is let go"
    ends = f"being {order.given_up}: ends once {what}"
    return (
        Waiting(what=f"order {order.id}", reason=ends),
        *_too_late(order),
        *_unknown(order),
        *_done_outside(order, order.driven),
    )


def _too_late(order: Order) -> tuple[Waiting, ...]:
    """Return the steps that cannot be called off any more."""
    return tuple(
        Waiting(what=_named(order, step), reason=_goes_on(order, step))
        for step in order.driven
        if step.too_late
    )


def _goes_on(order: Order, step: Step | HostStep) -> str:
    if order.driver_of(step) == EXTERNAL:
        return "is done outside, and is asked to stop with its next heartbeat"
    return "can no longer be called off: it goes on"


def _unknown(order: Order) -> tuple[Waiting, ...]:
    """Return the steps whose driver cannot tell how they are doing."""
    unknown = (step for step in order.driven if step.why)
    return tuple(
        Waiting(what=_named(order, step), reason=f"its state is unknown: {step.why}") for step in unknown
    )


def _named(order: Order, step: Step | HostStep) -> str:
    return step.name if isinstance(step, Step) else f"{step.task} of host {order.host}"


def _done_outside(order: Order, driven: Sequence[Step | HostStep]) -> tuple[Waiting, ...]:
    """Return the work that waits for the word of those who do it."""
    running = [step for step in driven if order.driver_of(step) == EXTERNAL]
    if not running:
        return ()
    what = f"host {order.host}" if order.host else running[0].name
    report = f"`forewarn order complete {order.id}` (POST /v1/orders/{{id}}/complete)"
    if order.action is Action.FAIL and isinstance(running[0], HostStep):
        return (Waiting(what=what, reason=f"to be fenced outside: {report} says that it is", outside=True),)
    since = [step.taken_up_at for step in running if step.taken_up_at is not None]
    if since:
        reason = f"done outside since {format_time(min(since))}: waits for {report}"
    else:
        in_parts = len(order.stages) > 1 and not order.terms.undivided
        how = " --one-by-one" if in_parts else ""
        gate = f"`forewarn gate order {order.id}{how} -- COMMAND`"
        reason = f"to be done outside, and nobody has taken it up: {gate} does it, {report} says it is done"
    return (Waiting(what=what, reason=reason, outside=True),)


def failures(order: Order) -> tuple[Waiting, ...]:
    """Return the steps that wait for a person."""
    failed = (step for step in order.all_steps if step.state is StepState.FAILED)
    return tuple(Waiting(what=_named(order, step), reason=f"failed: {step.why}") for step in failed)


def timing(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> Timing:
    """Return what binds the start of a stage."""
    if not is_planned(order):
        return Timing()
    groups = groups_of(draft, (step for step in affected if step.state is not StepState.MOOT))
    bound = calendars(draft.projects[group.project] for group in groups)
    if not bound:  # then neither notice nor length matter, and it is asked of every event at every look
        return Timing(deadline=order.terms.deadline)
    return Timing(
        notice=longest_notice(draft, order, affected, policy),
        work=_work_time(draft, order, affected, policy),
        calendars=bound,
        deadline=order.terms.deadline,
        slew=draft.base.slew,
    )


def _work_time(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> timedelta:
    """Return how long a stage takes: as long as its machines move, or as its order says."""
    if not work_durations.is_move(order, affected):
        return work_durations.host_time(order, policy)
    host = draft.hosts.get(order.host) if order.host else None
    at_once = work_durations.moves_at_once(order, host.at_once if host else None)
    machines = [draft.machines.get(step.machine) for step in affected]
    return work_durations.moves_time(machines, at_once, draft.pace)


def longest_notice(draft: Draft, order: Order, affected: Iterable[Step], policy: Policy) -> timedelta:
    """Return the notice that is given of the steps of a stage, the longest if their works differ."""
    groups: dict[Work, list[Step]] = {}
    for step in affected:
        if step.state is not StepState.MOOT:  # the group of a machine that was removed may be gone with it
            groups.setdefault(step.work, []).append(step)
    notices = (notice_of(order, work, groups_of(draft, its), policy) for work, its in groups.items())
    return max((notice.ahead for notice in notices), default=timedelta())


def announce_at(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> datetime | None:
    """Return when a stage that waits only for the time to come is announced; None if there is no such moment.

    That is when guests want to hear of a degraded host, or so long before a window as they need notice.
    """
    if order.action is Action.DEGRADE:
        return degrade_announced_at(order, groups_of(draft, affected), policy)
    return timing(draft, order, affected, policy).announce_at(draft.now)


def groups_of(draft: Draft, affected: Iterable[Step]) -> list[Group]:
    """Return the groups of these steps."""
    return [draft.groups[name] for name in sorted({step.group for step in affected})]


def held(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return the holds that reach a stage; a failed host waits for none, nor does who was told not to."""
    if order.action is Action.FAIL or order.terms.despite_hold or not draft.holds:
        return ()
    there = [draft.machines[step.machine] for step in affected if step.machine in draft.machines]
    hosts = {order.host, *(machine.host for machine in there)}
    return holds.reaching(draft.holds.values(), hosts=hosts, projects={machine.project for machine in there})


def _paused(order: Order) -> tuple[Waiting, ...]:
    """Return the pause of an order's rollout: none of its hosts goes on to its next stage."""
    if not order.terms.paused:
        return ()
    return (Waiting(what=f"rollout {order.terms.rollout}", reason=f"paused: {order.terms.paused}"),)


def _announced_later(
    draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy
) -> tuple[Waiting, ...]:
    """Return until when the guests of a degraded host want to hear nothing of it yet."""
    if order.action is not Action.DEGRADE:
        return ()
    at = degrade_announced_at(order, groups_of(draft, affected), policy)
    if at <= draft.now:
        return ()
    return (Waiting(what=f"host {order.host}", reason=f"guests are told at {format_time(at)}", until=at),)


def _not_approved(draft: Draft, announced: tuple[Event, ...]) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(what=event.id, reason=f"{_awaits(event)}; may start at {format_time(at)}", until=at)
        for event in announced
        if (at := events.may_start_at(draft, event)) > draft.now
    )


def _awaits(event: Event) -> str:
    """Name the machines that must approve, where not just any of them may."""
    if event.rule is ApprovalRule.ANY:
        return "not approved"
    return f"not approved; awaits {events.awaited_approvals(event)}"


def busy(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return which orders work on what these steps are about."""
    return tuple(
        Waiting(what=step.name, reason=f"waits for order {other.id} ({other.action}) to finish with it")
        for step in affected
        if step.state is StepState.WAITING and (other := steps.running_elsewhere(draft, step.machine, order))
    )
