"""A machine or a host of a test's fleet, and what can be done to it."""

from datetime import timedelta

from forewarn.api.services import Services
from forewarn.control.all_use_cases import CallerReads
from forewarn.control.orders.order_use_cases import Placed
from forewarn.core.basic_types import Action, MaintenanceWord, Work
from forewarn.core.catalogue import MAINTENANCE_WORK
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.orders.requests import OrderRequest
from forewarn.store.batch import Transaction
from forewarn.testing.events import Event, Order
from forewarn.testing.faults import FaultName, PutFault, fault_of
from forewarn.testing.fleet_service import TEST, FleetService
from forewarn.wire.texts import either

__tracebackhide__ = True  # pytest shows the line of the test instead


class Machine:
    """A machine with a guest endpoint of its own.

    Its guest counts as one that listens, whether the application has asked yet or not: what is ordered here
    is announced. The clock stands until it is turned, so no guest is late.
    """

    def __init__(self, service: FleetService, name: str, endpoint: str) -> None:
        self._service = service
        self._name = name
        self._endpoint = endpoint

    @property
    def name(self) -> str:
        """Its name, as events give it."""
        return self._name

    @property
    def endpoint(self) -> str:
        """The URL at which its guest asks, without the path; what `GuestClient` takes."""
        return self._endpoint

    @property
    def state(self) -> str:
        """Running, frozen, restarting, moving, stopped, or gone once it is terminated; in small letters."""
        return self._service.read(self._state)

    @property
    def host(self) -> str | None:
        """The host that carries it; None while none does."""
        return self._service.read(lambda reads: reads.views.machine(self.name).machine.host)

    @property
    def polls(self) -> int:
        """How often its guest has asked for events, spoiled requests too."""
        return self._service.account(self.name).polls

    @property
    def spoiled(self) -> int:
        """How many of its guest's requests got no sound answer."""
        return self._service.account(self.name).spoiled

    def restart(self) -> Event:
        """Restart it, as its user would."""
        return self._announced(Action.RESTART)

    def redeploy(self) -> Event:
        """Move it to another host, as its user would."""
        return self._announced(Action.REDEPLOY)

    def freeze(self) -> Event:
        """Pause it for seconds."""
        return self._announced(Action.FREEZE)

    def evict(self) -> Event:
        """Stop it because its place is needed; for machines declared with priority "spot"."""
        return self._announced(Action.EVICT)

    def terminate(self) -> Event:
        """Delete it, as its user would."""
        return self._announced(Action.TERMINATE)

    def start(self) -> Order:
        """Start it again after an eviction; a start makes no event."""
        return Order(self._service, self._order(Action.START).order.id)

    def fault(
        self,
        name: FaultName,
        *,
        calls: int | None = None,
        delay: timedelta | None = None,
        notice: timedelta | None = None,
    ) -> PutFault:
        """Let its guest meet a fault, from now on until it is lifted, in so many requests at most."""
        fault = fault_of(name, (self.name,), calls=calls, delay=delay, notice=notice)
        return PutFault(self._service, fault)

    def _announced(self, action: Action) -> Event:
        placed = self._order(action)
        if not placed.events:
            why = "; ".join(f"{each.what}: {each.reason}" for each in placed.order.waiting)
            raise Conflict(f"nobody is told of the {action} of {self.name} now: {why}")
        return Event(self._service, placed.events[0].id)

    def _order(self, action: Action) -> Placed:
        def listened_and_ordered(services: Services, tx: Transaction) -> Placed:
            # Each time: a day without a poll ends listening, and the test may have let one pass.
            services.fleet.guests.enable(tx, services.reads_in(tx).views.machine(self.name).group.name)
            return services.orders.order_machine(tx, self.name, action, OrderRequest(by=TEST))

        self._service.note(TEST, f"orders {action} of {self.name}")
        return self._service.act(listened_and_ordered)

    def _state(self, reads: CallerReads) -> str:
        try:
            return reads.views.machine(self.name).machine.state.value
        except NotFound:
            return "gone"

    def __repr__(self) -> str:
        return f"<machine {self.name} at {self.endpoint}>"


class Host:
    """A host; what is ordered here is announced to the machines it carries."""

    def __init__(self, service: FleetService, name: str) -> None:
        self._service = service
        self._name = name

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def state(self) -> str:
        """Ok, cordoned, degraded or failed; in small letters."""
        return self._service.read(lambda reads: reads.fleet.views.host(self.name)[0].state.value)

    @property
    def machines(self) -> list[str]:
        """The names of the machines it carries."""
        return self._service.read(
            lambda reads: [str(each.name) for each in reads.fleet.views.host(self.name)[1]]
        )

    def maintenance(self, action: MaintenanceWord) -> Order:
        """Maintain it, one update domain of a group at a time."""
        if action not in set(MAINTENANCE_WORK):
            raise ValueError(f"action: expected {either(MAINTENANCE_WORK)}, got {action!r}")
        return self._order(Action.MAINTENANCE, Work(action))

    def degrade(self) -> Order:
        """Degrade it: it is going to fail, and its machines move within days."""
        return self._order(Action.DEGRADE)

    def fail(self) -> Order:
        """Let it fail: its machines come back on others, and their events are born Started."""
        return self._order(Action.FAIL)

    def restore(self) -> Order:
        """Make it sound again."""
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
