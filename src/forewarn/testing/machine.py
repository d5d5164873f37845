"""A machine of a test's fleet, and what can be done to it."""

from datetime import timedelta
from typing import Any

from forewarn.core.errors import Conflict
from forewarn.testing.events import Event, Order
from forewarn.testing.faults import FaultName, PutFault, fault_of
from forewarn.testing.service import Service


class Machine:
    """A machine with a guest endpoint of its own.

    Its guest counts as one that listens, whether the application has asked yet or not: what is ordered here
    is announced. The clock stands until it is turned, so nobody is late.
    """

    def __init__(self, service: Service, name: str, endpoint: str) -> None:
        self._service = service
        self.name = name
        self.endpoint = endpoint

    @property
    def state(self) -> str:
        """Running, frozen, restarting, moving, stopped, or gone once it is terminated; in small letters."""
        found = self._service.call("GET", "/v1/machines", params={"limit": 1000})["machines"]
        return next((str(each["state"]) for each in found if each["name"] == self.name), "gone")

    @property
    def host(self) -> str:
        """The host that carries it."""
        return str(self._service.call("GET", f"/v1/machines/{self.name}")["machine"]["host"])

    @property
    def events(self) -> list[Event]:
        """The events listed now that concern it, oldest first."""
        listed = self._service.call("GET", "/v1/events", params={"limit": 1000})["events"]
        found = (self._service.call("GET", f"/v1/events/{each['id']}")["event"] for each in listed)
        return [
            Event(self._service, event["id"])
            for event in found
            if any(told["machine"] == self.name for told in event["notices"])
        ]

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
        return self._announced("restart")

    def redeploy(self) -> Event:
        """Move it to another host, as its user would."""
        return self._announced("redeploy")

    def freeze(self) -> Event:
        """Pause it for seconds, as the platform does."""
        return self._announced("freeze")

    def evict(self) -> Event:
        """Take its host away; for machines declared with priority "spot"."""
        return self._announced("evict")

    def terminate(self) -> Event:
        """Delete it, as its user would."""
        return self._announced("terminate")

    def start(self) -> Order:
        """Start it again after an eviction; nobody is told."""
        return Order(self._service, self._order("start")["order"]["id"])

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

    def _announced(self, action: str) -> Event:
        # A day without a poll ends listening, and the test may have let one pass.
        self._service.listen(self.name)
        answer = self._order(action)
        if answer["event"] is None:
            # It would come later, out of the blue; a test is better told now.
            Order(self._service, answer["order"]["id"]).cancel()
            raise Conflict(f"the {action} of {self.name} cannot be announced now: {answer['reason']}")
        return Event(self._service, answer["event"]["id"])

    def _order(self, action: str) -> dict[str, Any]:
        self._service.note("test", f"orders {action} of {self.name}")
        return self._service.call("POST", f"/v1/machines/{self.name}/{action}")

    def __repr__(self) -> str:
        return f"<machine {self.name} at {self.endpoint}>"
