"""A backup that is served for the first time: nothing new comes of it before somebody has looked.

What was open when it was made may be over by now, or done by another server.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from forewarn.control.use_case import UseCase
from forewarn.core.admission import holds
from forewarn.core.basic_types import FOREWARN, OrderState
from forewarn.core.draft import Draft
from forewarn.core.filters import OrderFilter
from forewarn.core.model.constraints import Hold
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.time_formats import format_time
from forewarn.store.batch import Transaction
from forewarn.store.queries.work import WorkQueries

_OPEN = (OrderState.STARTED, OrderState.ANNOUNCED, OrderState.QUEUED)
_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a backup has everything up to, whether it is held, and what is open in it, oldest first."""

    up_to: datetime
    hold: Hold | None
    orders: Sequence[Order]
    rollouts: Sequence[Rollout]


class RestoredStore(UseCase):
    """The use case of a start on what may be a backup."""

    def begin(self, tx: Transaction, *, hold: bool) -> Restored | None:
        """Hold the whole fleet, if that is wanted and this is a backup that was not served yet."""
        up_to = tx.time.backup_of()
        if up_to is None:
            return None
        tx.time.set_served()
        found = Restored(up_to=up_to, hold=None, orders=_open_orders(tx.work), rollouts=tx.rollouts.open())
        if not hold:
            return found
        with self._saving(tx) as draft:
            return Restored(
                up_to=up_to,
                hold=self._hold(draft, up_to),
                orders=found.orders,
                rollouts=found.rollouts,
            )

    def _hold(self, draft: Draft, up_to: datetime) -> Hold:
        """Hold everything; a hold that the backup has brought along is as good."""
        for known in draft.holds.values():
            if known.project is None and known.host is None:
                return known
        why = f"a backup of {format_time(up_to)} is served: look at what is open in it, then release it"
        return holds.put(draft, Hold(id=self._new_id(), reason=why, by=FOREWARN, at=draft.now))


def _open_orders(work: WorkQueries) -> Sequence[Order]:
    found: list[Order] = []
    for state in _OPEN:
        after: str | None = None
        while True:
            page, after = work.orders(OrderFilter(state=state), after=after, limit=_PAGE)
            found += page
            if after is None:
                break
    return sorted(found, key=lambda order: order.number)
