"""What drivers do: one step of a machine at a time, each attempt once (rules 5 and 8)."""

from collections.abc import Iterator

from forewarn.core.checks.change import Change
from forewarn.core.model.order import Order
from forewarn.core.words import MachineId, StepState


def machines_have_one_step_at_a_time(change: Change) -> Iterator[str]:
    """Rule 5: a stage starts only when its machines have no other step running."""
    busy: dict[MachineId, Order] = {}
    for order in change.after.orders.values():
        for step in order.steps:
            if step.state is not StepState.RUNNING:
                continue
            if step.machine in busy:
                yield f"{step.name} is in the hands of {busy[step.machine].id} and {order.id}"
            busy[step.machine] = order


def finished_steps_stay_finished(change: Change) -> Iterator[str]:
    """Rule 8: a step recorded as finished is never run again."""
    for id_, order in change.before.orders.items():
        after = change.after.orders.get(id_)
        if after is None:
            continue
        for index, stage in enumerate(order.stages):
            kept = set(after.stages[index].steps) if index < len(after.stages) else set()
            for step in stage.steps:
                if step.state is StepState.DONE and step not in kept:
                    yield f"{step.name} of {id_} was done and is touched again"


def attempts_are_begun_once(change: Change) -> Iterator[str]:
    """Rule 8: what has ended runs again only as a later attempt, and what runs is not begun anew."""
    for id_, order in change.after.orders.items():
        known = change.before.orders.get(id_)
        before = [step for step in known.steps if step.begun_at is not None] if known else []
        for step in order.steps:
            if step.state is not StepState.RUNNING:
                continue
            for past in (each for each in before if each.machine == step.machine):
                still_runs = past.state is StepState.RUNNING and past.begun_at == step.begun_at
                # One that waits to be tried again has begun as the attempt before.
                last = past.attempt - (past.state is StepState.WAITING)
                if step.attempt <= last and not (still_runs and step.attempt == last):
                    yield f"attempt {step.attempt} of {step.name} in {id_} runs after attempt {last}"
