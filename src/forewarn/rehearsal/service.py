"""The private service of a rehearsal: the server's own code, in this process, on a store of its own."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from forewarn.config import GuestSettings, Settings
from forewarn.control.ledger import Ledger
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.rehearsal.faults import Fault
from forewarn.rehearsal.operator import Operator
from forewarn.rehearsal.stage import LOOK_EVERY
from forewarn.server.wiring import Core, Parts, open_core, wire

OPERATOR = "http://127.0.0.1"


class PrivateService(Operator):
    """A service that nobody else uses, and that ends with the rehearsal."""

    look_every = LOOK_EVERY
    outlives = False

    def __init__(self, core: Core, parts: Parts) -> None:
        transport = httpx.ASGITransport(app=parts.app)
        api = httpx.AsyncClient(transport=transport, base_url=OPERATOR)
        super().__init__(api, terms={"reason": "rehearsal"})
        self.clock = core.clock
        self.services = parts.services
        self.ledger = Ledger()
        self._guest = parts.guest
        self._play = parts.guest.play(self.ledger)

    async def open_door(self, name: str, *, port: int = 0) -> str:
        """Open an endpoint for a machine, on a free port if none is given; returns its URL."""
        view = await self.services.run(lambda: self.services.views.machine(name, project=None))
        self._play.cast(view.machine.id, name)
        return await self._guest.open_door(view.machine.id, name=name, port=port)

    async def spoil(self, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults, and no others."""
        self._play.meet(faults)

    def begin(self) -> None:
        """Do nothing: its clock runs by itself."""

    async def keep_up(self) -> None:
        """Do nothing: the guest endpoint writes down what guests do."""


@asynccontextmanager
async def private_service(folder: Path, *, fleet: FleetSpec, clock: str) -> AsyncIterator[PrivateService]:
    """Run a service on a folder of its own, on free ports, and stop it."""
    # No limit on requests: a clock that runs faster makes patient guests look hasty.
    settings = Settings(
        database=f"sqlite:///{folder / 'rehearsal.db'}", clock=clock, guest=GuestSettings(rate=0.0)
    )
    core = open_core(settings)
    try:
        core.plane.apply_fleet(_without_addresses(fleet), by="rehearsal")
        parts = wire(core)
        await parts.guest.start([])
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


def _without_addresses(fleet: FleetSpec) -> FleetSpec:
    """Let machines be reached by the doors that are opened for them, and in no other way."""
    machines = (replace(machine, address=None, network="", port=None) for machine in fleet.machines)
    return replace(fleet, machines=tuple(machines))
