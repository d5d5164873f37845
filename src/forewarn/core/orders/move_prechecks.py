"""Ask a driver whether machines can move before their moves are announced.

When nothing else prevents the announcement, forewarn chooses a host for each machine and asks the driver.
If the driver agrees, the move is announced. If it refuses, forewarn chooses another host. If all hosts
refuse, the step fails unannounced, and a live move becomes a redeploy (`moves.py`). While the driver does not
answer or cannot tell, the order waits and the driver is asked again.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.admission import work_durations
from forewarn.core.basic_types import (
    Action,
    HostName,
    MachineId,
    Mobility,
    StageKind,
    StepState,
    Work,
)
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.host import Room
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, Order, Precheck, RefusedHost, Step
from forewarn.core.orders import placement, stages, steps
from forewarn.core.policy import Policy
from forewarn.core.redaction import driver_named

LIVE_ONLY = "it is live-only, so it is not redeployed and stays"

# How long an answer is valid: the hypervisors may change.
VALID_FOR = timedelta(minutes=1)
# A call without an answer, which was lost with its server, is repeated after this time; calls take less.
# The time doubles with each lost answer, because a clock that is advanced does not wait for drivers.
ANSWERED_WITHIN = timedelta(minutes=2)
MOST_DOUBLINGS = 5
# When to repeat a question that the driver could not answer.
ASK_AGAIN = timedelta(seconds=30)
# When to ask again about a live-only machine that every host has refused.
REFUSED_FOR = timedelta(minutes=5)


def ask(draft: Draft, order: Order, index: int, affected: Iterable[Step], policy: Policy) -> Order:
    """Choose a target for each move without a valid answer, and queue the question for the driver."""
    if not applies(order, policy):
        return order
    rooms: dict[HostName, Room] = {}  # free capacity before these moves, to be restored below
    changed: dict[MachineId, Step] = {}
    for step in filter(_is_move, affected):
        changed[step.machine] = _with_question(draft, order, index, step, rooms)
    if rooms:
        draft.room.update(rooms)
    return stages.put_steps(order, index, changed)


def waiting(draft: Draft, order: Order, affected: Iterable[Step], policy: Policy) -> tuple[Waiting, ...]:
    """Return the moves that wait for the driver's answer, or that it refuses."""
    if not applies(order, policy):
        return ()
    affected = tuple(affected)
    failed = (step for step in affected if step.state is StepState.FAILED)
    moves = ((step, _why_waiting(draft, order, step)) for step in filter(_is_move, affected))
    return (
        *(Waiting(what=step.name, reason=f"failed: {step.why}") for step in failed),
        *(
            Waiting(what=step.name, reason=why, room=step.precheck is None)
            for step, why in moves
            if why is not None
        ),
    )


def recheck_times(order: Order, now: datetime) -> list[datetime]:
    """Return the future times at which the driver must be asked again."""
    asked = ((step, step.precheck) for step in order.steps if step.state is StepState.WAITING)
    times = (_ask_again_at(step, known) for step, known in asked if known is not None)
    return [time for time in times if time is not None and time > now]


def answered(
    draft: Draft, attempt: AttemptId, work: Work, target: HostName, *, refused: str = "", unknown: str = ""
) -> None:
    """Save the driver's answer about a move, unless the order no longer waits for it."""

    def put(step: Step) -> Step:
        asked = step.precheck
        awaited = asked is not None and asked.answered_at is None and asked.target == target
        if asked is None or not awaited or (step.subject, step.work) != (attempt.subject, work):
            return step
        against = (RefusedHost(host=target, why=refused),) if refused else ()
        answer = replace(asked, answered_at=draft.now, unknown=unknown)
        return replace(step, precheck=answer, refused=(*step.refused, *against))

    draft.put_order(stages.with_steps(draft.orders[attempt.order], put))


def applies(order: Order, policy: Policy) -> bool:
    """Return whether the driver of an order is asked before its moves are announced."""
    return order.driver in policy.prechecking and order.placed_by_forewarn and order.action is not Action.FAIL


def _is_move(step: Step) -> bool:
    return step.moves and step.state is StepState.WAITING and step.work in work_durations.MOVES.values()


