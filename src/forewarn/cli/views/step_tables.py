"""Tables of the steps of an order, by stage, and of the steps on the host itself."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from forewarn.cli import formatting, terminal
from forewarn.core.basic_types import StageKind, StepState, Work
from forewarn.core.disclosure import A_HOST
from forewarn.core.time_formats import format_span
from forewarn.wire.answers.order_answers import HostStepAnswer, OrderAnswer, StageAnswer, StepAnswer

# The number of a stage, from one, with a step.
StagedStep = tuple[int, StepAnswer]
Item = TypeVar("Item")

_FIRST: dict[str, Callable[[tuple[Any, StepAnswer]], object]] = {
    "MACHINE": lambda each: each[1].machine,
    "STEP": lambda each: _state(each[1]),
    "ATTEMPT": lambda each: each[1].attempt,
}
_LAST: dict[str, Callable[[tuple[Any, StepAnswer]], object]] = {
    "BEGUN": lambda each: each[1].begun_at,
    "ENDED": lambda each: each[1].ended_at,
    "WHY": lambda each: each[1].why or _away(each[1]),
}
STEPS = terminal.ItemTable[StagedStep](
    columns={"STAGE": lambda each: each[0], **_FIRST, "TO": lambda each: each[1].target, **_LAST},
    wraps=("WHY",),
    spare=("ATTEMPT", "ENDED"),
)
# Machines that leave a host, or stay on it during the work.
WAYS = terminal.ItemTable[tuple[StageKind, StepAnswer]](
    columns={**_FIRST, "WAY": lambda each: _way(*each), **_LAST},
    wraps=("WAY", "WHY"),
    spare=("ATTEMPT", "ENDED"),
)
ON_HOST = terminal.ItemTable[HostStepAnswer](
    columns={
        "ON THE HOST": lambda step: step.task,
        "STEP": lambda step: _state(step),
        **terminal.columns("ATTEMPT BY=driver BEGUN=begun_at ENDED=ended_at"),
        "WHY": lambda step: "; ".join(filter(None, (step.why, _back_by(step)))) or None,
    },
    wraps=("WHY",),
    spare=("ATTEMPT", "BY", "ENDED"),
)


def show_steps(order: OrderAnswer) -> None:
    """Print the progress of each step; work on the host itself has a table for each stage."""
    by_kind = any(stage.kind is not StageKind.MACHINES for stage in order.stages)
    if order.host_steps and not by_kind:
        _show_table(ON_HOST, order.host_steps)
    if by_kind:
        for number, stage in enumerate(order.stages, start=1):
            _show_stage(order, stage, number)
    elif order.steps:
        numbered = enumerate(order.stages, start=1)
        _show_table(STEPS, [(number, step) for number, stage in numbered for step in stage.steps])


def is_unknown(step: StepAnswer | HostStepAnswer) -> bool:
    """Return whether the driver does not know the state of a step."""
    return step.state is StepState.RUNNING and bool(step.why)


def _show_stage(order: OrderAnswer, stage: StageAnswer, number: int) -> None:
    over = sum(step.ended_at is not None for step in stage.steps)
    counted = f", {over} of {formatting.counted(len(stage.steps), 'machine')}" if stage.steps else ""
    title = f"Stage {number} of {len(order.stages)}: {_name(order, stage.kind)} ({stage.state}{counted})"
    terminal.echo(f"\n{title}")
    if stage.kind is StageKind.HOST and order.host_steps:
        _show_table(ON_HOST, order.host_steps)
    if stage.steps:
        _show_table(WAYS, [(stage.kind, step) for step in stage.steps])


def _name(order: OrderAnswer, kind: StageKind) -> str:
    match kind:
        case StageKind.EVACUATE:
            return "machines leave"
        case StageKind.HOST:
            return f"work on {order.host or A_HOST}"
        case StageKind.RETURN:
            return "machines return"
        case StageKind.MACHINES:
            return "machines"


def _show_table(table: terminal.ItemTable[Item], items: Sequence[Item]) -> None:
    terminal.echo()
    table.print(items)


def _state(step: StepAnswer | HostStepAnswer) -> str:
    """Return the state of a step; while it runs, with its progress."""
    if step.state is not StepState.RUNNING:
        return step.state
    if is_unknown(step):
        return f"{step.state}, progress unknown"
    return step.state if step.progress is None else f"{step.state}, {step.progress:.0%}"


def _way(kind: StageKind, step: StepAnswer) -> str:
    """Write how and where a machine moves, or that it restarts with its host."""
    if kind is StageKind.HOST:
        return "restarts with the host"
    how = "moves live" if step.work is Work.FREEZE else "moves, restarts"
    how += " (could not be moved live)" if step.lowered_from is Work.FREEZE else ""
    return f"{how}: {step.target}" if step.target else how


def _away(step: StepAnswer) -> str | None:
    """Return the measured downtime of a machine, if known."""
    return None if step.impact_seconds is None else f"down for {format_span(round(step.impact_seconds, 1))}"


def _back_by(step: HostStepAnswer) -> str | None:
    """Return when the host counts as lost if the running work is not over."""
    if step.state is not StepState.RUNNING or step.back_by is None:
        return None
    return f"lost unless over by {formatting.utc(step.back_by)}"
