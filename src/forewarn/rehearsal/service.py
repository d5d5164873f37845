"""The private service of a rehearsal: the server's own code, in this process, on a store of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from forewarn.config import GuestSettings, Settings
from forewarn.core.fleet import FleetSpec
from forewarn.guest.listeners import Listen
from forewarn.rehearsal.operator import Operator
from forewarn.rehearsal.stage import LOOK_EVERY
from forewarn.server.wiring import Core, Parts, open_core, wire

LOOPBACK = "127.0.0.1"
OPERATOR = "http://127.0.0.1"


def addresses(fleet: FleetSpec) -> Mapping[str, str]:
    """Give each machine an address on loopback, whatever it has: requests reach it through its endpoint."""
    return {machine.name: address(place) for place, machine in enumerate(fleet.machines)}


def address(place: int) -> str:
    """Give an address on loopback to each place in a fleet."""
    return f"127.83.{place // 250}.{place % 250 + 1}"


class PrivateService(Operator):
    """A service that nobody else uses, and that ends with the rehearsal."""

    look_every = LOOK_EVERY
    outlives = False

    def __init__(self, core: Core, parts: Parts) -> None:
        transport = httpx.ASGITransport(app=parts.app)
        api = httpx.AsyncClient(transport=transport, base_url=OPERATOR)
        super().__init__(api, terms={"reason": "rehearsal"})
        self.clock = core.clock
        self.guests = parts.guest.addresses[0]
        self.services = parts.services

    def begin(self) -> None:
        """Do nothing: its clock runs by itself."""

    async def keep_up(self) -> None:
        """Do nothing: the endpoints write down what guests do."""


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
