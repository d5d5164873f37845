"""The first start on a restored backup: a hold keeps new work back until an operator has checked the fleet.

Work that was open in the backup may have finished since, or another server may have done it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from forewarn.control.paging import all_pages
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
    """The time of the backup, the hold, and the open work, oldest first."""

    up_to: datetime
    hold: Hold | None
    orders: Sequence[Order]
    rollouts: Sequence[Rollout]


class RestoredStore(UseCase):
    """The use case for a start on a store that may be a restored backup."""

    def begin(self, tx: Transaction, *, hold: bool) -> Restored | None:
        """Hold the whole fleet if that is wanted, and if this is a backup that no server has served yet."""
        up_to = tx.time.backup_of()
        if up_to is None:
            return None
        tx.time.set_served()
        found = Restored(up_to=up_to, hold=None, orders=_open_orders(tx.work), rollouts=tx.rollouts.open())
        if not hold:
            return found
        with self._saving(tx) as draft:
            return replace(found, hold=self._hold(draft, up_to))

    def _hold(self, draft: Draft, up_to: datetime) -> Hold:
        """Return a hold of the whole fleet: a new one, unless the backup contains one."""
        for known in draft.holds.values():
            if known.project is None and known.host is None:
                return known
        why = f"restored from a backup of {format_time(up_to)}: check the open work, then release this hold"
        return holds.put(draft, Hold(id=self._new_id(), reason=why, by=FOREWARN, at=draft.now))


def _open_orders(work: WorkQueries) -> Sequence[Order]:
    found = (
        order
        for state in _OPEN
        for order in all_pages(partial(work.orders, OrderFilter(state=state)), limit=_PAGE)
    )
    return sorted(found, key=lambda order: order.number)
