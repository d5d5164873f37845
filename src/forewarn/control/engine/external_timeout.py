"""External work without a report: after a while its order has failed."""

from collections.abc import Mapping
from datetime import datetime

from forewarn.control.interfaces import ExternalReports
from forewarn.control.use_case import Context, UseCase
from forewarn.core.model.clock_slew import TimeKind
from forewarn.core.model.order import Order
from forewarn.core.orders import reports
from forewarn.core.orders.reports import Presence
from forewarn.core.words import FOREWARN, OrderId
from forewarn.store.batch import Transaction
from forewarn.store.queries.service_time import TimeQueries


class ExternalTimeout(UseCase):
    """Fails external orders that are not reported of in time."""

    def __init__(self, context: Context, *, external: ExternalReports) -> None:
        """Go on waiting for reports of all that others are at."""
        super().__init__(context)
        self._external = external
        now = context.real_now()
        with self._store.read() as snapshot:
            presence = _presence(snapshot.time)
            for order in filter(_is_awaited, snapshot.due.orders_under_way()):
                limit = order.terms.heartbeat or self._policy.external_silence
                silent_for = reports.silence_before_start(limit, order.heard_at, presence, now=now)
                external.heard(order.id, limit, silent_for=silent_for)

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders without a report in time, and why that is a failure."""
        return self._external.overdue()

    def fail(self, tx: Transaction, order: OrderId, now: datetime, *, why: str) -> None:
        """Fail an order; one whose work is over, or was never taken up, is only forgotten."""
        with self._saving(tx, tx.rules.around(orders=[order]), now=now) as draft:
            known = draft.orders.get(order)
            if known is not None and _is_awaited(known):
                reports.gone_silent(draft, order, by=FOREWARN, why=why, policy=self._policy)
        tx.after_commit(lambda: self._external.forget(order))


def _presence(time: TimeQueries) -> Presence | None:
    """Return when a server could hear reports, if service time is the world's own; else nothing is known."""
    present_at = time.present_at()
    if present_at is None or time.kind() is not TimeKind.SYSTEM:
        return None
    return Presence(until=present_at, absences=tuple(time.absences()))


def _is_awaited(order: Order) -> bool:
    return any(map(reports.is_awaited, order.driven))
