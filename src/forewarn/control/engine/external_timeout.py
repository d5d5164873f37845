"""The silence of those who do work outside: when it lasts too long, their order has failed."""

from collections.abc import Callable, Sequence
from datetime import datetime

from forewarn.control.ports.driver import Outside
from forewarn.control.ports.store import Store
from forewarn.core.draft import Draft
from forewarn.core.orders import reports
from forewarn.core.policy import EXTERNAL, Policy
from forewarn.core.words import OrderId, StepState

# Who says so in the records: nobody else did.
FOREWARN = "forewarn"


class Silence:
    """Fails the orders that nobody reports of."""

    def __init__(self, *, store: Store, outside: Outside, policy: Policy, new_id: Callable[[], str]) -> None:
        """Begin to count anew for all that is under way."""
        self._store = store
        self._outside = outside
        self._policy = policy
        self._new_id = new_id
        with store.read() as snapshot:
            for order in snapshot.driven_orders(driver=EXTERNAL):
                if any(step.state is StepState.RUNNING for step in order.steps):
                    outside.expect(order.id, order.terms.heartbeat)

    def overdue(self) -> Sequence[OrderId]:
        """Say which orders have been silent for too long."""
        return list(self._outside.overdue())

    def fail(self, order: OrderId, now: datetime) -> None:
        """Fail an order; one whose work is over, or was never begun, is only forgotten."""
        why = self._outside.overdue().get(order)
        if why is None:
            return
        with self._store.write() as tx:
            draft = Draft(tx.around(orders=[order]), now=now, new_id=self._new_id)
            known = draft.orders.get(order)
            if known is not None and any(step.state is StepState.RUNNING for step in known.steps):
                reports.report_failed(draft, order, by=FOREWARN, why=why, policy=self._policy)
            tx.save(draft.changes())
        self._outside.forget(order)
