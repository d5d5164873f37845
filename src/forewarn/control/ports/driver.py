"""What control needs of drivers: the tasks they are given, and their answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from forewarn.core.model.order import Step
from forewarn.core.words import Action, HostName, OrderId, ProjectName, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverTask:
    """A step, as a driver is given it."""

    now: datetime
    order: OrderId
    action: Action
    work: Work
    step: Step
    project: ProjectName
    host: HostName | None
    driver: str
    heartbeat: timedelta | None = None  # the longest time between two reports, if the order says so


@dataclass(frozen=True, slots=True)
class Done:
    """The step has been carried out."""


@dataclass(frozen=True, slots=True)
class Running:
    """The step is under way."""

    look_at: datetime | None  # when to ask again; None: not before there was a report


@dataclass(frozen=True, slots=True)
class Failed:
    """The step could not be carried out."""

    why: str


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The driver does not know the step: a crash came first."""


Begun: TypeAlias = Done | Running | Failed
Checked: TypeAlias = Done | Running | Failed | NotBegun


class Driver(Protocol):
    """Carries steps out. Called outside any transaction; must not block for long."""

    def begin(self, task: DriverTask) -> Begun:
        """Start a step. It has been saved as begun."""
        ...

    def check(self, task: DriverTask) -> Checked:
        """Return how a step is doing."""
        ...


class ExternalReports(Protocol):
    """How long external orders have gone without a report, in real time."""

    def heard(self, order: OrderId, limit: timedelta | None) -> None:
        """Wait from now on for the next report of an order; None: for as long as is usual."""
        ...

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders without a report in time, and why that is a failure."""
        ...

    def forget(self, order: OrderId) -> None:
        """Wait for no more reports of an order."""
        ...
