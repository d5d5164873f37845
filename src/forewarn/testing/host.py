"""A host of a test's fleet, and what can be done to it and to all that it carries."""

from typing import Any, Literal

from forewarn.testing.events import Order
from forewarn.testing.service import Service


class Host:
    """A host; what is ordered here is announced to the machines it carries."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self.name = name

    @property
    def state(self) -> str:
        """Ok, cordoned, degraded or failed; in small letters."""
        return str(self._shown()["state"])

    @property
    def machines(self) -> list[str]:
        """The names of the machines it carries."""
        return list(self._shown()["machines"])

    def maintenance(self, action: Literal["freeze", "reboot", "redeploy"]) -> Order:
        """Maintain it, one update domain of a group at a time."""
        return self._order("maintenance", json={"action": action})

    def degrade(self) -> Order:
        """Say that it is going to fail: its machines move within days."""
        return self._order("degrade")

    def fail(self) -> Order:
        """Let it fail: its machines come back on others, and their events are born Started."""
        return self._order("fail")

    def restore(self) -> Order:
        """Make it sound again."""
        return self._order("restore")

    def _order(self, action: str, **more: Any) -> Order:
        self._service.note("test", f"orders {action} of {self.name}")
        answer = self._service.call("POST", f"/v1/hosts/{self.name}/{action}", **more)
        return Order(self._service, answer["order"]["id"])

    def _shown(self) -> dict[str, Any]:
        return dict(self._service.call("GET", f"/v1/hosts/{self.name}")["host"])

    def __repr__(self) -> str:
        return f"<host {self.name}>"
