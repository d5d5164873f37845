"""Handle the reports of drivers about steps: running, done, failed, cancelled or unknown."""

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

# Reports about a whole order, from an external program


def report_done(draft: Draft, order_id: OrderId, *, by: str, policy: Policy) -> Order:
    """Mark the running external steps of an order as done."""
    outside = _external_steps(draft, order_id)
    _check_recovered_host(draft, outside)
    for step in outside:
        _done(draft, order_id, step, by=by)
    return lifecycle.advance(draft, order_id, policy=policy)


def report_failed(draft: Draft, order_id: OrderId, *, by: str, why: str, policy: Policy) -> Order:
    """Mark the running external steps of an order as failed."""
    for step in _external_steps(draft, order_id):
        _note_host_back(draft, order_id, step)
        _fail(draft, order_id, step, why=why, by=by)
    return lifecycle.advance(draft, order_id, policy=policy)


def heartbeat(draft: Draft, order_id: OrderId, *, heard_at: datetime, policy: Policy) -> Order:
    """Note that an external program works on an order.

    If no further heartbeat arrives in time, its steps fail. That time is real time.
    """
    outside = _external_steps(draft, order_id)
    order = draft.put_order(replace(draft.orders[order_id], heard_at=heard_at))
    look_at = draft.now + (order.terms.heartbeat or policy.external_silence)
    for step in outside:
        _put(
            draft, order_id, replace(step, look_at=look_at, taken_up_at=step.taken_up_at or draft.now, why="")
        )
    return lifecycle.advance(draft, order_id, policy=policy)


def _external_steps(draft: Draft, order_id: OrderId) -> Sequence[Step | HostStep]:
    """Return the running steps that an external program carries out; refuse the report if there are none."""
    order = draft.orders[order_id]
    outside = [step for step in order.driven if order.driver_of(step) == EXTERNAL]
    if outside:
        return outside
    driver = order.driver_of(order.driven[0]) if order.driven else order.driver
    if order.driven or EXTERNAL not in (order.driver, order.terms.host_driver):
        raise Conflict(
            f"order {order_id} is carried out by {driver_named(driver)}: it takes no outside reports"
        )
    raise Conflict(f"order {order_id} is {order.state}: none of its work is under way")


def _check_recovered_host(draft: Draft, outside: Sequence[Step | HostStep]) -> None:
    """Refuse to mark a machine as recovered while its declared host is the failed one."""
    for step in outside:
        if isinstance(step, Step) and step.work is Work.RECOVER:
            machine = draft.machines[step.machine]
            if machine.host is not None and _has_failed(draft, machine.host):
                said = f'"{machine.name}" is on host {machine.host}, which failed'
                raise Conflict(
                    f"{said}: declare the host where it is now, or restore that one, then complete"
                )


def fail_silent_steps(draft: Draft, order_id: OrderId, *, by: str, why: str, policy: Policy) -> Order:
    """Mark the steps that an external program has taken up as failed: its heartbeats have stopped."""
    for step in filter(is_taken_up, draft.orders[order_id].driven):
        _fail(draft, order_id, step, why=why, by=by)
    return lifecycle.advance(draft, order_id, policy=policy)


def is_taken_up(step: Step | HostStep) -> bool:
    """Return whether an external program has taken up a step and must send heartbeats."""
    return step.state is StepState.RUNNING and step.taken_up_at is not None


# Answers of drivers about one attempt. An answer about an attempt that no longer runs is ignored.


def step_running(
    draft: Draft,
    attempt: AttemptId,
    *,
    look_at: datetime | None,
    mark: str = "",
    progress: float | None = None,
) -> None:
    """Note that a step is running, and when to ask its driver again."""
    if (step := _running_step(draft, attempt)) is not None:
        known = replace(step, look_at=look_at, mark=mark or step.mark, progress=progress, why="")
        _put(draft, attempt.order, known)


def step_unknown(draft: Draft, attempt: AttemptId, *, why: str, look_at: datetime | None = None) -> None:
    """Note that the driver cannot tell the state of a step. The step stays running."""
    if (step := _running_step(draft, attempt)) is None:
        return
    if step.unknown_at is None:  # one record for each attempt, even if the connection is unstable
        steps.record(draft, Kind.STEP_UNKNOWN, draft.orders[attempt.order], step, why=why)
    unknown = replace(step, unknown_at=step.unknown_at or draft.now, why=why, look_at=look_at)
    _put(draft, attempt.order, unknown)


