"""A host of a test's fleet, and what can be done to it and to all that it carries."""

from forewarn.core.catalogue import MAINTENANCE_WORK
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.words import Action, MaintenanceWord, Work
from forewarn.testing.events import Order
from forewarn.testing.fleet_service import TEST, FleetService
from forewarn.wire.wording import either

__tracebackhide__ = True  # pytest shows the line of the test instead


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
