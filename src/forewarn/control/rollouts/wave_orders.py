"""The orders of waves under way, in memory as they were saved: a large wave is not read anew at each look."""

from forewarn.control.ports.saved import Saved
from forewarn.control.ports.store import Transaction
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.rollouts.progress import Orders
from forewarn.core.words import OrderId


class WaveOrders:
    """Knows orders of open rollouts for as long as it is told of everything that is saved."""

    def __init__(self) -> None:
        self._number: int | None = None  # of the newest change that it knows; None: nobody has told of any
        self._known: dict[str, dict[OrderId, Order]] = {}  # by their rollouts

    def note(self, saved: Saved) -> None:
        """Take what was saved; if something else may have been, what was known is read again."""
        if saved is None:
            self._forget()
        for each in saved or ():
            if each.before != self._number:
                self._forget()
            self._number = each.number
            for order in each.changes.orders:
                if order.terms.rollout is not None:
                    self._known.setdefault(order.terms.rollout, {})[order.id] = order
            for rollout in each.changes.rollouts:
                if not rollout.open:
                    self._known.pop(rollout.id, None)

    def of_last_wave(self, tx: Transaction, rollout: Rollout) -> Orders:
        """Return the orders of the wave that began last; what is not known is read."""
        wanted = rollout.begun[-1].orders if rollout.begun else ()
        # What this transaction has saved is not known yet, nor what another process has.
        current = self._number == tx.records.newest()
        known = self._known.get(rollout.id, {}) if current else {}
        missing = [order for order in wanted if order not in known]
        read = tx.rollouts.orders_by_id(missing) if missing else {}
        orders = {order: known[order] if order in known else read[order] for order in wanted}
        if current and rollout.open:
            self._known[rollout.id] = orders
        return dict(orders)

    def _forget(self) -> None:
        self._number = None
        self._known.clear()