def step_done(
    draft: Draft,
    attempt: AttemptId,
    *,
    host: HostName | None = None,
    impact: float | None = None,
    note: str = "",
) -> None:
    """Mark a step as done, with the host and the downtime in seconds (`impact`) that its driver reports."""
    if (step := _running_step(draft, attempt)) is None:
        return
    if isinstance(step, HostStep):
        _done(draft, attempt.order, step)
    elif host is not None and host not in draft.hosts:
        why = f"its driver says it is on {host}, which is not a host of the fleet: declare it, then retry"
        _fail(draft, attempt.order, step, why=why)
    else:
        _done(draft, attempt.order, replace(step, impact=impact), host=host, note=note)


def step_failed(draft: Draft, attempt: AttemptId, *, why: str, again: bool = False) -> None:
    """Mark a step as failed. A person must retry or abandon its order.

    The driver can ask for another attempt (`again`) at a host step. An abandoned step gets none.
    """
    if (step := _running_step(draft, attempt)) is not None:
        _note_host_back(draft, attempt.order, step)
        order = draft.orders[attempt.order]
        again = again and (not order.terms.abandoned_by or host_work.uncordons_unfinished_host(order, step))
        _fail(draft, attempt.order, step, why=why, again=again)


def step_refused(draft: Draft, attempt: AttemptId, *, why: str) -> None:
    """Choose another host for a step that has not begun, because the target refused the machine."""
    step = _running_step(draft, attempt)
    if isinstance(step, Step) and step.target is not None:
        refused = RefusedHost(host=step.target, why=why)
        step = replace(step, refused=(*step.refused, refused))
        if not superseding.hand_over(draft, attempt.order, step, why=steps.refusal(refused)):
            _put(draft, attempt.order, steps.send_elsewhere(draft, draft.orders[attempt.order], step))
        draft.wake(departures.open_orders_with(draft, step.machine))


def step_target_unreachable(draft: Draft, attempt: AttemptId, *, why: str) -> None:
    """Choose another host for a step that has not begun, because the target cannot be reached.

    This is no refusal: the machine may go there later. The step waits if no other host can be reached.
    """
    step = _running_step(draft, attempt)
    if not isinstance(step, Step) or step.target is None:
        return
    if draft.orders[attempt.order].terms.abandoned_by:
        step_cancelled(draft, attempt)
        return
    lost_hosts.note_unreachable(draft, step.target, why=unmark_driver_text(why))
    reason = f"{step.target} cannot be reached"
    if not superseding.hand_over(draft, attempt.order, step, why=reason):
        order = draft.orders[attempt.order]
        machine = draft.machines[step.machine]
        draft.record(Kind.ORDER_RETRIED, machine, order=order.id, by=FOREWARN, reason=reason)
        _put(draft, order.id, steps.put_back(draft, step))
    draft.wake(departures.open_orders_with(draft, step.machine))


def step_cancelled(draft: Draft, attempt: AttemptId) -> None:
    """Make a step of an abandoned order moot, because its driver has cancelled it."""
    if (step := _running_step(draft, attempt)) is not None:
        order = draft.orders[attempt.order]
        why = f"{order.given_up}, and cancelled"
        if isinstance(step, HostStep):
            _put(draft, order.id, host_steps.abandon(draft, step, why=why))
            return
        if not superseding.hand_over(draft, order.id, step, why=why):
            _put(draft, order.id, departures.abandon_step(draft, order, step, why=why))
        draft.wake(departures.open_orders_with(draft, step.machine))


def step_too_late(draft: Draft, attempt: AttemptId) -> None:
    """Note that a step of an abandoned order can no longer be cancelled. It runs to its end."""
    if (step := _running_step(draft, attempt)) is not None and not step.too_late:
        _put(draft, attempt.order, replace(step, too_late=True))


