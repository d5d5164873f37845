"""A driver that does nothing: others do the work, and report through the API how it goes.

What nobody has taken up waits, without a limit. Whoever takes it up says so with a first heartbeat, and must
then report within the limit that the work is done, has failed or goes on. Silence for longer is a failure,
shown like any other, never forgotten. Silence is counted in real time: those who work outside do not go by
a clock that is turned or runs fast. When an order was last heard of is kept in the store; what of its silence
counts after a start of the server is said in `core/orders/reports.py`.
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
    """When an order was last heard of, and how long it may be silent; in seconds of real time."""

    at: float
    limit: float


def make(setup: DriverSetup) -> "ExternalDriver":
    """Make the driver as it is set."""
    setup.read(NoOptions())
    return ExternalDriver(setup.settings.times.external_silence, monotonic=setup.monotonic)


class ExternalDriver:
    """Waits for the reports of those who do the work."""

    trusted_text = True
    limits = None  # it answers at once

    def __init__(self, silence: timedelta, *, monotonic: Callable[[], float]) -> None:
        """Take how long others may be silent where an order does not say."""
        self._silence = silence
        self._monotonic = monotonic
        self._reports: dict[OrderId, _LastReport] = {}  # the worker's thread has it

    def begin(self, task: DriverTask) -> Begun:
        """Let others begin, whenever they like."""
        return Running(None)

    def check(self, task: DriverTask) -> Checked:
        """Return whether there was a report in time; what nobody has taken up waits."""
        if task.taken_up_at is None:
            return Running(None)
        if task.order not in self._reports:
            self.heard(task.order, task.heartbeat)
        report = self._reports[task.order]
        left = report.at + report.limit - self._monotonic()
        return Running(task.now + timedelta(seconds=left)) if left > 0 else Failed(_silent(report))

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call off what nobody has taken up; others are not called back from their work."""
        return Cancelled() if task.taken_up_at is None else TooLate()

    def heard(self, order: OrderId, limit: timedelta | None, *, silent_for: timedelta = timedelta()) -> None:
        """Count the silence about an order, which has lasted for so long already."""
        since = self._monotonic() - silent_for.total_seconds()
        self._reports[order] = _LastReport(since, (limit or self._silence).total_seconds())

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders without a report in time, also while service time stands still."""
        now = self._monotonic()
        late = {order: report for order, report in self._reports.items() if now >= report.at + report.limit}
        return {order: _silent(report) for order, report in late.items()}

    def forget(self, order: OrderId) -> None:
        """Wait for no more reports of an order."""
        self._reports.pop(order, None)


def _silent(report: _LastReport) -> str:
    return f"nobody has reported for {format_span(report.limit)}"
