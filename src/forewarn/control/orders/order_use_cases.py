"""What people order for machines, and what they say about orders and events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forewarn.control import naming
from forewarn.control.disclosing import disclosed
from forewarn.control.interfaces import ExternalReports
from forewarn.control.use_case import Context, UseCase
from forewarn.core.access import check_change, check_terms
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.order import Order
from forewarn.core.orders import interventions, lifecycle, reports, requests
from forewarn.core.orders.recommendations import recommends
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.words import Action, ApprovedBy, EventId, EventStatus, NameKind, OrderId
from forewarn.store.batch import ScopedTransaction
from forewarn.store.queries.work import WorkQueries

NOT_ENABLED = "the feature is not enabled for its group, no machine of it polls: begun at once"
NEVER_ANNOUNCED = "a start makes no event"
NOT_OFFERED = (
    "only guests that ask with a preview version are told of it, and none is offered: "
    "`[guest] preview = true` in the server's settings offers it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An order, and the events that announce it so far."""

    order: Order
    events: tuple[Event, ...] = ()

    @property
    def why_no_event(self) -> str | None:
        """Why the order is not announced, or not yet; None if it is."""
        order = self.order
        if self.events:
            return None
        if waiting := [each for each in order.waiting if not each.outside]:
            return "; ".join(map(str, waiting))
        if order.action is Action.START:
            return NEVER_ANNOUNCED
        return NOT_ENABLED if ACTIONS[order.action].only_if_enabled else order.why or None


class OrderUseCases(UseCase):
    """The use cases about orders on machines, and about events: of what their transaction's scope sees."""

    def __init__(self, context: Context, *, external: ExternalReports) -> None:
        super().__init__(context)
        self._external = external
        self._preview = context.preview

    def order_machine(
        self, tx: ScopedTransaction, name: str, action: Action, request: OrderRequest
    ) -> Placed:
        """Order something to be done to a machine, or to be recommended to it."""
        if recommends(action) and not self._preview:
            raise Conflict(NOT_OFFERED)
        if tx.scope.caller is not None:
            terms = request.terms
            check_terms(emergency=terms.emergency, driver=request.driver, heartbeat=terms.heartbeat)
        self._drivers_known.check(request.driver)
        machine = naming.known_machine(tx.fleet, name, scope=tx.scope)
        scheduled = tx.work.scheduled_user_orders(machine.project) if requests.is_limited(action) else 0
        to = request.terms.to
        targets = [] if to is None else [to]
        around = tx.rules.around(machines=[machine.id], room=requests.may_move(action), targets=targets)
        if to is not None and to not in around.hosts:
            raise naming.unknown(NameKind.HOST, to, scope=tx.scope)
        with self._saving(tx, around) as draft:
            order = requests.on_machine(
                draft, machine.id, action, request, scheduled=scheduled, policy=self._policy
            )
            requests.check_heartbeat(order)
        return _placed(tx, draft.orders[order.id], draft.events_of(order.id))

    def cancel_order(self, tx: ScopedTransaction, order: OrderId, *, by: str) -> Placed:
        """Cancel an order that has not started."""
        return self._on_order(
            tx, order, lambda draft: interventions.cancel(draft, order, by=by), announced=False
        )

    def retry_order(self, tx: ScopedTransaction, order: OrderId, *, by: str) -> Placed:
        """Carry out the failed steps of an order once more."""
        return self._on_order(
            tx, order, lambda draft: interventions.retry(draft, order, by=by, policy=self._policy)
        )

    def abandon_order(self, tx: ScopedTransaction, order: OrderId, *, by: str) -> Placed:
        """Abandon an order that failed."""
        return self._on_order(
            tx, order, lambda draft: interventions.abandon(draft, order, by=by), announced=False
        )

    # Reports of external work

    def complete_order(self, tx: ScopedTransaction, order: OrderId, *, by: str) -> Placed:
        """Take a report that the work is done."""
        return self._on_order(
            tx, order, lambda draft: reports.report_done(draft, order, by=by, policy=self._policy)
        )

    def fail_order(self, tx: ScopedTransaction, order: OrderId, *, by: str, why: str) -> Placed:
        """Take a report that the work failed."""
        return self._on_order(
            tx, order, lambda draft: reports.report_failed(draft, order, by=by, why=why, policy=self._policy)
        )

    def heartbeat(self, tx: ScopedTransaction, order: OrderId) -> Placed:
        """Take a report that the work goes on."""

        def heard(draft: Draft) -> Order:
            after = reports.heartbeat(draft, order, heard_at=self._real_now(), policy=self._policy)
            tx.after_commit(lambda: self._external.heard(order, after.terms.heartbeat))
            return after

        return self._on_order(tx, order, heard)

    # Events

    def approve_event(self, tx: ScopedTransaction, event: EventId, *, by: str) -> Event:
        """Approve as a person; too late is not an error, as for a guest."""
        known = _listed_event(tx.work, event)
        with self._saving(tx, tx.rules.around(orders=[known.order])) as draft:
            approval = Approval(by=by, kind=ApprovedBy.PERSON, at=draft.now)
            lifecycle.approve(draft, draft.events[known.id], approval, policy=self._policy)
        return disclosed(tx.fleet, [draft.events[known.id]], scope=tx.scope)[0]

    def cancel_event(self, tx: ScopedTransaction, event: EventId, *, by: str) -> Event:
        """Cancel the order of an event, with all its events."""
        known = _listed_event(tx.work, event)
        if known.status is not EventStatus.SCHEDULED:
            raise Conflict(f"event {known.id} is {known.status}, too late to cancel")
        check_change(tx.work.order(known.order), project=tx.scope.caller)
        with self._saving(tx, tx.rules.around(orders=[known.order])) as draft:
            interventions.cancel(draft, known.order, by=by)
        return disclosed(tx.fleet, [draft.events[known.id]], scope=tx.scope)[0]

    def _on_order(
        self,
        tx: ScopedTransaction,
        order: OrderId,
        decide: Callable[[Draft], Order],
        *,
        announced: bool = True,
    ) -> Placed:
        """Do what was asked of an order, and show it, with the events that announce it if there are any."""
        check_change(naming.existing(tx.work.order(order), "order", order), project=tx.scope.caller)
        with self._saving(tx, tx.rules.around(orders=[order])) as draft:
            after = decide(draft)
        return _placed(tx, draft.orders[after.id], draft.events_of(after.id) if announced else ())


def _placed(tx: ScopedTransaction, order: Order, events: Sequence[Event]) -> Placed:
    (shown,) = disclosed(tx.fleet, [order], scope=tx.scope)
    return Placed(order=shown, events=tuple(disclosed(tx.fleet, events, scope=tx.scope)))


def _listed_event(work: WorkQueries, event: EventId) -> Event:
    known = naming.existing(work.event(event), "event", event)
    if not known.listed:
        raise Conflict(f"event {known.id} is over: {known.why}")
    return known
