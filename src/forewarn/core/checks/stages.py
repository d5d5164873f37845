"""How stages start: whole, with one update domain of a group, on machines that are free (rules 4 and 5)."""

from collections.abc import Iterator

from forewarn.core.checks.change import MOVING, Change
from forewarn.core.words import HINTS, Action, EventStatus, GroupName, StageState, StepState, Work


def stages_start_whole(change: Change) -> Iterator[str]:
    """Rule 5: no event of a stage starts without the others, unless its machines only move."""
    states: dict[tuple[str, int], set[EventStatus]] = {}
    for event in change.after.events.values():
        kind = change.after.orders[event.order].stages[event.stage].kind if event.type not in HINTS else None
        if kind in MOVING:
            continue
        states.setdefault((event.order, event.stage), set()).add(event.status)
    for (order, stage), found in states.items():
        if len(found) > 1:
            yield f"stage {stage} of {order} is half started"


def stages_have_one_domain_of_a_group(change: Change) -> Iterator[str]:
    """Rule 4: no stage that guests know of disturbs two update domains of one group, `together` aside."""
    for order in change.after.orders.values():
        for stage in order.stages:
            if stage.state is StageState.QUEUED or order.terms.together or stage.kind in MOVING:
                continue
            domains: dict[GroupName, set[int]] = {}
            told = [step for step in stage.steps if step.state is not StepState.MOOT]
            for step in told:
                domains.setdefault(step.group, set()).add(step.update_domain)
            for group in (group for group, its in domains.items() if len(its) > 1):
                policy, mine = change.after.groups[group].policy, [x for x in told if x.group == group]
                frozen = all(step.work is Work.FREEZE for step in mine)
                if not policy.gang and not (frozen and len(mine) <= policy.freezes_at_once):
                    yield f"a stage of {order.id} disturbs two update domains of {group}"


def machines_are_free_when_their_stage_starts(change: Change) -> Iterator[str]:
    """Rule 5: an event does not start while a step of another order runs on a machine that it names."""
    busy = {
        step.machine: order.id
        for order in change.before.orders.values()
        for step in order.steps
        if step.state is StepState.RUNNING and step in change.after.orders.get(order.id, order).steps
    }
    for event in change.after.events.values():
        known = change.before.events.get(event.id)
        if event.status is not EventStatus.STARTED or (known and known.status is EventStatus.STARTED):
            continue
        # A failed host waits for none.
        if change.after.orders[event.order].action is Action.FAIL:
            continue
        for named in event.resources:
            if busy.get(named.machine, event.order) != event.order:
                yield f"{event.id} started while {named.name} was in the hands of {busy[named.machine]}"
