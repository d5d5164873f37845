"""What operators order for hosts, and what they hold."""

from forewarn.control import naming
from forewarn.control.orders.order_use_cases import Placed
from forewarn.control.use_case import UseCase
from forewarn.core.admission import holds
from forewarn.core.admission.timing import check_deadline
from forewarn.core.filters import MachineFilter
from forewarn.core.model.constraints import Hold
from forewarn.core.orders import interventions, lifecycle, lost_hosts, requests
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.scope import EVERYTHING
from forewarn.core.words import Action, HostName, MachineId, NameKind, ProjectName, Work
from forewarn.store.batch import Transaction

# Orders that are loaded and saved together.
TOGETHER = 20
# Machines that are found together.
AT_ONCE = 1000


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
        for start in range(0, len(under_way), TOGETHER):
            some = under_way[start : start + TOGETHER]
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
        some, after = tx.fleet.machines(MachineFilter(bound_for=host), after=after, limit=AT_ONCE)
        found += [machine.id for machine in some]
        if after is None:
            return found
