"""What drivers report of steps: under way, done, failed, called off, or that they cannot tell."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.core.basic_types import (
    EXTERNAL,
    FOREWARN,
    HostName,
    HostState,
    HostTask,
    Kind,
    OrderId,
    StepState,
    Work,
)
from forewarn.core.catalogue import ACTIONS
from forewarn.core.disclosure import unmark_driver_text
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.clock_slew import BRIEF, Absence
from forewarn.core.model.order import AttemptId, HostStep, Order, RefusedHost, Step
from forewarn.core.orders import (
    departures,
    host_failures,
    host_steps,
    host_work,
    lifecycle,
    lost_hosts,
    stages,
    steps,
    superseding,
)
from forewarn.core.policy import Policy
from forewarn.core.redaction import driver_named

# Whole orders, as those report who work outside


def report_done(draft: Draft, order: OrderId, *, by: str, policy: Policy) -> Order:
    """Mark the running steps of an order done, as an external driver reports."""
    outside = _under_way_outside(draft, order)
    _refuse_without_a_place(draft, outside)
    for step in outside:
        _done(draft, order, step, by=by)
    return lifecycle.advance(draft, order, policy=policy)


def report_failed(draft: Draft, order: OrderId, *, by: str, why: str, policy: Policy) -> Order:
    """Mark the running steps of an order failed, as an external driver reports."""
    for step in _under_way_outside(draft, order):
        _hear_of_host(draft, order, step)
        _fail(draft, order, step, why=why, by=by)
    return lifecycle.advance(draft, order, policy=policy)


def heartbeat(draft: Draft, order: OrderId, *, heard_at: datetime, policy: Policy) -> Order:
    """Note that an external driver is at work on an order: from then on, silence counts, in real time."""
    outside = _under_way_outside(draft, order)
    mine = draft.put_order(replace(draft.orders[order], heard_at=heard_at))
    look_at = draft.now + (mine.terms.heartbeat or policy.external_silence)
    for step in outside:
        _put(draft, order, replace(step, look_at=look_at, taken_up_at=step.taken_up_at or draft.now, why=""))
    return lifecycle.advance(draft, order, policy=policy)


def _under_way_outside(draft: Draft, order: OrderId) -> Sequence[Step | HostStep]:
    """Return the steps that others do, of machines and of the host itself."""
    mine = draft.orders[order]
    outside = [step for step in mine.driven if mine.driver_of(step) == EXTERNAL]
    if not outside and mine.driven:
        driver = mine.driver_of(mine.driven[0])
        raise Conflict(f"order {order} is carried out by {driver_named(driver)}: nobody else has a say")
    if not outside and EXTERNAL not in (mine.driver, mine.terms.host_driver):
        raise Conflict(f"order {order} is carried out by {driver_named(mine.driver)}: nobody else has a say")
    if not outside:
        raise Conflict(f"order {order} is {mine.state}: none of its work is under way")
    return outside


def _refuse_without_a_place(draft: Draft, outside: Sequence[Step | HostStep]) -> None:
    """Refuse to take machines as recovered while nobody has said where: their own host has failed."""
    for step in outside:
        if isinstance(step, Step) and step.work is Work.RECOVER:
            machine = draft.machines[step.machine]
            if machine.host is not None and _has_failed(draft, machine.host):
                said = f'"{machine.name}" is on host {machine.host}, which failed'
                raise Conflict(
                    f"{said}: declare the host where it is now, or restore that one, then complete"
                )


def fail_silent_steps(draft: Draft, order: OrderId, *, by: str, why: str, policy: Policy) -> Order:
    """Mark the running steps of an order failed that somebody outside has taken up."""
    for step in filter(is_taken_up, draft.orders[order].driven):
        _fail(draft, order, step, why=why, by=by)
    return lifecycle.advance(draft, order, policy=policy)


def is_taken_up(step: Step | HostStep) -> bool:
    """Return whether somebody outside is at a step, and must be heard of."""
    return step.state is StepState.RUNNING and step.taken_up_at is not None


# Single steps, as their drivers answer: what is said of an attempt that does not run any more is dropped


def step_running(
    draft: Draft,
    attempt: AttemptId,
    *,
    look_at: datetime | None,
    mark: str = "",
    progress: float | None = None,
) -> None:
    """Note that a step is under way, and when to ask its driver again."""
    if (step := _running_step(draft, attempt)) is not None:
        known = replace(step, look_at=look_at, mark=mark or step.mark, progress=progress, why="")
        _put(draft, attempt.order, known)


def step_unknown(draft: Draft, attempt: AttemptId, *, why: str, look_at: datetime | None = None) -> None:
    """Note that the driver of a step cannot tell how it is doing: it goes on, for all that is known."""
    if (step := _running_step(draft, attempt)) is None:
        return
    mine = draft.orders[attempt.order]
    unknown = (
        host_steps.unknown(draft, mine, step, why=why)
        if isinstance(step, HostStep)
        else steps.unknown(draft, mine, step, why=why)
    )
    _put(draft, mine.id, replace(unknown, look_at=look_at))


def step_done(
    draft: Draft,
    attempt: AttemptId,
    *,
    host: HostName | None = None,
    impact: float | None = None,
    note: str = "",
) -> None:
    """Mark a step done, and believe its driver where the machine is, and what is to be known besides."""
    if (step := _running_step(draft, attempt)) is None:
        return
    if isinstance(step, HostStep):
        _done(draft, attempt.order, step)
    elif host is not None and host not in draft.hosts:
        why = f"its driver says it is on {host}, which is no host of the fleet: declare it, then retry"
        _fail(draft, attempt.order, step, why=why)
    else:
        _done(draft, attempt.order, replace(step, impact=impact), host=host, note=note)


def step_failed(draft: Draft, attempt: AttemptId, *, why: str, again: bool = False) -> None:
    """Mark a step failed; a person must retry or abandon its order.

    Its driver may want another attempt at a step on the host itself; one that was given up gets none.
    """
    if (step := _running_step(draft, attempt)) is not None:
        _hear_of_host(draft, attempt.order, step)
        mine = draft.orders[attempt.order]
        again = again and (not mine.terms.abandoned_by or host_work.uncordons_unfinished_host(mine, step))
        _fail(draft, attempt.order, step, why=why, again=again)


def step_refused(draft: Draft, attempt: AttemptId, *, why: str) -> None:
    """Choose another host for a step that has not begun: its machine cannot go to the chosen one."""
    step = _running_step(draft, attempt)
    if isinstance(step, Step) and step.target is not None:
        refused = RefusedHost(host=step.target, why=why)
        step = replace(step, refused=(*step.refused, refused))
        if not superseding.hand_over(draft, attempt.order, step, why=f"{refused.host} cannot take it, {why}"):
            _put(draft, attempt.order, steps.send_elsewhere(draft, draft.orders[attempt.order], step))
        draft.wake(departures.open_orders_with(draft, step.machine))


def step_target_unreachable(draft: Draft, attempt: AttemptId, *, why: str) -> None:
    """Choose another host for a step that has not begun: the chosen one cannot be reached.

    This is no refusal: the machine may go there later. If no other host can be reached, the step waits.
    """
    step = _running_step(draft, attempt)
    if not isinstance(step, Step) or step.target is None:
        return
    if draft.orders[attempt.order].terms.abandoned_by:
        step_cancelled(draft, attempt)
        return
    lost_hosts.note_unreachable(draft, step.target, why=unmark_driver_text(why))
    said = f"{step.target} cannot be reached"
    if not superseding.hand_over(draft, attempt.order, step, why=said):
        order = draft.orders[attempt.order]
        machine = draft.machines[step.machine]
        draft.record(Kind.ORDER_RETRIED, machine, order=order.id, by=FOREWARN, reason=said)
        _put(draft, order.id, steps.put_back(draft, step))
    draft.wake(departures.open_orders_with(draft, step.machine))


def step_cancelled(draft: Draft, attempt: AttemptId) -> None:
    """Make a step of an abandoned order moot that its driver has called off."""
    if (step := _running_step(draft, attempt)) is not None:
        mine = draft.orders[attempt.order]
        why = f"{mine.given_up}, and called off"
        if isinstance(step, HostStep):
            _put(draft, mine.id, host_steps.abandon(draft, step, why=why))
            return
        if not superseding.hand_over(draft, mine.id, step, why=why):
            _put(draft, mine.id, departures.abandon_step(draft, mine, step, why=why))
        draft.wake(departures.open_orders_with(draft, step.machine))


def step_too_late(draft: Draft, attempt: AttemptId) -> None:
    """Note that a step of an abandoned order cannot be called off any more: it goes on to its end."""
    if (step := _running_step(draft, attempt)) is not None and not step.too_late:
        _put(draft, attempt.order, replace(step, too_late=True))


def _done(
    draft: Draft,
    order: OrderId,
    step: Step | HostStep,
    *,
    host: HostName | None = None,
    by: str = "",
    note: str = "",
) -> None:
    _hear_of_host(draft, order, step)
    if isinstance(step, HostStep):
        _put(draft, order, host_steps.done(draft, draft.orders[order], step, by=by))
        if step.task is HostTask.FENCE:
            superseding.end_departures(draft, draft.orders[order])
        return
    arrived, before = host or step.target, draft.machines[step.machine]
    if arrived is not None and not _can_arrive(draft, step, arrived):
        why = f"host {arrived} was lost before it arrived: retry, and another one is chosen"
        _fail(draft, order, step, why=why)
        return
    _put(draft, order, steps.done(draft, draft.orders[order], step, host=host, by=by, note=note))
    host = draft.machines[step.machine].host
    if ACTIONS[draft.orders[order].action].leaves or host != before.host:
        why = f"moved to {host}" if host != before.host and host else f"{step.work} is done"
        departures.remove_from_host_orders(draft, before, why=why, keep=order)
        departures.wake_undivided_orders(draft, before.host)
    draft.wake(departures.open_orders_with(draft, step.machine))


def _fail(
    draft: Draft, order: OrderId, step: Step | HostStep, *, why: str, by: str = "", again: bool = False
) -> None:
    if isinstance(step, HostStep):
        failed = host_steps.fail(draft, draft.orders[order], step, why=why, by=by, again=again)
        _put(draft, order, failed)
        return
    _put(draft, order, steps.fail(draft, draft.orders[order], step, why=why, by=by))
    superseding.hand_over(draft, order, step, why=why)
    draft.wake(departures.open_orders_with(draft, step.machine))
    if ACTIONS[draft.orders[order].action].leaves:
        departures.wake_host_of(draft, draft.orders[order])


def _hear_of_host(draft: Draft, order: OrderId, step: Step | HostStep) -> None:
    """Take a host to be back that somebody reports of; silence is no report."""
    if isinstance(step, HostStep):
        lost_hosts.come_back(draft, draft.orders[order], step)


def _can_arrive(draft: Draft, step: Step, host: HostName) -> bool:
    """Return whether a machine may be where it is said to be: on a failed host only if it is recovered there.

    The failure of a host is open as long as machines are on their way to it.
    """
    if host not in draft.hosts:
        return False
    return (
        not _has_failed(draft, host)
        or host == step.target
        or host_failures.newest_of(draft, host) is not None
    )


def _has_failed(draft: Draft, host: HostName) -> bool:
    known = draft.hosts.get(host)
    return known is None or known.state is HostState.FAILED


def _running_step(draft: Draft, attempt: AttemptId) -> Step | HostStep | None:
    """Find the step; None if this attempt does not run any more: the machine left, or it is tried anew."""
    wanted = attempt.subject, attempt.number
    mine = (step for step in draft.orders[attempt.order].driven if (step.subject, step.attempt) == wanted)
    return next(mine, None)


def _put(draft: Draft, order: OrderId, reported: Step | HostStep) -> None:
    """Replace the running step of a machine, or of the host itself."""
    if isinstance(reported, HostStep):
        draft.put_order(host_steps.put(draft.orders[order], reported))
        return

    def put(step: Step) -> Step:
        running = step.machine == reported.machine and step.state is StepState.RUNNING
        return reported if running else step

    draft.put_order(stages.with_steps(draft.orders[order], put))


NOTHING = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Until when a server ran before this start, in real time, and when it had been away before."""

    until: datetime
    absences: tuple[Absence, ...] = ()


def silence_before_start(
    limit: timedelta, heard_at: datetime | None, presence: Presence | None, *, now: datetime
) -> timedelta:
    """Return how much of an order's silence counts that was before a start of the service.

    After a brief restart the count goes on, and leaves a minute at least. An outage that lasted longer may
    have swallowed a report, and a clock that was set tells nothing: then it begins again, as after any other
    absence.

    While a server runs, silence is counted by its monotonic clock, which cannot be set. Over a start only
    what was saved is known, by the system's clock.
    """
    if heard_at is None or presence is None or not NOTHING <= now - presence.until <= BRIEF:
        return NOTHING
    since = max([heard_at, *(each.until for each in presence.absences if not each.brief)])
    return max(min(presence.until - since, limit - BRIEF), NOTHING)
