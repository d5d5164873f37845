"""What control needs to know of work that is done outside: how long it has gone without a report."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from forewarn.core.words import OrderId


class ExternalReports(Protocol):
    """How long external orders have gone without a report, in real time."""

    def heard(self, order: OrderId, limit: timedelta | None, *, silent_for: timedelta = timedelta()) -> None:
        """Wait for the next report of an order, silent for so long already; None: the usual limit."""
        ...

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders without a report in time, and why that is a failure."""
        ...

    def forget(self, order: OrderId) -> None:
        """Wait for no more reports of an order."""
        ...
