"""What people order, and what they say about orders: placing, cancelling, reporting, holding."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from forewarn.control import naming
from forewarn.control.use_cases import UseCases
from forewarn.core.access import check_change, check_terms
from forewarn.core.admission import holds
from forewarn.core.admission.timing import check_deadline
from forewarn.core.draft import Draft
from forewarn.core.errors import NotFound
from forewarn.core.model.event import Event
from forewarn.core.model.hold import Hold
from forewarn.core.model.order import Order
from forewarn.core.orders import interventions, reports, requests
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.words import Action, HostName, OrderId, ProjectName, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An order, and the events that tell of it so far."""

    order: Order
    events: tuple[Event, ...]


class Ordering(UseCases):
    """The use cases about orders and holds."""

    def order_machine(
        self, name: str, action: Action, request: OrderRequest, *, project: ProjectName | None = None
    ) -> Placed:
        """Order something to be done to a machine."""
        if self._project is not None:
            check_terms(emergency=request.terms.emergency, driver=request.driver)
        with self._store.write() as tx:
            machine = naming.known_machine(tx, name, project=project, within=self._project)
            scheduled = tx.scheduled_user_orders(machine.project)
            with self._saving(tx, tx.around(machines=[machine.id])) as draft:
                order = requests.on_machine(
                    draft, machine.id, action, request, scheduled=scheduled, policy=self._policy
                )
        return Placed(order=order, events=draft.events_of(order.id))

    def order_host(
        self, name: str, action: Action, request: OrderRequest, *, work: Work | None = None
    ) -> Placed:
        """Order something to be done to a host and all it carries."""
        host = HostName(name)
        check_deadline(request.terms.deadline, now=self._clock.now())
        with self._store.write() as tx:
            around = tx.around(hosts=[host])
            if host not in around.hosts:
                raise naming.unknown_host(tx, name)
            with self._saving(tx, around) as draft:
                order = requests.on_host(draft, host, action, request, work=work, policy=self._policy)
        return Placed(order=order, events=draft.events_of(order.id))

    def cancel_order(self, order: OrderId, *, by: str) -> Placed:
        """Call an order off."""
        with self._on_order(order) as draft:
            ended = interventions.cancel(draft, order, by=by)
        return Placed(order=ended, events=())

    def retry_order(self, order: OrderId, *, by: str) -> Placed:
        """Carry out the failed steps of an order once more."""
        with self._on_order(order) as draft:
            again = interventions.retry(draft, order, by=by, policy=self._policy)
        return Placed(order=again, events=draft.events_of(order))

    def abandon_order(self, order: OrderId, *, by: str) -> Placed:
        """Give up an order that failed."""
        with self._on_order(order) as draft:
            ended = interventions.abandon(draft, order, by=by)
        return Placed(order=ended, events=())

    def complete_order(self, order: OrderId, *, by: str) -> Placed:
        """Take the word of whoever does the work outside that it is done."""
        with self._on_order(order) as draft:
            after = reports.report_done(draft, order, by=by, policy=self._policy)
        return Placed(order=after, events=draft.events_of(order))

    def fail_order(self, order: OrderId, *, by: str, why: str) -> Placed:
        """Take the word of whoever does the work outside that it failed."""
        with self._on_order(order) as draft:
            after = reports.report_failed(draft, order, by=by, why=why, policy=self._policy)
        return Placed(order=after, events=draft.events_of(order))

    def heartbeat(self, order: OrderId) -> Placed:
        """Take the word of whoever does the work outside that it goes on."""
        with self._on_order(order) as draft:
            after = reports.heartbeat(draft, order, policy=self._policy)
            self._heard(order)
        return Placed(order=after, events=draft.events_of(order))

    # Holds

    def hold(self, request: OrderRequest, *, project: ProjectName | None, host: HostName | None) -> Hold:
        """Let nothing new be announced or started: anywhere, in a project, or on a host."""
        with self._store.write() as tx:
            around = tx.around(hosts=[] if host is None else [host])
            if host is not None and host not in around.hosts:
                raise naming.unknown_host(tx, host)
            if project is not None and project not in {known.name for known in tx.projects()}:
                raise naming.unknown_project(tx, project)
            with self._saving(tx, around) as draft:
                wanted = Hold(
                    id=self._new_id(),
                    reason=request.reason,
                    by=request.by,
                    at=draft.now,
                    project=project,
                    host=host,
                )
                return holds.put(draft, wanted)

    def release(self, hold: str, *, by: str) -> Hold:
        """Lift a hold."""
        with self._store.write() as tx, self._saving(tx, tx.around()) as draft:
            return holds.release(draft, hold, by=by)

    @contextmanager
    def _on_order(self, order: OrderId) -> Iterator[Draft]:
        with self._store.write() as tx:
            known = tx.order(order)
            if known is None:
                raise NotFound(f"order {order} does not exist")
            check_change(known, project=self._project)
            with self._saving(tx, tx.around(orders=[order])) as draft:
                yield draft
