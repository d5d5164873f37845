"""What people order for machines and hosts, what they say about orders and events, and what they hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forewarn.control import naming
from forewarn.control.disclosing import disclosed
from forewarn.control.interfaces import ExternalReports
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
    MachineId,
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
from forewarn.core.orders import interventions, lifecycle, lost_hosts, reports, requests
from forewarn.core.orders.recommendations import recommends
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.scope import EVERYTHING
from forewarn.store.batch import ScopedTransaction, Transaction
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
        machine = naming.find_machine(tx.fleet, name, scope=tx.scope)
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


# Orders that are loaded and saved together.
STOPPED_TOGETHER = 20
# Machines that are found together.
MACHINES_AT_ONCE = 1000


class HostOrders(UseCase):
    """The use cases about orders on hosts, and about holds."""

    def order_host(
        self, tx: Transaction, name: str, action: Action, request: OrderRequest, *, work: Work | None = None
    ) -> Placed:
        """Order something to be done to a host and all it carries."""
        host = HostName(name)
        check_deadline(request.terms.deadline, now=self._clock.now())
        self._drivers_known.check(request.driver)
        self._drivers_known.check(request.terms.host_driver, where="host_work")
        coming = _coming_to(tx, host) if action is Action.FAIL else []
        around = tx.rules.around(hosts=[host], machines=coming, room=requests.may_move(action, work))
        if host not in around.hosts:
            raise naming.unknown(NameKind.HOST, name)
        with self._saving(tx, around) as draft:
            order = requests.on_host(draft, host, action, request, work=work, policy=self._policy)
            requests.check_heartbeat(order)
        return Placed(order=draft.orders[order.id], events=draft.events_of(order.id))

    def wait_for(self, tx: Transaction, name: str, *, by: str, why: str = "") -> Placed:
        """Give a host that is lost more time to come back."""
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
        """Let nothing new be announced or started: anywhere, in a project, or on a host."""
        return self.keep(
            tx,
            Hold(
                id=id_ or self._new_id(),
                reason=request.reason,
                by=request.by,
                at=self._clock.now(),
                project=project,
                host=host,
                abort=abort,
            ),
        )

    def keep(self, tx: Transaction, hold: Hold, *, late: bool = False) -> Hold:
        """Save a hold, perhaps a while after it was set; nothing if it is saved already."""
        naming.check_host(tx.fleet, hold.host, scope=EVERYTHING)
        if hold.project is not None and tx.fleet.project(hold.project) is None:
            raise naming.unknown(NameKind.PROJECT, hold.project)
        with self._saving(tx, tx.rules.around(hosts=[] if hold.host is None else [hold.host])) as draft:
            kept = holds.put(draft, hold, late=late)
        if kept.abort:
            self._stop(tx, kept)
        return kept

    def _stop(self, tx: Transaction, hold: Hold) -> None:
        """Call off what is under way where a hold reaches."""
        under_way = [order.id for order in tx.due.orders_under_way()]
        for start in range(0, len(under_way), STOPPED_TOGETHER):
            some = under_way[start : start + STOPPED_TOGETHER]
            with self._saving(tx, tx.rules.around(orders=some)) as draft:
                for order in some:
                    interventions.stop(draft, order, hold)

    def release(self, tx: Transaction, hold: str, *, by: str) -> Hold:
        """Lift a hold."""
        with self._saving(tx) as draft:
            return holds.release(draft, hold, by=by)


def _coming_to(tx: Transaction, host: HostName) -> list[MachineId]:
    """Find the machines that are on their way to a host: what fails there may fail them."""
    found: list[MachineId] = []
    after: str | None = None
    while True:
        some, after = tx.fleet.machines(MachineFilter(bound_for=host), after=after, limit=MACHINES_AT_ONCE)
        found += [machine.id for machine in some]
        if after is None:
            return found
