"""The answer that shows everything current at once."""

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
    """Everything current. A list is null if it has over 1,000 items or the caller may not see it."""

    clock: ClockAnswer  #: Service time.
    summary: SummaryAnswer  #: Counts of the fleet.
    machines: tuple[MachineAnswer, ...] | None  #: Machines.
    groups: tuple[GroupAnswer, ...] | None  #: Groups.
    projects: tuple[ProjectAnswer, ...] | None  #: Projects.
    events: tuple[ListedEventAnswer, ...] | None  #: Events that guests see now.
    orders: tuple[OrderAnswer, ...] | None  #: Open orders.
    hosts: tuple[ListedHostAnswer, ...] | None  #: Hosts.
    rollouts: tuple[RolloutAnswer, ...] | None  #: Open rollouts.
    holds: tuple[HoldAnswer, ...] | None  #: Holds.
    drivers: tuple[DriverAnswer, ...] | None  #: Drivers.
