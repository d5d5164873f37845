"""Why an order cannot go on yet. Everything that waits carries its reason as data."""

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
from forewarn.core.orders import events, fencing, lost_hosts, placement, steps
from forewarn.core.policy import Policy, degrade_announced_at, is_planned, notice_of
from forewarn.core.redaction import machine_names
from forewarn.core.time_formats import format_time


def why_not_announced(
    draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy, *, armed: bool | None = None
) -> tuple[Waiting, ...]:
    """Return what prevents these steps from being announced.

    `armed` tells whether their events are armed with the announcement; by default their notice decides.
    """
    proposed = proposal(draft, order, affected, policy)
    if proposed.armed or proposed.budgets:
        if armed is None:
            notice = notice_of(order, affected[0].work, groups_of(draft, affected), policy)
            armed = events.armed_at_once(notice)
        # Other domains and budgets count when events are armed, which may be later.
        proposed = proposed if armed else replace(proposed, armed={}, budgets={})
    later: tuple[Waiting, ...] = ()
    if order.action is Action.DEGRADE:
        at = degrade_announced_at(order, groups_of(draft, affected), policy)
        if at > draft.now:
            reason = f"guests are notified at {format_time(at)}"
            later = (Waiting(what=f"host {order.host}", reason=reason, until=at),)
    paused = f"paused: {order.terms.paused}"
    return (
        *holds_on(draft, order, affected),
        *((Waiting(what=f"rollout {order.terms.rollout}", reason=paused),) if order.terms.paused else ()),
        *later,
        *announcing.why_not(proposed, now=draft.now),
        *placement.machines_without_room(draft, order, affected),
    )


