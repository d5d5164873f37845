"""External work without a report: after a while its order has failed."""

from collections.abc import Sequence
from datetime import datetime

from forewarn.control.ports.external import ExternalReports
from forewarn.control.use_case import Context, FleetUseCase
from forewarn.core.model.order import Order
from forewarn.core.orders import reports
from forewarn.core.words import EXTERNAL, FOREWARN, OrderId


class ExternalTimeout(FleetUseCase):
    """Fails external orders that are not reported of in time."""

    def __init__(self, context: Context, *, external: ExternalReports) -> None:
        """Wait anew for reports of all that others are at."""
        super().__init__(context)
        self._external = external
        with self._store.read() as snapshot:
            for order in snapshot.driven_orders(driver=EXTERNAL):
                if _is_awaited(order):
                    external.heard(order.id, order.terms.heartbeat)

    def overdue(self) -> Sequence[OrderId]:
        """List the orders without a report in time."""
        return list(self._external.overdue())

    def fail(self, order: OrderId, now: datetime) -> None:
        """Fail an order; one whose work is over, or was never taken up, is only forgotten."""
        why = self._external.overdue().get(order)
        if why is None:
            return
        with self._store.write() as tx, self._saving(tx, tx.around(orders=[order]), now=now) as draft:
            known = draft.orders.get(order)
            if known is not None and _is_awaited(known):
                reports.gone_silent(draft, order, by=FOREWARN, why=why, policy=self._policy)
        self._store.after_saving(lambda: self._external.forget(order))


def _is_awaited(order: Order) -> bool:
    return any(map(reports.is_awaited, order.steps))
