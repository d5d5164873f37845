"""All that is current, in one answer."""

from dataclasses import dataclass

from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.event_answers import ListedEventAnswer
from forewarn.wire.answers.fleet_answers import (
    DriverAnswer,
    GroupAnswer,
    ListedHostAnswer,
    MachineAnswer,
    ProjectAnswer,
    SummaryAnswer,
)
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.answers.service_answers import ClockAnswer, HoldAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewAnswer(ApiAnswer):
    """All that is current. A list is null if one answer cannot hold it, or the caller may not see it."""

    clock: ClockAnswer
    summary: SummaryAnswer
    machines: tuple[MachineAnswer, ...] | None
    groups: tuple[GroupAnswer, ...] | None
    projects: tuple[ProjectAnswer, ...] | None
    events: tuple[ListedEventAnswer, ...] | None
    orders: tuple[OrderAnswer, ...] | None  # open ones
    hosts: tuple[ListedHostAnswer, ...] | None
    rollouts: tuple[RolloutAnswer, ...] | None  # open ones
    holds: tuple[HoldAnswer, ...] | None
    drivers: tuple[DriverAnswer, ...] | None
