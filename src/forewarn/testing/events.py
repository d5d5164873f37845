"""Orders and events of a test's fleet: each property is asked of the service when it is read."""

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

# Real seconds. A guest that waits for news has it within milliseconds, one that polls within one or two.
PATIENCE = 5.0
LOOK_EVERY = 0.01


class Event:
    """An event that guests are shown, as it is now."""

    def __init__(self, service: FleetService, id_: EventId) -> None:
        self._service = service
        self._id = id_

    @property
    def id(self) -> str:
        """Its id, as guests read it."""
        return self._id

    @property
    def status(self) -> str:
        """Scheduled, then Started, then Over: carried out or cancelled, and listed no more."""
        event = self._now()
        return event.status.value if event.listed else "Over"

    @property
    def type(self) -> str:
        """Freeze, Reboot, Redeploy, Preempt or Terminate."""
        return self._now().type.value

    @property
    def resources(self) -> list[str]:
        """The machines it names, as guests read them."""
        return [str(name) for name in resource_names(self._now())]

    @property
    def not_before(self) -> datetime:
        """When it may start unapproved."""
        return self._now().not_before

    @property
    def duration(self) -> timedelta | None:
        """How long the impact is said to be; None if that is not known."""
        seconds = self._now().duration_seconds
        return None if seconds < 0 else timedelta(seconds=seconds)

    @property
    def approved(self) -> bool:
        """Whether it was let start early."""
        return self._now().approved

    @property
    def approved_by(self) -> list[str]:
        """Who let it: names of machines, or `test` for the test itself."""
        return [approval.by for approval in self._now().approvals]

    @property
    def why(self) -> str:
        """Why it is over; empty while it is not."""
        return self._now().why

    @property
    def order(self) -> "Order":
        """The order that it announces."""
        return Order(self._service, self._now().order)

    def approve(self) -> None:
        """Let it start now, as a person would."""
        self._service.note(TEST, f"approves event {self._id[:8]}")
        self._service.act(lambda services, tx: services.orders.approve_event(tx, self._id, by=TEST))

    def cancel(self) -> None:
        """Cancel it, with its order."""
        self._service.note(TEST, f"cancels event {self._id[:8]}")
        self._service.act(lambda services, tx: services.orders.cancel_event(tx, self._id, by=TEST))

    def wait_for_approval(self, timeout: float = PATIENCE) -> None:
        """Wait for a guest that runs elsewhere, for some real seconds; TimeoutError says what it did."""
        self._service.do(self._approval(timeout))

    async def approval(self, timeout: float = PATIENCE) -> None:  # noqa: ASYNC109 - what it raises says more
        """Do the same where the guest runs on this test's own event loop."""
        await asyncio.wrap_future(self._service.begin(self._approval(timeout)))

    async def _approval(self, patience: float) -> None:
        deadline = monotonic() + patience
        while not (view := await self._looking()).event.approved:
            if monotonic() > deadline:
                raise TimeoutError(_silence(view, patience, self._service))
            await asyncio.sleep(LOOK_EVERY)

    def _now(self) -> event.Event:
        return self._service.do(self._looking()).event

    def _looking(self) -> Coroutine[Any, Any, EventView]:
        return self._service.reading(lambda reads: reads.views.event(self._id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{self.type} of {', '.join(self.resources)}, {self.status}, event {self.id}>"


class Order:
    """What is going to be done to a machine or a host, as far as it is now."""

    def __init__(self, service: FleetService, id_: OrderId) -> None:
        self._service = service
        self._id = id_

    @property
    def id(self) -> str:
        """Its id."""
        return self._id

    @property
    def state(self) -> str:
        """Queued, announced, started, done, failed or cancelled; in small letters, as the API has it."""
        return self._now().order.state.value

    @property
    def waiting(self) -> list[str]:
        """What it waits for, in words."""
        return [f"{each.what}: {each.reason}" for each in self._now().order.waiting]

    @property
    def events(self) -> list[Event]:
        """The events that announced it so far, those that are over too."""
        return [Event(self._service, view.event.id) for view in self._now().events]

    def cancel(self) -> None:
        """Cancel it, with all its events."""
        self._service.note(TEST, f"cancels order {self._id[:8]}")
        self._service.act(lambda services, tx: services.orders.cancel_order(tx, self._id, by=TEST))

    def _now(self) -> OrderView:
        return self._service.read(lambda reads: reads.views.order(self._id))

    def __repr__(self) -> str:
        order = self._now().order
        return f"<{order.action} of {order.machine_name or order.host}, {order.state}, order {self.id}>"


def _silence(view: EventView, patience: float, service: FleetService) -> str:
    """Return what the guests did instead of approving, in words."""
    event = view.event
    whole = f"event {event.id} ({event.type}) was not approved within {patience:g} s"
    return "; ".join([whole, *(_did(named.name, event.id, service) for named in event.resources)])


def _did(machine: str, event: str, service: FleetService) -> str:
    account = service.account(machine)
    if not account.polls:
        return f"{machine} has never polled: is its endpoint the one that your application asks?"
    seen = "was told of it" if event in account.seen else "was not told of it"
    times = "once" if account.polls == 1 else f"{account.polls} times"
    spoiled = f" ({account.spoiled} spoiled by a fault)" if account.spoiled else ""
    return f"{machine} has polled {times}{spoiled} and {seen}"
