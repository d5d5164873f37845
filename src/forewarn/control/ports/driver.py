"""What control needs of whoever does the work: what a driver is told of a step, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from forewarn.core.model.order import Step
from forewarn.core.words import Action, HostName, OrderId, ProjectName, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a driver is told of a step."""

    now: datetime
    order: OrderId
    action: Action
    work: Work
    step: Step
    project: ProjectName
    host: HostName | None
    driver: str
    heartbeat: timedelta | None = None  # how long whoever does it may be silent, if the order says so


@dataclass(frozen=True, slots=True)
class Done:
    """The step has been carried out."""


@dataclass(frozen=True, slots=True)
class Running:
    """The step is under way."""

    look_at: datetime


@dataclass(frozen=True, slots=True)
class Failed:
    """The step could not be carried out."""

    why: str


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The driver never heard of the step: a crash came first."""


Begun: TypeAlias = Done | Running | Failed
Checked: TypeAlias = Done | Running | Failed | NotBegun


class Driver(Protocol):
    """Does the steps. Called outside any transaction; must not block for long."""

    def begin(self, task: Task) -> Begun:
        """Start a step. It has been saved as begun."""
        ...

    def check(self, task: Task) -> Checked:
        """Say how a step is."""
        ...


class Outside(Protocol):
    """Those who do the work of external orders: how long they have been silent, in real time."""

    def expect(self, order: OrderId, limit: timedelta | None) -> None:
        """Begin to count the silence about an order; None: as long as is usual."""
        ...

    def heard(self, order: OrderId) -> None:
        """Take somebody's word that the work goes on."""
        ...

    def overdue(self) -> Mapping[OrderId, str]:
        """Say which orders nobody has reported of in time, and how long that was."""
        ...

    def forget(self, order: OrderId) -> None:
        """Wait for no more word of an order."""
        ...
