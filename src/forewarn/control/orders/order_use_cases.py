"""Orders for machines and hosts, actions on orders and events, and holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from forewarn.control import naming
from forewarn.control.disclosing import disclosed
from forewarn.control.interfaces import ExternalReports
from forewarn.control.paging import all_pages, chunks
from forewarn.control.use_case import Context, UseCase
from forewarn.core.access import check_change, check_terms
from forewarn.core.admission import holds
from forewarn.core.admission.timing import check_deadline
from forewarn.core.basic_types import (
    Action,
    ApprovedBy,
    EventId,
    EventStatus,
    HostName,
    NameKind,
    OrderId,
    ProjectName,
    Work,
)
from forewarn.core.catalogue import ACTIONS
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.filters import MachineFilter
from forewarn.core.model.constraints import Hold
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.order import Order
from forewarn.core.orders import interventions, lifecycle, lost_hosts, order_requests, reports
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.orders.recommendations import recommends
from forewarn.core.scope import EVERYTHING
from forewarn.store.batch import ScopedTransaction, Transaction
from forewarn.store.queries.work import WorkQueries

NOT_ENABLED = "its group is not enabled, because no machine of it polls: started immediately"
NEVER_ANNOUNCED = "a start makes no event"
NOT_OFFERED = (
    "only guests with a preview api-version see such events, and the server offers none: "
    "enable it with `[guest] preview = true` in the server's settings"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A new order and its first events."""

    order: Order
    events: tuple[Event, ...] = ()

    @property
    def why_no_event(self) -> str | None:
        """Why no event announces the order, or not yet; None if one does."""
        order = self.order
        if self.events:
            return None
        if waiting := [each for each in order.waiting if not each.outside]:
            return "; ".join(map(str, waiting))
        if order.action is Action.START:
            return NEVER_ANNOUNCED
        return NOT_ENABLED if ACTIONS[order.action].only_if_enabled else order.why or None


class OrderUseCases(UseCase):
    """Use cases for orders on machines, and for events, within the scope of the transaction."""

    def __init__(self, context: Context, *, external: ExternalReports) -> None:
        super().__init__(context)
        self._external = external
        self._preview = context.preview

    def order_machine(
        self, tx: ScopedTransaction, name: str, action: Action, request: OrderRequest
    ) -> Placed:
        """Order an action on a machine, or recommend it to the machine."""
        if recommends(action) and not self._preview:
            raise Conflict(NOT_OFFERED)
        if tx.scope.caller is not None:
            terms = request.terms
            check_terms(emergency=terms.emergency, driver=request.driver, heartbeat=terms.heartbeat)
        self._drivers_known.check(request.driver)
        machine = naming.find_machine(tx.fleet, name, scope=tx.scope)
        scheduled = tx.work.scheduled_user_orders(machine.project) if order_requests.is_limited(action) else 0
        to = request.terms.to
        around = tx.rules.around(
            machines=[machine.id], room=order_requests.may_move(action), targets=[] if to is None else [to]
        )
        if to is not None and to not in around.hosts:
            raise naming.unknown(NameKind.HOST, to, scope=tx.scope)
        with self._saving(tx, around) as draft:
            order = order_requests.on_machine(
                draft, machine.id, action, request, scheduled=scheduled, policy=self._policy
            )
            order_requests.check_heartbeat(order)
        return _placed(tx, draft.orders[order.id], draft.events_of(order.id))

    def cancel_order(self, tx: ScopedTransaction, order: OrderId, *, by: str) -> Placed:
        """Cancel an order that has not started."""
        return self._on_order(
            tx, order, lambda draft: interventions.cancel(draft, order, by=by), announced=False
        )

    def retry_order(self, tx: ScopedTransaction, order: OrderId, *, by: str) -> Placed:
        """Retry the failed steps of an order."""
        return self._on_order(
            tx, order, lambda draft: interventions.retry(draft, order, by=by, policy=self._policy)
        )

    def abandon_order(self, tx: ScopedTransaction, order: OrderId, *, by: str) -> Placed:
        """Abandon a failed order."""
        return self._on_order(
            tx, order, lambda draft: interventions.abandon(draft, order, by=by), announced=False
        )

    # Reports of external work

    def complete_order(self, tx: ScopedTransaction, order: OrderId, *, by: str) -> Placed:
        """Report that external work is done."""
        return self._on_order(
            tx, order, lambda draft: reports.report_done(draft, order, by=by, policy=self._policy)
        )

    def fail_order(self, tx: ScopedTransaction, order: OrderId, *, by: str, why: str) -> Placed:
        """Report that external work failed."""
        return self._on_order(
            tx, order, lambda draft: reports.report_failed(draft, order, by=by, why=why, policy=self._policy)
        )

    def heartbeat(self, tx: ScopedTransaction, order: OrderId) -> Placed:
        """Report that external work continues."""

        def heard(draft: Draft) -> Order:
            after = reports.heartbeat(draft, order, heard_at=self._real_now(), policy=self._policy)
            tx.after_commit(lambda: self._external.heard(order, after.terms.heartbeat))
            return after

        return self._on_order(tx, order, heard)

    # Events

    def approve_event(self, tx: ScopedTransaction, event: EventId, *, by: str) -> Event:
        """Approve an event as a person. As for guests, an approval that comes too late is no error."""
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
        """Change an order; return it, by default with its events."""
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


