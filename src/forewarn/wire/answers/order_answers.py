"""Answers about orders, their stages and steps."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.basic_types import (
    Action,
    HostTask,
    OrderState,
    ServiceMode,
    Source,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.model.constraints import earliest_end
from forewarn.core.model.order import Order, Step
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.event_answers import EventAnswer, EventDetailAnswer, NoticeAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingAnswer(ApiAnswer):
    """Something that waits, and the reason."""

    what: str  #: The part of the work that waits, such as a machine or a host.
    reason: str  #: Why it waits.


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer(ApiAnswer):
    """One machine's share of a stage."""

    machine: str  #: Name of the machine.
    state: StepState  #: State of the step.
    attempt: int  #: Number of the current attempt, from 1.
    target: str | None  #: Host that carries the machine afterwards. Null: no move, or not chosen yet.
    begun_at: datetime | None  #: When the attempt began, in service time. Null: not begun.
    ended_at: datetime | None  #: When the step ended. Null: not ended.
    why: str | None  #: Why the step failed. While it runs: why its driver does not know its progress.
    too_late: bool  #: Whether the driver was asked to cancel the step and could not.
    progress: float | None  #: Completed share, from 0 to 1, while the step runs. Null: not known.
    impact_seconds: float | None  #: Measured interruption of the machine. Null: not measured.
    work: Work  #: Work on the machine.
    moves: bool  #: Whether the machine is on another host afterwards.
    lowered_from: Work | None  #: Work that failed before, if the step now tries a more disruptive one.

    @classmethod
    def of(cls, step: Step) -> Self:
        """Show a step."""
        return cls.like(step, machine=step.name, impact_seconds=step.impact)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStepAnswer(ApiAnswer):
    """Work on a host itself."""

    task: HostTask  #: Task on the host.
    driver: str  #: Driver that does the work.
    state: StepState  #: State of the step.
    attempt: int  #: Number of the current attempt, from 1.
    begun_at: datetime | None  #: When the attempt began, in service time. Null: not begun.
    ended_at: datetime | None  #: When the step ended. Null: not ended.
    why: str | None  #: Why the step failed. While it runs: why its driver does not know its progress.
    progress: float | None  #: Completed share, from 0 to 1, while the step runs. Null: not known.
    back_by: datetime | None  #: When a host under work counts as lost unless the work is done.


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAnswer(ApiAnswer):
    """A part of an order. Except in evacuations, it has at most one update domain of any group."""

    state: StageState  #: State of the stage.
    started_at: datetime | None  #: When the stage started, in service time. Null: not started.
    steps: tuple[StepAnswer, ...]  #: One step for each machine.
    kind: StageKind  #: Role of the stage in the order.


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAnswer(ApiAnswer):
    """Requested work on a machine, or on a host and its machines."""

    NOUN: ClassVar = "order"

    id: str  #: GUID of the order, in upper case.
    action: Action  #: The requested action.
    work: Work | None  #: Work on the machines. Null: none.
    source: Source  #: Whether a user or the platform ordered the work.
    project: str | None  #: Project of the machine. Null: an order on a host.
    machine: str | None  #: Machine of the order. Null: an order on a host.
    host: str | None  #: Host of the order. Null: an order on a machine.
    state: OrderState  #: State of the order.
    by: str  #: Name of the caller that placed the order.
    reason: str | None  #: Reason that the caller gave.
    driver: str  #: Driver that does the work.
    emergency: str | None  #: Why the minimum notice is not kept. Null: it is kept.
    whole: bool  #: Whether all machines of the host start together.
    together: str | None  #: Why two update domains of a group may be disturbed together. Null: they may not.
    heartbeat_seconds: float | None  #: How long an external driver may be silent before the work fails.
    deadline: datetime | None  #: When maintenance windows stop applying, in service time. Null: never.
    expected_seconds: float | None  #: Expected length of the work of a stage.
    rollout: str | None  #: Id of the rollout that placed the order.
    rehearsal: str | None  #: Scenario that placed the order.
    created_at: datetime  #: When the order was placed, in service time.
    ended_at: datetime | None  #: When the order ended. Null: open.
    why: str | None  #: Why the order failed or was cancelled.
    waiting: tuple[WaitingAnswer, ...]  #: Everything that waits, each with its reason.
    waiting_until: datetime | None  #: When the first of these reasons ends by itself. Null: not known.
    stages: tuple[StageAnswer, ...]  #: Stages of the order.
    steps: tuple[StepAnswer, ...]  #: Steps of all stages.
    stopped_by: str | None  #: Hold that stopped the order.
    abandoned_by: str | None  #: Caller that abandoned the order while steps still run.
    mode: ServiceMode | None  #: Host service only: whether machines leave the host or restart with it.
    returning: bool  #: Host service only: whether machines that left come back afterwards.
    host_driver: str | None  #: Host service only: driver for the work on the host itself.
    fenced: str | None  #: Failed host only: confirmation that the host is powered off or isolated.
    despite_hold: bool  #: Whether the order ignores holds.
    host_steps: tuple[HostStepAnswer, ...]  #: Steps on the host itself, in their order.
    to: str | None  #: Move only: the requested host.
    stuck: bool  #: Whether the order needs a person. `waiting` names the reason.

    @classmethod
    def of(cls, order: Order, *views: object) -> Self:
        """Show an order. Attributes of a view take precedence."""
        return cls.like(
            *views,  # first: the terms have a `notice` of another kind
            order,
            order.terms,
            machine=order.machine_name,
            waiting_until=earliest_end(order.waiting),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDetailAnswer(OrderAnswer):
    """An order with the notice that its machines got."""

    notice: NoticeAnswer  #: Notice that the machines got so far.


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOnMachineAnswer(ApiAnswer):
    """An order on a machine."""

    order: OrderAnswer  #: The order.
    event: EventAnswer | None  #: Event that announces the order. Null: `reason` tells why.
    reason: str | None  #: Why there is no event. Null: there is one.


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWithEventsAnswer(ApiAnswer):
    """An order with its events."""

    order: OrderAnswer  #: The order.
    events: tuple[EventAnswer, ...]  #: Events of the order.


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer(OrderWithEventsAnswer):
    """The answer to a heartbeat."""

    stop: str | None  #: Why the work should stop: the order was abandoned, or a hold stopped it.


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDetailWithEventsAnswer(ApiAnswer):
    """An order with its events and the notice that its machines got."""

    order: OrderDetailAnswer  #: The order.
    events: tuple[EventDetailAnswer, ...]  #: Events of the order, past ones too.