def _done(
    draft: Draft,
    order_id: OrderId,
    step: Step | HostStep,
    *,
    host: HostName | None = None,
    by: str = "",
    note: str = "",
) -> None:
    _note_host_back(draft, order_id, step)
    if isinstance(step, HostStep):
        _put(draft, order_id, host_steps.done(draft, draft.orders[order_id], step, by=by))
        if step.task is HostTask.FENCE:
            superseding.end_departures(draft, draft.orders[order_id])
        return
    arrived, before = host or step.target, draft.machines[step.machine]
    if arrived is not None and not _can_arrive(draft, step, arrived):
        why = f"host {arrived} was lost before it arrived: retry, and another one is chosen"
        _fail(draft, order_id, step, why=why)
        return
    _put(draft, order_id, steps.done(draft, draft.orders[order_id], step, host=host, by=by, note=note))
    host = draft.machines[step.machine].host
    if ACTIONS[draft.orders[order_id].action].leaves or host != before.host:
        why = f"moved to {host}" if host != before.host and host else f"{step.work} is done"
        departures.remove_from_host_orders(draft, before, why=why, keep=order_id)
        departures.wake_undivided_orders(draft, before.host)
    draft.wake(departures.open_orders_with(draft, step.machine))


def _fail(
    draft: Draft, order_id: OrderId, step: Step | HostStep, *, why: str, by: str = "", again: bool = False
) -> None:
    if isinstance(step, HostStep):
        failed = host_steps.fail(draft, draft.orders[order_id], step, why=why, by=by, again=again)
        _put(draft, order_id, failed)
        return
    _put(draft, order_id, steps.fail(draft, draft.orders[order_id], step, why=why, by=by))
    superseding.hand_over(draft, order_id, step, why=why)
    draft.wake(departures.open_orders_with(draft, step.machine))
    if ACTIONS[draft.orders[order_id].action].leaves:
        departures.wake_host_of(draft, draft.orders[order_id])


def _note_host_back(draft: Draft, order_id: OrderId, step: Step | HostStep) -> None:
    if isinstance(step, HostStep):
        lost_hosts.note_returned(draft, draft.orders[order_id], step)


def _can_arrive(draft: Draft, step: Step, host: HostName) -> bool:
    """Return whether a machine may be on the reported host.

    A machine may be on a failed host only if it was recovered there. The failure of a host stays open while
    machines are on their way to it.
    """
    if host not in draft.hosts:
        return False
    return (
        not _has_failed(draft, host)
        or host == step.target
        or host_failures.newest_failure(draft, host) is not None
    )


def _has_failed(draft: Draft, host: HostName) -> bool:
    known = draft.hosts.get(host)
    return known is None or known.state is HostState.FAILED


def _running_step(draft: Draft, attempt: AttemptId) -> Step | HostStep | None:
    """Return the step of an attempt, or None if the attempt no longer runs."""
    wanted = attempt.subject, attempt.number
    found = (step for step in draft.orders[attempt.order].driven if (step.subject, step.attempt) == wanted)
    return next(found, None)


def _put(draft: Draft, order_id: OrderId, reported: Step | HostStep) -> None:
    """Replace the running step of a machine, or a host step."""
    if isinstance(reported, HostStep):
        draft.put_order(host_steps.put(draft.orders[order_id], reported))
        return

    def put(step: Step) -> Step:
        running = step.machine == reported.machine and step.state is StepState.RUNNING
        return reported if running else step

    draft.put_order(stages.with_steps(draft.orders[order_id], put))


NOTHING = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """When a server ran before this start: until when, and its earlier absences. All in real time."""

    until: datetime
    absences: tuple[Absence, ...] = ()


def silence_before_start(
    limit: timedelta, heard_at: datetime | None, presence: Presence | None, *, now: datetime
) -> timedelta:
    """Return how much silence from before a start of the server counts against an external program.

    After a brief restart the count goes on, but at least a minute of the limit is left. A longer outage may
    have lost a heartbeat, and a clock that was set proves nothing. In both cases the count is reset, as
    after any other absence.

    A running server measures silence with its monotonic clock. Across a start only saved system times exist.
    """
    if heard_at is None or presence is None or not NOTHING <= now - presence.until <= BRIEF:
        return NOTHING
    since = max([heard_at, *(each.until for each in presence.absences if not each.brief)])
    return max(min(presence.until - since, limit - BRIEF), NOTHING)
