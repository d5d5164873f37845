"""Orders: what is going to be done, what it waits for, and how far each machine is."""

from collections.abc import Iterable
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
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Stage, Step
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.event_answers import EventAnswer, EventDetailAnswer, NoticeAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingAnswer(ApiAnswer):
    """What waits, and for what reason."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer(ApiAnswer):
    """One machine's share of a stage."""

    machine: str
    state: StepState
    attempt: int
    target: str | None
    begun_at: datetime | None
    ended_at: datetime | None
    why: str | None  # while it runs: why its driver cannot tell how it is doing
    too_late: bool  # its driver was asked to call it off, and cannot any more
    progress: float | None  # how much of it is done, from 0 to 1, while it runs
    impact_seconds: float | None  # for how long the machine was really away
    work: Work  # what is done to this machine
    moves: bool  # it is on another host afterwards
    lowered_from: Work | None  # how it was to go first, which failed

    @classmethod
    def of(cls, step: Step) -> Self:
        """Show a step."""
        return cls.like(step, machine=step.name, impact_seconds=step.impact)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStepAnswer(ApiAnswer):
    """What is done to the host itself."""

    task: HostTask
    driver: str
    state: StepState
    attempt: int
    begun_at: datetime | None
    ended_at: datetime | None
    why: str | None  # as of a step
    progress: float | None
    back_by: datetime | None  # of work that runs: when its host is lost unless it is over


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAnswer(ApiAnswer):
    """A part of an order; but for evacuations with at most one update domain of any group."""

    state: StageState
    started_at: datetime | None
    steps: tuple[StepAnswer, ...]
    kind: StageKind

    @classmethod
    def of(cls, stage: Stage) -> Self:
        """Show a stage."""
        return cls.like(stage, steps=tuple(map(StepAnswer.of, stage.steps)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAnswer(ApiAnswer):
    """What is going to be done, by whom and why."""

    NOUN: ClassVar = "order"

    id: str
    action: Action
    work: Work | None
    source: Source
    project: str | None
    machine: str | None
    host: str | None
    state: OrderState
    by: str
    reason: str | None
    driver: str
    emergency: str | None
    whole: bool
    together: str | None
    heartbeat_seconds: float | None
    deadline: datetime | None
    expected_seconds: float | None
    rollout: str | None
    rehearsal: str | None
    created_at: datetime
    ended_at: datetime | None
    why: str | None
    waiting: tuple[WaitingAnswer, ...]
    waiting_until: datetime | None  # when the first of these reasons ends, if that is known
    stages: tuple[StageAnswer, ...]
    steps: tuple[StepAnswer, ...]
    stopped_by: str | None  # the hold that has called it off
    abandoned_by: str | None  # who has given it up, while steps of it still run
    mode: ServiceMode | None  # of work on a host: what becomes of its machines
    returning: bool  # likewise: whether those that left it come back
    host_driver: str | None  # likewise: who does the work on the host itself
    fenced: str | None  # of a failed host: who vouches that it touches its machines no more, and why
    despite_hold: bool
    host_steps: tuple[HostStepAnswer, ...]
    to: str | None  # of a move: the host that was asked for
    stuck: bool  # a person must do something before it can go on: `waiting` says what

    @classmethod
    def of(cls, order: Order, **more: object) -> Self:
        """Show an order."""
        return cls.like(
            order,
            order.terms,
            machine=order.machine_name,
            waiting=tuple(map(WaitingAnswer.like, order.waiting)),
            waiting_until=earliest_end(order.waiting),
            stages=tuple(map(StageAnswer.of, order.stages)),
            steps=tuple(map(StepAnswer.of, order.steps)),
            host_steps=tuple(map(HostStepAnswer.like, order.host_steps)),
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDetailAnswer(OrderAnswer):
    """An order, and what notice its machines got."""

    notice: NoticeAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOnMachineAnswer(ApiAnswer):
    """An order, the event that announces it, or the reason why there is none."""

    order: OrderAnswer
    event: EventAnswer | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWithEventsAnswer(ApiAnswer):
    """An order and its events."""

    order: OrderAnswer
    events: tuple[EventAnswer, ...]

    @classmethod
    def of(cls, order: Order, events: Iterable[Event]) -> Self:
        """Show an order and its events."""
        return cls(order=OrderAnswer.of(order), events=tuple(map(EventAnswer.of, events)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAnswer(OrderWithEventsAnswer):
    """An order that somebody works on, and whether they should stop."""

    stop: str | None  # why the work should stop now: it was abandoned, or a hold stops it

    @classmethod
    def of(cls, order: Order, events: Iterable[Event]) -> Self:
        """Show an order that was heard of."""
        shown = OrderWithEventsAnswer.of(order, events)
        return cls(order=shown.order, events=shown.events, stop=order.given_up or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDetailWithEventsAnswer(ApiAnswer):
    """An order and its events, and what notice was given of them."""

    order: OrderDetailAnswer
    events: tuple[EventDetailAnswer, ...]