def _with_question(draft: Draft, order: Order, index: int, step: Step, rooms: dict[HostName, Room]) -> Step:
    """Choose the host to ask about, unless the current question or answer is still valid."""
    machine, known = draft.machines[step.machine], step.precheck
    if known is not None and _is_valid(draft, step, known) and _takes(draft, machine, known.target):
        _count(draft, machine, known.target, rooms)
        return step
    back = order.host if order.stages[index].kind is StageKind.RETURN else None
    target = _target(draft, order, step, back=back)
    if target is None and _stays_live(draft, step) and _has_passed(draft, known, REFUSED_FOR):
        step = replace(step, refused=())  # the hypervisors may have changed
        target = _target(draft, order, step, back=back)
    if target is None:
        return _without_target(draft, order, step, back=back)
    _count(draft, machine, target, rooms)
    lost = known.lost + 1 if known is not None and known.answered_at is None else 0
    asked = Precheck(source=machine.host, target=target, asked_at=draft.now, lost=lost)
    return replace(step, precheck=asked)


def _is_valid(draft: Draft, step: Step, known: Precheck) -> bool:
    if known.source != draft.machines[step.machine].host or known.target in _refusing(step):
        return False
    if known.answered_at is None:
        return draft.now < known.asked_at + _answered_within(known)
    return not _has_passed(draft, known, ASK_AGAIN if known.unknown else VALID_FOR)


def _answered_within(known: Precheck) -> timedelta:
    return ANSWERED_WITHIN * (1 << min(known.lost, MOST_DOUBLINGS))


def _has_passed(draft: Draft, known: Precheck | None, span: timedelta) -> bool:
    return known is not None and known.answered_at is not None and draft.now >= known.answered_at + span


def _target(draft: Draft, order: Order, step: Step, *, back: HostName | None) -> HostName | None:
    machine = draft.machines[step.machine]
    if back is not None:
        return None if back in _refusing(step) else back
    return placement.best_host(draft, machine, excluded={machine.host, *_refusing(step)}, order=order)


def _takes(draft: Draft, machine: Machine, target: HostName) -> bool:
    """Return whether a host is usable and has room beside the other moves of the order."""
    room, host = draft.room.get(target), draft.hosts.get(target)
    if room is None:  # it is not among the emptiest hosts, which are loaded
        return host is not None and host.is_usable
    return placement.is_usable(draft, target) and room.why_not(machine) is None


def _count(draft: Draft, machine: Machine, target: HostName, rooms: dict[HostName, Room]) -> None:
    """Count a machine on a host for the next choice. `rooms` keeps the state before."""
    if target in draft.room:
        rooms.setdefault(target, draft.room[target])
        draft.room[target] = draft.room[target].joined(machine)


def _without_target(draft: Draft, order: Order, step: Step, *, back: HostName | None) -> Step:
    """Let a move wait for room or for another question; fail it if every host refuses."""
    if _stays_live(draft, step) and step.refused:
        return step
    excluded = {draft.machines[step.machine].host, *_refusing(step)}
    anywhere = back is None and order.terms.to is None
    if not step.refused or (anywhere and placement.may_have_room(draft, step, excluded=excluded)):
        return replace(step, precheck=None)
    return steps.fail(draft, order, step, why=steps.why_no_host(draft, order, step))


def _stays_live(draft: Draft, step: Step) -> bool:
    return step.work is Work.FREEZE and draft.machines[step.machine].mobility is Mobility.LIVE_ONLY


def _refusing(step: Step) -> set[HostName]:
    return {refused.host for refused in step.refused}


def _why_waiting(draft: Draft, order: Order, step: Step) -> str | None:
    """Return why a move is not announced yet, or None if the driver agrees."""
    known, refusals = step.precheck, [steps.refusal(each) for each in step.refused]
    if known is None:
        lack = placement.why_no_room(draft, order, draft.machines[step.machine])
        return "; ".join((*refusals, lack))
    if known.answered_at is None:
        return f"{driver_named(order.driver)} checks whether it can go to {known.target}"
    if known.unknown:
        return f"whether it can go to {known.target} is not known: {known.unknown}"
    return f"{LIVE_ONLY}: {'; '.join(refusals)}" if known.target in _refusing(step) else None


def _ask_again_at(step: Step, known: Precheck) -> datetime | None:
    if known.answered_at is None:
        return known.asked_at + _answered_within(known)
    if known.unknown:
        return known.answered_at + ASK_AGAIN
    return known.answered_at + REFUSED_FOR if known.target in _refusing(step) else None
