"""A driver for work that other programs do and report through the API.

A step waits without a limit until a program sends the first heartbeat. From then on the program must report
completion, failure or progress within the limit, else the step fails.

The limit counts real time, because external programs do not follow a simulated clock. The store keeps the
time of the last report. `core/orders/reports.py` defines how much of it counts after a restart of the server.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    DriverTask,
    Failed,
    Running,
    TooLate,
)
from forewarn.core.basic_types import OrderId
from forewarn.core.time_formats import format_span
from forewarn.drivers.driver_setup import DriverSetup, NoOptions


@dataclass(frozen=True, slots=True)
class _LastReport:
    """The time of an order's last report, and the limit until the next; in seconds of real time."""

    at: float
    limit: float

    @property
    def due(self) -> float:
        return self.at + self.limit


def make(setup: DriverSetup) -> "ExternalDriver":
    """Create the driver from its settings."""
    setup.read(NoOptions())
    return ExternalDriver(setup.settings.times.external_silence, monotonic=setup.monotonic)


class ExternalDriver:
    """Waits for the reports of external programs."""

    trusted_text = True
    limits = None  # it answers at once

    def __init__(self, silence: timedelta, *, monotonic: Callable[[], float]) -> None:
        """Take the longest time between two reports for orders that set none."""
        self._silence = silence
        self._monotonic = monotonic
        self._reports: dict[OrderId, _LastReport] = {}  # owned by the worker thread

    def begin(self, task: DriverTask) -> Begun:
        """Wait for the first heartbeat."""
        return Running(None)

    def check(self, task: DriverTask) -> Checked:
        """Fail the step if a report is overdue."""
        if task.taken_up_at is None:
            return Running(None)
        if task.order not in self._reports:
            self.heard(task.order, task.heartbeat)
        report = self._reports[task.order]
        left = report.due - self._monotonic()
        return Running(task.now + timedelta(seconds=left)) if left > 0 else Failed(_overdue(report))

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel a step without a heartbeat; forewarn cannot stop an external program."""
        return Cancelled() if task.taken_up_at is None else TooLate()

    def heard(self, order: OrderId, limit: timedelta | None, *, silent_for: timedelta = timedelta()) -> None:
        """Restart the time limit of an order, `silent_for` in the past."""
        since = self._monotonic() - silent_for.total_seconds()
        self._reports[order] = _LastReport(since, (limit or self._silence).total_seconds())

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders with an overdue report, also while service time stands still."""
        now = self._monotonic()
        return {order: _overdue(report) for order, report in self._reports.items() if now >= report.due}

    def forget(self, order: OrderId) -> None:
        """Expect no more reports of an order."""
        self._reports.pop(order, None)


def _overdue(report: _LastReport) -> str:
    return f"the external program has not reported for {format_span(report.limit)}"
