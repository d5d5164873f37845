"""The private service of a rehearsal: the server's own code, in this process, on a store of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from forewarn.config import GuestSettings, Settings
from forewarn.core.errors import Conflict
from forewarn.core.fleet import FleetSpec
from forewarn.guest.listeners import Listen
from forewarn.rehearsal.scenario import OrderStep
from forewarn.server.wiring import Core, Parts, open_core, wire

LOOPBACK = "127.0.0.1"
OPERATOR = "http://127.0.0.1"
FIRST_ERROR = 400
# As many records as the API gives at once; between two looks at them come far fewer.
PAGE = 1000


def addresses(fleet: FleetSpec) -> Mapping[str, str]:
    """Give each machine an address on loopback, whatever it has: requests reach it through its endpoint."""
    return {machine.name: address(place) for place, machine in enumerate(fleet.machines)}


def address(place: int) -> str:
    """Give an address on loopback to each place in a fleet."""
    return f"127.83.{place // 250}.{place % 250 + 1}"


class PrivateService:
    """Does what operators ask, and shows what they are shown."""

    def __init__(self, core: Core, parts: Parts) -> None:
        transport = httpx.ASGITransport(app=parts.app)
        self._api = httpx.AsyncClient(transport=transport, base_url=OPERATOR)
        self.clock = core.clock
        self.guests = parts.guest.addresses[0]
        self.services = parts.services

    async def order(self, step: OrderStep) -> str:
        """Place an order, and return its id; Conflict says why it cannot be."""
        what, name = ("machines", step.machine) if step.machine else ("hosts", step.host)
        body = {"reason": "rehearsal", **({"action": step.work.value} if step.work else {})}
        answer = await self._call("POST", f"/v1/{what}/{name}/{step.action.value}", json=body)
        return str(answer["order"]["id"])

    async def cancel(self, order: str) -> None:
        """Call an order off; Conflict if it is too late."""
        await self._call("POST", f"/v1/orders/{order}/cancel")

    async def state(self, order: str) -> str:
        """Say how far an order is."""
        return str((await self._call("GET", f"/v1/orders/{order}"))["order"]["state"])

    async def event(self, event: str) -> dict[str, Any]:
        """Show an event, also one that is over."""
        return dict((await self._call("GET", f"/v1/events/{event}"))["event"])

    async def records(self) -> list[dict[str, Any]]:
        """Return the latest records, oldest first."""
        found = await self._call("GET", "/v1/history", params={"limit": PAGE})
        return list(reversed(found["records"]))

    async def close(self) -> None:
        """Ask nothing more."""
        await self._api.aclose()

    async def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        answer = await self._api.request(method, path, **more)
        said = answer.json()
        if answer.status_code >= FIRST_ERROR:
            raise Conflict(said["error"]["message"])
        return dict(said)


@asynccontextmanager
async def private_service(folder: Path, *, fleet: FleetSpec, clock: str) -> AsyncIterator[PrivateService]:
    """Run a service on a folder of its own, on free ports, and stop it."""
    # No limit on requests: a clock that runs faster makes patient guests look hasty.
    settings = Settings(
        database=f"sqlite:///{folder / 'rehearsal.db'}", clock=clock, guest=GuestSettings(rate=0.0)
    )
    core = open_core(settings)
    try:
        core.plane.apply_fleet(_reachable(fleet), by="rehearsal")
        parts = wire(core)
        await parts.guest.start([Listen(host=LOOPBACK, port=0)])
        parts.worker.start()
        service = PrivateService(core, parts)
        try:
            yield service
        finally:
            await service.close()
            await parts.guest.stop()
            # Not on this loop: the worker's last word to the boards needs it.
            await asyncio.to_thread(parts.worker.stop)
    finally:
        core.store.close()


def _reachable(fleet: FleetSpec) -> FleetSpec:
    known = addresses(fleet)
    machines = (
        replace(machine, address=known[machine.name], network="", port=None) for machine in fleet.machines
    )
    return replace(fleet, machines=tuple(machines))