# Orders per load and save.
STOPPED_TOGETHER = 20
# Machines per page.
MACHINES_AT_ONCE = 1000


class HostOrders(UseCase):
    """Use cases for orders on hosts, and for holds."""

    def order_host(
        self, tx: Transaction, name: str, action: Action, request: OrderRequest, *, work: Work | None = None
    ) -> Placed:
        """Order an action on a host and all its machines."""
        host = HostName(name)
        check_deadline(request.terms.deadline, now=self._clock.now())
        self._drivers_known.check(request.driver)
        self._drivers_known.check(request.terms.host_driver, where="host_work")
        # A failure of the host also affects the machines that are moving to it.
        bound_for = partial(tx.fleet.machines, MachineFilter(bound_for=host))
        coming = all_pages(bound_for, limit=MACHINES_AT_ONCE) if action is Action.FAIL else ()
        machines = [machine.id for machine in coming]
        around = tx.rules.around(hosts=[host], machines=machines, room=order_requests.may_move(action, work))
        if host not in around.hosts:
            raise naming.unknown(NameKind.HOST, name)
        with self._saving(tx, around) as draft:
            order = order_requests.on_host(draft, host, action, request, work=work, policy=self._policy)
            order_requests.check_heartbeat(order)
        return Placed(order=draft.orders[order.id], events=draft.events_of(order.id))

    def wait_for(self, tx: Transaction, name: str, *, by: str, why: str = "") -> Placed:
        """Give a lost host more time to come back."""
        host = HostName(name)
        around = tx.rules.around(hosts=[host])
        if host not in around.hosts:
            raise naming.unknown(NameKind.HOST, name)
        with self._saving(tx, around) as draft:
            order = lost_hosts.wait(draft, draft.hosts[host], by=by, why=why, policy=self._policy)
            lifecycle.advance(draft, order.id, policy=self._policy)
        return Placed(order=draft.orders[order.id], events=draft.events_of(order.id))

    def hold(
        self,
        tx: Transaction,
        request: OrderRequest,
        *,
        project: ProjectName | None,
        host: HostName | None,
        abort: bool = False,
        id_: str | None = None,
    ) -> Hold:
        """Prevent new announcements and starts: anywhere, in a project, or on a host."""
        id_ = id_ or self._new_id()
        return self.keep(tx, self.new_hold(request, id_=id_, project=project, host=host, abort=abort))

    def new_hold(
        self,
        request: OrderRequest,
        *,
        id_: str,
        project: ProjectName | None,
        host: HostName | None,
        abort: bool,
    ) -> Hold:
        """Return a hold from now on, without saving it."""
        return Hold(
            id=id_,
            reason=request.reason,
            by=request.by,
            at=self._clock.now(),
            project=project,
            host=host,
            abort=abort,
        )

    def keep(self, tx: Transaction, hold: Hold, *, late: bool = False) -> Hold:
        """Save a hold, perhaps some time after it was set. Does nothing if it is saved already."""
        naming.check_host(tx.fleet, hold.host, scope=EVERYTHING)
        if hold.project is not None and tx.fleet.project(hold.project) is None:
            raise naming.unknown(NameKind.PROJECT, hold.project)
        with self._saving(tx, tx.rules.around(hosts=[] if hold.host is None else [hold.host])) as draft:
            kept = holds.put(draft, hold, late=late)
        if kept.abort:
            self._stop(tx, kept)
        return kept

    def _stop(self, tx: Transaction, hold: Hold) -> None:
        """Cancel all work under way in the scope of a hold."""
        under_way = [order.id for order in tx.due.orders_under_way()]
        for some in chunks(under_way, STOPPED_TOGETHER):
            with self._saving(tx, tx.rules.around(orders=some)) as draft:
                for order in some:
                    interventions.stop(draft, order, hold)

    def release(self, tx: Transaction, hold: str, *, by: str) -> Hold:
        """Release a hold."""
        with self._saving(tx) as draft:
            return holds.release(draft, hold, by=by)