def proposal(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> Proposal:
    """Return these steps as work to be announced, without the rules that the order is exempt from."""
    budgets = draft.budgets({step.group for step in affected}) if is_planned(order) else {}
    footprint = _footprint(draft, order, affected, budgets)
    patient = footprint.counts if ACTIONS[order.action].can_wait and not order.terms.emergency else ()
    # Domains that one order disturbs together wait for other orders, not for each other.
    own = order.id if order.terms.together else None
    return Proposal(
        host=f"{order.host}",
        footprint=footprint,
        armed={group: draft.armed_domains(group, but_of=own) for group in patient},
        budgets=budgets,
        timing=timing(draft, order, affected, policy),
        whole=order.terms.whole,
    )


def divided_groups(draft: Draft, order: Order, policy: Policy) -> tuple[Waiting, ...]:
    """Return the groups with several update domains on a host that is to be treated as a whole.

    The order was refused if there were any at first, so these machines have arrived since.
    """
    in_one_go = [stage for stage in order.stages if stage.kind in (StageKind.MACHINES, StageKind.HOST)]
    if not order.terms.whole or (len(in_one_go) == 1 and order.action is not Action.SERVICE):
        return ()
    affected = tuple(step for stage in in_one_go for step in stage.steps)
    return announcing.divided(proposal(draft, order, affected, policy))


def check_possible(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> None:
    """Refuse work that could never be announced."""
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
    if len(works) != 1:  # different works keep to update domains
        return footprint
    (work,) = works
    most = {group: draft.groups[group].policy.at_most(work) for group in counts}
    return footprint.with_free({group: limit for group, limit in most.items() if limit != 0})


def why_not_started(
    draft: Draft,
    order: Order,
    stage: Stage,
    announced: tuple[Event, ...],
    policy: Policy,
    *,
    alone: bool = False,
) -> tuple[Waiting, ...]:
    """Return what prevents announced machines from starting.

    Machines that move (`alone`) do not wait for the others on the host.
    """
    return (
        *holds_on(draft, order, stage.steps),
        *(() if alone else unannounced_machines(draft, order, stage)),
        *_not_approved(draft, announced),
        *timing(draft, order, stage.steps, policy).why_not_start(f"{order.host}", now=draft.now),
        *other_orders_on(draft, order, stage.steps),
        *(() if alone else lost_hosts.stranded_machines(draft, order, stage.steps)),
    )


def unannounced_machines(draft: Draft, order: Order, stage: Stage) -> tuple[Waiting, ...]:
    """Return the machines on the host that are not in a stage of work on the whole host.

    Such a machine is leaving, or it arrived after the announcement with another update domain.
    """
    if order.host is None or not order.terms.undivided:
        return ()
    announced = {step.machine for step in stage.steps if step.state is not StepState.MOOT}
    others = (machine for machine in draft.machines_on(order.host) if machine.id not in announced)
    return tuple(
        Waiting(what=machine.name, reason=f"is on {order.host} too, and was not notified of this work")
        for machine in others
        if machine.state is not MachineState.STOPPED
    )


def why_not_finished(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return what keeps started work from being finished, apart from running steps."""
    return (
        *lost_hosts.why_lost(draft, order),
        *failures(order),
        *_unknown(order),
        *fencing.why_not_fenced(draft, order),
        *_done_outside(order),
        *other_orders_on(draft, order, affected),
        *lost_hosts.stranded_machines(draft, order, affected),
    )


def why_not_closed(order: Order) -> tuple[Waiting, ...]:
    """Return the steps of an abandoned order that still run."""
    names = machine_names(step.name for step in order.driven)
    what = f"the work on {names} is cancelled or over"
    if all(step.name == HostTask.UNCORDON for step in order.driven):
        what = f"host {order.host} is uncordoned"
    ends = f"being {order.given_up}: ends once {what}"
    return (
        Waiting(what=f"order {order.id}", reason=ends),
        *(
            Waiting(
                what=_named(order, step),
                reason="is done outside, and is asked to stop with its next heartbeat"
                if order.driver_of(step) == EXTERNAL
                else "can no longer be cancelled: it continues",
            )
            for step in order.driven
            if step.too_late
        ),
        *_unknown(order),
        *_done_outside(order),
    )


def _unknown(order: Order) -> tuple[Waiting, ...]:
    """Return the running steps whose state the driver cannot tell."""
    unknown = (step for step in order.driven if step.why)
    return tuple(
        Waiting(what=_named(order, step), reason=f"its state is unknown: {step.why}") for step in unknown
    )


def _named(order: Order, step: Step | HostStep) -> str:
    return step.name if isinstance(step, Step) else f"{step.task} of host {order.host}"


def _done_outside(order: Order) -> tuple[Waiting, ...]:
    """Return the work that an external program does and must report."""
    running = [step for step in order.driven if order.driver_of(step) == EXTERNAL]
    if not running:
        return ()
    what = f"host {order.host}" if order.host else running[0].name
    report = f"`forewarn order complete {order.id}` (POST /v1/orders/{{id}}/complete)"
    since = [step.taken_up_at for step in running if step.taken_up_at is not None]
    if order.action is Action.FAIL and isinstance(running[0], HostStep):
        reason = f"to be fenced outside forewarn: {report} reports that it is"
    elif since:
        reason = f"done outside since {format_time(min(since))}: waits for {report}"
    else:
        in_parts = len(order.stages) > 1 and not order.terms.undivided
        how = " --one-by-one" if in_parts else ""
        gate = f"`forewarn gate order {order.id}{how} -- COMMAND`"
        reason = f"to be done outside forewarn, not taken up yet: {gate} does it, {report} reports it as done"
    return (Waiting(what=what, reason=reason, outside=True),)


def failures(order: Order) -> tuple[Waiting, ...]:
    """Return the failed steps, which wait for a person."""
    failed = (step for step in order.all_steps if step.state is StepState.FAILED)
    return tuple(Waiting(what=_named(order, step), reason=f"failed: {step.why}") for step in failed)


def timing(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> Timing:
    """Return the windows and the deadline that bind the start of these steps."""
    if not is_planned(order):
        return Timing()
    groups = groups_of(draft, (step for step in affected if step.state is not StepState.MOOT))
    bound = calendars(draft.projects[group.project] for group in groups)
    if not bound:  # skip notice and work time: this runs for every event in each tick
        return Timing(deadline=order.terms.deadline)
    return Timing(
        notice=_longest_notice(draft, order, affected, policy),
        work=_work_time(draft, order, affected, policy),
        calendars=bound,
        deadline=order.terms.deadline,
        slew=draft.base.slew,
    )


def _work_time(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> timedelta:
    """Return how long these steps are expected to take."""
    moves = order.action is Action.SERVICE and bool(affected) and all(step.moves for step in affected)
    if not moves:
        return order.terms.expected or policy.expected_work
    host = draft.hosts.get(order.host) if order.host else None
    machines = [draft.machines.get(step.machine) for step in affected]
    return work_durations.moves_time(machines, work_durations.moves_at_once(order, host), draft.pace)


def _longest_notice(draft: Draft, order: Order, affected: Iterable[Step], policy: Policy) -> timedelta:
    """Return the notice of these steps; the longest if their works differ."""
    by_work: dict[Work, list[Step]] = {}
    for step in affected:
        if step.state is not StepState.MOOT:  # the group of a removed machine may be gone
            by_work.setdefault(step.work, []).append(step)
    notices = (notice_of(order, work, groups_of(draft, its), policy) for work, its in by_work.items())
    return max((notice.ahead for notice in notices), default=timedelta())


def announce_at(draft: Draft, order: Order, affected: tuple[Step, ...], policy: Policy) -> datetime | None:
    """Return when a stage that waits only for time can be announced, or None if never.

    For a degraded host, its groups choose that time. Otherwise it is the notice before a window opens.
    """
    if order.action is Action.DEGRADE:
        return degrade_announced_at(order, groups_of(draft, affected), policy)
    return timing(draft, order, affected, policy).announce_at(draft.now)


def groups_of(draft: Draft, affected: Iterable[Step]) -> list[Group]:
    """Return the groups of these steps."""
    return [draft.groups[name] for name in sorted({step.group for step in affected})]


def holds_on(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return the holds that apply to these steps. A host failure ignores holds."""
    if order.action is Action.FAIL or order.terms.despite_hold or not draft.holds:
        return ()
    there = [draft.machines[step.machine] for step in affected if step.machine in draft.machines]
    hosts = {order.host, *(machine.host for machine in there)}
    return holds.reaching(draft.holds.values(), hosts=hosts, projects={machine.project for machine in there})


def _not_approved(draft: Draft, announced: tuple[Event, ...]) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(what=event.id, reason=f"{_awaited(event)}; may start at {format_time(at)}", until=at)
        for event in announced
        if (at := events.may_start_at(draft, event)) > draft.now
    )


def _awaited(event: Event) -> str:
    if event.rule is ApprovalRule.ANY:
        return "not approved"
    return f"not approved; awaits {events.awaited_approvals(event)}"


def other_orders_on(draft: Draft, order: Order, affected: tuple[Step, ...]) -> tuple[Waiting, ...]:
    """Return the other orders that work on the machines of these steps."""
    return tuple(
        Waiting(what=step.name, reason=f"waits for order {other.id} ({other.action}) to finish with it")
        for step in affected
        if step.state is StepState.WAITING and (other := steps.running_elsewhere(draft, step.machine, order))
    )
