"""What can be asked of forewarn that changes something: one method for each, each in one transaction."""

from datetime import timedelta

from forewarn.control.fleet.declaring import Declaring
from forewarn.control.orders.answering import Answering
from forewarn.control.orders.placing import Ordering
from forewarn.core.moments import format_span
from forewarn.core.words import Kind


class Plane(Ordering, Answering, Declaring):
    """The use cases that change something."""

    def clock_advanced(self, way: timedelta, *, by: str) -> None:
        """Keep who turned the clock, and how far; called before it is."""
        with self._store.write() as tx, self._saving(tx, tx.around()) as draft:
            until = f"{draft.now + way:%Y-%m-%dT%H:%M:%SZ}"
            why = f"by {format_span(way)} to {until}"
            draft.record(Kind.CLOCK_ADVANCED, None, by=by, reason=why)
