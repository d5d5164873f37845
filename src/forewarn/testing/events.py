"""Orders and events of a test's fleet: each property is asked of the service when it is read."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from forewarn.clock import monotonic
from forewarn.testing.service import Service
from forewarn.wire.operator import read_time

# Real seconds. A guest that waits for news has it within milliseconds, one that polls within one or two.
PATIENCE = 5.0
LOOK_EVERY = 0.01


class Event:
    """What guests are told, as it is now."""

    def __init__(self, service: Service, id_: str) -> None:
        self._service = service
        self.id = id_

    @property
    def status(self) -> str:
        """Scheduled, then Started, then Over: carried out or called off, and listed no more."""
        shown = self._shown()
        return "Over" if shown["ended_at"] else str(shown["status"])

    @property
    def type(self) -> str:
        """Freeze, Reboot, Redeploy, Preempt or Terminate."""
        return str(self._shown()["type"])

    @property
    def resources(self) -> list[str]:
        """The machines it names, as guests read them."""
        return list(self._shown()["resources"])

    @property
    def not_before(self) -> datetime:
        """When it may start unapproved."""
        return read_time(self._shown()["not_before"])

    @property
    def duration(self) -> timedelta | None:
        """How long the impact is said to be; None if that is not known."""
        seconds = self._shown()["duration_seconds"]
        return None if seconds < 0 else timedelta(seconds=seconds)

    @property
    def approved(self) -> bool:
        """Whether it was let start early."""
        return bool(self._shown()["approved"])

    @property
    def approved_by(self) -> list[str]:
        """Who let it: names of machines, or `api` for the test itself."""
        return [str(each["by"]) for each in self._shown()["approvals"]]

    @property
    def why(self) -> str | None:
        """Why it is over, if it is."""
        why = self._shown()["why"]
        return None if why is None else str(why)

    @property
    def order(self) -> "Order":
        """What it tells of."""
        return Order(self._service, self._shown()["order"])

    def approve(self) -> None:
        """Let it start now, as a person would."""
        self._service.call("POST", f"/v1/events/{self.id}/approve")
        self._service.note("test", f"approves event {self.id[:8]}")

    def cancel(self) -> None:
        """Call it off, with its order."""
        self._service.call("POST", f"/v1/events/{self.id}/cancel")
        self._service.note("test", f"cancels event {self.id[:8]}")

    def wait_for_approval(self, timeout: float = PATIENCE) -> None:
        """Wait for a guest that runs elsewhere, for some real seconds; TimeoutError says what it did."""
        self._service.do(self._approval(timeout))

    async def approval(self, timeout: float = PATIENCE) -> None:  # noqa: ASYNC109 - what it raises says more
        """Do the same where the guest runs on this test's own event loop."""
        await asyncio.wrap_future(self._service.begin(self._approval(timeout)))

    async def _approval(self, patience: float) -> None:
        deadline = monotonic() + patience
        while not (shown := await self._showing())["approved"]:
            if monotonic() > deadline:
                raise TimeoutError(_silence(shown, patience, self._service))
            await asyncio.sleep(LOOK_EVERY)

    def _shown(self) -> dict[str, Any]:
        return self._service.do(self._showing())

    async def _showing(self) -> dict[str, Any]:
        return dict((await self._service.calling("GET", f"/v1/events/{self.id}"))["event"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        shown = self._shown()
        return f"<{shown['type']} of {', '.join(shown['resources'])}, {self.status}, event {self.id}>"


class Order:
    """What is going to be done to a machine or a host, as far as it is now."""

    def __init__(self, service: Service, id_: str) -> None:
        self._service = service
        self.id = id_

    @property
    def state(self) -> str:
        """Queued, announced, started, done, failed or cancelled; in small letters, as the API has it."""
        return str(self._shown()["order"]["state"])

    @property
    def waiting(self) -> list[str]:
        """What it waits for."""
        return [f"{each['what']}: {each['reason']}" for each in self._shown()["order"]["waiting"]]

    @property
    def events(self) -> list[Event]:
        """The events that tell of it so far, those that are over too."""
        return [Event(self._service, each["id"]) for each in self._shown()["events"]]

    def cancel(self) -> None:
        """Call it off, with all its events."""
        self._service.call("POST", f"/v1/orders/{self.id}/cancel")
        self._service.note("test", f"cancels order {self.id[:8]}")

    def _shown(self) -> dict[str, Any]:
        return self._service.call("GET", f"/v1/orders/{self.id}")

    def __repr__(self) -> str:
        order = self._shown()["order"]
        return (
            f"<{order['action']} of {order['machine'] or order['host']}, {order['state']}, order {self.id}>"
        )


def _silence(shown: Mapping[str, Any], patience: float, service: Service) -> str:
    """Say what the guests did instead of approving."""
    whole = f"event {shown['id']} ({shown['type']}) was not approved within {patience:g} s"
    return "; ".join([whole, *(_did(each["machine"], shown["id"], service) for each in shown["notices"])])


def _did(machine: str, event: str, service: Service) -> str:
    account = service.account(machine)
    if not account.polls:
        return f"{machine} has never polled: is its endpoint what your application asks?"
    told = "was told of it" if event in account.seen else "was not told of it yet"
    spoiled = f", {account.spoiled} of them spoiled," if account.spoiled else ""
    return f"{machine} has polled {account.polls} times{spoiled} and {told}"
