"""Orders and events of a test. Each property reads the current state from the service."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any

from forewarn.clock import monotonic
from forewarn.control.views import EventView, OrderView
from forewarn.core.basic_types import EventId, OrderId
from forewarn.core.guests.document import resource_names
from forewarn.core.model import event
from forewarn.testing.fleet_service import TEST, FleetService

__tracebackhide__ = True  # pytest shows the line of the test instead

# Real seconds. A guest that waits for changes sees them within milliseconds; one that polls, within two
# seconds.
PATIENCE = 5.0
LOOK_EVERY = 0.01


class Event:
    """An event."""

    def __init__(self, service: FleetService, id_: EventId) -> None:
        self._service = service
        self._id = id_
        self.id = str(id_)  # as guests see it

    @property
    def status(self) -> str:
        """Scheduled, Started, or Over once it has left the document."""
        event = self._now()
        return event.status.value if event.listed else "Over"

    @property
    def type(self) -> str:
        """Freeze, Reboot, Redeploy, Preempt or Terminate."""
        return self._now().type.value

    @property
    def resources(self) -> list[str]:
        """The names of its machines."""
        return [str(name) for name in resource_names(self._now())]

    @property
    def not_before(self) -> datetime:
        """When it may start without an approval."""
        return self._now().not_before

    @property
    def duration(self) -> timedelta | None:
        """The announced duration of the impact; None if unknown."""
        seconds = self._now().duration_seconds
        return None if seconds < 0 else timedelta(seconds=seconds)

    @property
    def approved(self) -> bool:
        """Whether it was approved."""
        return self._now().approved

    @property
    def approved_by(self) -> list[str]:
        """The approvers: names of machines, or `test` for the test itself."""
        return [approval.by for approval in self._now().approvals]

    @property
    def why(self) -> str:
        """Why it is over; empty before that."""
        return self._now().why

    @property
    def order(self) -> "Order":
        """Its order."""
        return Order(self._service, self._now().order)

    def approve(self) -> None:
        """Approve it, as an operator would."""
        self._service.note(TEST, f"approves event {self._id[:8]}")
        self._service.act(lambda services, tx: services.orders.approve_event(tx, self._id, by=TEST))

    def cancel(self) -> None:
        """Cancel it and its order."""
        self._service.note(TEST, f"cancels event {self._id[:8]}")
        self._service.act(lambda services, tx: services.orders.cancel_event(tx, self._id, by=TEST))

    def wait_for_approval(self, timeout: float = PATIENCE) -> None:
        """Wait, in real seconds, for the approval of a guest in another thread or process.

        The TimeoutError reports what the guest did instead.
        """
        self._service.do(self._approval(timeout))

    async def approval(self, timeout: float = PATIENCE) -> None:  # noqa: ASYNC109 - what it raises says more
        """Wait for the approval of a guest on the event loop of the test."""
        await asyncio.wrap_future(self._service.begin(self._approval(timeout)))

    async def _approval(self, patience: float) -> None:
        deadline = monotonic() + patience
        while not (view := await self._view()).event.approved:
            if monotonic() > deadline:
                raise TimeoutError(_not_approved(view, patience, self._service))
            await asyncio.sleep(LOOK_EVERY)

    def _now(self) -> event.Event:
        return self._service.do(self._view()).event

    def _view(self) -> Coroutine[Any, Any, EventView]:
        return self._service.reading(lambda reads: reads.views.event(self._id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{self.type} of {', '.join(self.resources)}, {self.status}, event {self.id}>"


class Order:
    """An order on a machine or a host."""

    def __init__(self, service: FleetService, id_: OrderId) -> None:
        self._service = service
        self._id = id_
        self.id = str(id_)

    @property
    def state(self) -> str:
        """`queued`, `announced`, `started`, `done`, `failed` or `cancelled`."""
        return self._now().order.state.value

    @property
    def waiting(self) -> list[str]:
        """The reasons why it waits."""
        return [f"{each.what}: {each.reason}" for each in self._now().order.waiting]

    @property
    def events(self) -> list[Event]:
        """Its events so far, including those that are over."""
        return [Event(self._service, view.event.id) for view in self._now().events]

    def cancel(self) -> None:
        """Cancel it and all its events."""
        self._service.note(TEST, f"cancels order {self._id[:8]}")
        self._service.act(lambda services, tx: services.orders.cancel_order(tx, self._id, by=TEST))

    def _now(self) -> OrderView:
        return self._service.read(lambda reads: reads.views.order(self._id))

    def __repr__(self) -> str:
        order = self._now().order
        return f"<{order.action} of {order.machine_name or order.host}, {order.state}, order {self.id}>"


def _not_approved(view: EventView, patience: float, service: FleetService) -> str:
    event = view.event
    whole = f"event {event.id} ({event.type}) was not approved within {patience:g} s"
    return "; ".join([whole, *(_poll_summary(named.name, event.id, service) for named in event.resources)])


def _poll_summary(machine: str, event: str, service: FleetService) -> str:
    account = service.account(machine)
    if not account.polls:
        return f"{machine} has never polled: does your application use its endpoint?"
    seen = "received the event" if event in account.seen else "did not receive the event"
    times = "once" if account.polls == 1 else f"{account.polls} times"
    spoiled = f" ({account.spoiled} spoiled by a fault)" if account.spoiled else ""
    return f"{machine} polled {times}{spoiled} and {seen}"
