"""Whether machines can move, as their driver says before guests are told: only what can be is announced.

Once nothing else keeps moves from being announced, a host is chosen for each machine and its driver is
asked. Guests are told when it agrees. If it refuses, another host is chosen. If every host refuses, the step
fails before anything is announced; a live move then becomes a redeploy (`moves.py`). While a driver does
not answer, or cannot tell, it is asked again: the order waits, and says so.
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

# An answer that is older counts no more: the hypervisors may have changed.
COUNTS_FOR = timedelta(minutes=1)
# A call that was lost, with the server that made it, is made again after so long. Calls take less. If no
# answer comes again and again, it is made ever more rarely: a clock that is turned waits for no driver.
ANSWERED_WITHIN = timedelta(minutes=2)
MOST_DOUBLINGS = 5
# A driver that could not tell is asked again after so long ...
ASK_AGAIN = timedelta(seconds=30)
# ... and one that has refused every host of a machine that waits for a live move.
REFUSED_FOR = timedelta(minutes=5)


def ask(draft: Draft, order: Order, index: int, affected: Iterable[Step], policy: Policy) -> Order:
    """Have the driver of an order asked about those of these moves of which it has not said enough."""
    if not is_asked(order, policy):
        return order
    rooms: dict[HostName, Room] = {}  # as they are without these moves, which are only thought of
    changed: dict[MachineId, Step] = {}
    for step in filter(_is_move, affected):
        changed[step.machine] = _asked(draft, order, index, step, rooms)
    if rooms:
        draft.room.update(rooms)
    return stages.put_steps(order, index, changed)


def waiting(draft: Draft, order: Order, affected: Iterable[Step], policy: Policy) -> tuple[Waiting, ...]:
    """Return what the driver has not said yet of these moves, or what it says against them."""
    if not is_asked(order, policy):
        return ()
    affected = tuple(affected)
    failed = (step for step in affected if step.state is StepState.FAILED)
    found = ((step, _why(draft, order, step)) for step in filter(_is_move, affected))
    return (
        *(Waiting(what=step.name, reason=f"failed: {step.why}") for step in failed),
        *(
            Waiting(what=step.name, reason=why, room=step.precheck is None)
            for step, why in found
            if why is not None
        ),
    )


def moments(order: Order, now: datetime) -> list[datetime]:
    """Return when the driver is to be asked again, at the latest."""
    asked = ((step, step.precheck) for step in order.steps if step.state is StepState.WAITING)
    found = (_again_at(step, known) for step, known in asked if known is not None)
    return [at for at in found if at is not None and at > now]


def answered(
    draft: Draft, attempt: AttemptId, work: Work, target: HostName, *, refused: str = "", unknown: str = ""
) -> None:
    """Note what a driver has said of a move; drop it if the order does not want to know it any more."""

    def put(step: Step) -> Step:
        asked = step.precheck
        awaited = asked is not None and asked.answered_at is None and asked.target == target
        if asked is None or not awaited or (step.subject, step.work) != (attempt.subject, work):
            return step
        against = (RefusedHost(host=target, why=refused),) if refused else ()
        said = replace(asked, answered_at=draft.now, unknown=unknown)
        return replace(step, precheck=said, refused=(*step.refused, *against))

    draft.put_order(stages.with_steps(draft.orders[attempt.order], put))


def is_asked(order: Order, policy: Policy) -> bool:
    """Return whether the driver of an order says beforehand whether its machines can move."""
    return order.driver in policy.prechecking and order.placed_here and order.action is not Action.FAIL


def _is_move(step: Step) -> bool:
    return step.moves and step.state is StepState.WAITING and step.work in work_durations.MOVES.values()


# One machine


def _asked(draft: Draft, order: Order, index: int, step: Step, rooms: dict[HostName, Room]) -> Step:
    """Choose the host that the driver is asked about, unless what it was asked, or has said, still counts."""
    machine, known = draft.machines[step.machine], step.precheck
    if known is not None and _counts(draft, step, known) and _takes(draft, machine, known.target):
        _count(draft, machine, known.target, rooms)
        return step
    back = order.host if order.stages[index].kind is StageKind.RETURN else None
    target = _target(draft, order, step, back=back)
    if target is None and _stays_live(draft, step) and _is_over(draft, known, REFUSED_FOR):
        step = replace(step, refused=())  # the hypervisors may have changed
        target = _target(draft, order, step, back=back)
    if target is None:
        return _without_target(draft, order, step, back=back)
    _count(draft, machine, target, rooms)
    lost = known.lost + 1 if known is not None and known.answered_at is None else 0
    asked = Precheck(source=machine.host, target=target, asked_at=draft.now, lost=lost)
    return replace(step, precheck=asked)


def _counts(draft: Draft, step: Step, known: Precheck) -> bool:
    """Return whether there is no need to ask now: an answer is awaited, or still counts."""
    if known.source != draft.machines[step.machine].host or known.target in _refusing(step):
        return False
    if known.answered_at is None:
        return draft.now < known.asked_at + _answered_within(known)
    return not _is_over(draft, known, ASK_AGAIN if known.unknown else COUNTS_FOR)


def _answered_within(known: Precheck) -> timedelta:
    return ANSWERED_WITHIN * (1 << min(known.lost, MOST_DOUBLINGS))


def _is_over(draft: Draft, known: Precheck | None, span: timedelta) -> bool:
    return known is not None and known.answered_at is not None and draft.now >= known.answered_at + span


def _target(draft: Draft, order: Order, step: Step, *, back: HostName | None) -> HostName | None:
    machine = draft.machines[step.machine]
    if back is not None:
        return None if back in _refusing(step) else back
    return placement.best(draft, machine, but={machine.host, *_refusing(step)}, order=order)


def _takes(draft: Draft, machine: Machine, target: HostName) -> bool:
    """Return whether a host is usable still and has room, besides what other moves of the order take."""
    room, host = draft.room.get(target), draft.hosts.get(target)
    if room is None:  # it may not be among those that are looked at
        return host is not None and host.is_usable
    return placement.is_usable(draft, target) and room.why_not(machine) is None


def _count(draft: Draft, machine: Machine, target: HostName, rooms: dict[HostName, Room]) -> None:
    """Count a machine on a host, for the next to choose; `rooms` keeps what was there before."""
    if target in draft.room:
        rooms.setdefault(target, draft.room[target])
        draft.room[target] = draft.room[target].joined(machine)


def _without_target(draft: Draft, order: Order, step: Step, *, back: HostName | None) -> Step:
    """Let a move wait for room, or for its driver; if every host refuses it, it has failed."""
    if _stays_live(draft, step) and step.refused:
        return step
    but = {draft.machines[step.machine].host, *_refusing(step)}
    anywhere = back is None and order.terms.to is None
    if not step.refused or (anywhere and placement.may_have_room(draft, step, but=but)):
        return replace(step, precheck=None)
    return steps.fail(draft, order, step, why=steps.nowhere(draft, order, step))


def _stays_live(draft: Draft, step: Step) -> bool:
    return step.work is Work.FREEZE and draft.machines[step.machine].mobility is Mobility.LIVE_ONLY


def _refusing(step: Step) -> set[HostName]:
    return {refused.host for refused in step.refused}


def _why(draft: Draft, order: Order, step: Step) -> str | None:
    """Return why a move is not announced yet; None if its driver agrees."""
    known = step.precheck
    if known is None:
        lack = placement.no_room(draft, order, draft.machines[step.machine])
        return "; ".join((*_against(step), lack))
    if known.answered_at is None:
        return f"{driver_named(order.driver)} looks whether it can go to {known.target}"
    if known.unknown:
        return f"whether it can go to {known.target} is not known: {known.unknown}"
    if known.target in _refusing(step):
        return f"{LIVE_ONLY}: {'; '.join(_against(step))}"
    return None


def _against(step: Step) -> list[str]:
    return [steps.refusal(each) for each in step.refused]


def _again_at(step: Step, known: Precheck) -> datetime | None:
    if known.answered_at is None:
        return known.asked_at + _answered_within(known)
    if known.unknown:
        return known.answered_at + ASK_AGAIN
    return known.answered_at + REFUSED_FOR if known.target in _refusing(step) else None
