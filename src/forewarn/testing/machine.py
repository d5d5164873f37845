"""Machines and hosts of a test."""

from datetime import timedelta

from forewarn.api.services import Services
from forewarn.control.orders.order_use_cases import Placed
from forewarn.core.basic_types import Action, MaintenanceWord, Work
from forewarn.core.catalogue import MAINTENANCE_WORK
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.store.batch import Transaction
from forewarn.testing.events import Event, Order
from forewarn.testing.faults import FaultName, PutFault, fault_of
from forewarn.testing.fleet_service import TEST, FleetService
from forewarn.wire.texts import either

__tracebackhide__ = True  # pytest shows the line of the test instead


class Machine:
    """A machine with a guest endpoint of its own.

    Its group is enabled even if the application has never polled, so every order is announced. The clock
    stands still until the test advances it, so no guest is late.
    """

    def __init__(self, service: FleetService, name: str, endpoint: str) -> None:
        self._service = service
        self.name = name
        self.endpoint = endpoint  # the URL of its guest endpoint without a path, for `GuestClient`

    @property
    def state(self) -> str:
        """`running`, `frozen`, `restarting`, `moving`, `stopped`, or `gone` once it was terminated."""
        try:
            return self._service.read(lambda reads: reads.views.machine(self.name).machine.state.value)
        except NotFound:
            return "gone"

    @property
    def host(self) -> str | None:
        """Its host; None while it has none."""
        return self._service.read(lambda reads: reads.views.machine(self.name).machine.host)

    @property
    def polls(self) -> int:
        """How often its guest has polled, including requests that met a fault."""
        return self._service.account(self.name).polls

    @property
    def spoiled(self) -> int:
        """How many of these requests met a fault."""
        return self._service.account(self.name).spoiled

    def restart(self) -> Event:
        """Restart it, as a user would."""
        return self._announced(Action.RESTART)

    def redeploy(self) -> Event:
        """Redeploy it, as a user would."""
        return self._announced(Action.REDEPLOY)

    def freeze(self) -> Event:
        """Freeze it for some seconds."""
        return self._announced(Action.FREEZE)

    def evict(self) -> Event:
        """Evict it; only for machines with the priority `spot`."""
        return self._announced(Action.EVICT)

    def terminate(self) -> Event:
        """Terminate it, as a user would."""
        return self._announced(Action.TERMINATE)

    def start(self) -> Order:
        """Start it again after an eviction; this has no event."""
        return Order(self._service, self._order(Action.START).order.id)

    def fault(
        self,
        name: FaultName,
        *,
        calls: int | None = None,
        delay: timedelta | None = None,
        notice: timedelta | None = None,
    ) -> PutFault:
        """Inject a fault into the answers to its guest, for at most `calls` requests."""
        fault = fault_of(name, (self.name,), calls=calls, delay=delay, notice=notice)
        return PutFault(self._service, fault)

    def _announced(self, action: Action) -> Event:
        placed = self._order(action)
        if not placed.events:
            why = "; ".join(f"{each.what}: {each.reason}" for each in placed.order.waiting)
            raise Conflict(f"the {action} of {self.name} has no event yet: {why}")
        return Event(self._service, placed.events[0].id)

    def _order(self, action: Action) -> Placed:
        def enable_and_order(services: Services, tx: Transaction) -> Placed:
            # Each time, because a day without polls disables the group, and the test may have advanced the
            # clock.
            services.fleet.guests.enable(tx, services.reads_in(tx).views.machine(self.name).group.name)
            return services.orders.order_machine(tx, self.name, action, OrderRequest(by=TEST))

        self._service.note(TEST, f"orders {action} of {self.name}")
        return self._service.act(enable_and_order)

    def __repr__(self) -> str:
        return f"<machine {self.name} at {self.endpoint}>"


class Host:
    """A host; its orders are announced to the machines on it."""

    def __init__(self, service: FleetService, name: str) -> None:
        self._service = service
        self.name = name

    @property
    def state(self) -> str:
        """`ok`, `cordoned`, `degraded` or `failed`."""
        return self._service.read(lambda reads: reads.fleet.views.host(self.name)[0].state.value)

    @property
    def machines(self) -> list[str]:
        """The names of its machines."""
        return self._service.read(
            lambda reads: [str(each.name) for each in reads.fleet.views.host(self.name)[1]]
        )

    def maintenance(self, action: MaintenanceWord) -> Order:
        """Do maintenance on it, one update domain of a group at a time."""
        if action not in set(MAINTENANCE_WORK):
            raise ValueError(f"action: expected {either(MAINTENANCE_WORK)}, got {action!r}")
        return self._order(Action.MAINTENANCE, Work(action))

    def degrade(self) -> Order:
        """Degrade it: a failure is predicted, and its machines move within days."""
        return self._order(Action.DEGRADE)

    def fail(self) -> Order:
        """Let it fail: its machines restart on other hosts, and their events begin as Started."""
        return self._order(Action.FAIL)

    def restore(self) -> Order:
        """Restore it."""
        return self._order(Action.RESTORE)

    def _order(self, action: Action, work: Work | None = None) -> Order:
        self._service.note(TEST, f"orders {action} of {self.name}")
        placed = self._service.act(
            lambda services, tx: services.fleet.hosts.order_host(
                tx, self.name, action, OrderRequest(by=TEST), work=work
            )
        )
        return Order(self._service, placed.order.id)

    def __repr__(self) -> str:
        return f"<host {self.name}>"
