"""A private service: the server's own code in this process, with its own store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from forewarn.api.services import Services
from forewarn.client.async_calls import AsyncOperatorClient
from forewarn.config import GuestSettings, Settings
from forewarn.core.basic_types import SIMULATED, MachineId
from forewarn.core.model.declaration import FleetDefaults, FleetSpec
from forewarn.guest.server import GuestServer
from forewarn.server.preparation import drivers_of, prepare_server
from forewarn.server.wiring import WiredServer, wire

OPERATOR = "http://127.0.0.1"


class PrivateService:
    """A service whose machines get their endpoints one by one."""

    def __init__(self, parts: WiredServer) -> None:
        self.services: Services = parts.services
        self.guest: GuestServer = parts.guest
        transport = httpx.ASGITransport(app=parts.app)
        self.client = AsyncOperatorClient(httpx.AsyncClient(transport=transport, base_url=OPERATOR))

    async def machine_id(self, name: str) -> MachineId:
        """Return the id of a machine."""
        view = await self.services.read(lambda reads: reads.views.machine(name))
        return view.machine.id

    async def open_endpoint(self, name: str, *, port: int = 0) -> str:
        """Open an endpoint for a machine, by default on a free port; return its URL."""
        return await self.guest.listeners.open_listener(await self.machine_id(name), port, name=name)


@asynccontextmanager
async def private_service(
    folder: Path, *, fleet: FleetSpec, clock: str, preview: bool = False
) -> AsyncIterator[PrivateService]:
    """Run a service in a folder, on free ports."""
    # No rate limit: on a fast clock, the polls of a guest are close together.
    settings = Settings(
        database=f"sqlite:///{folder / 'rehearsal.db'}",
        clock=clock,
        guest=GuestSettings(rate=0.0, preview=preview),
    )
    opened = prepare_server(settings, drivers_of(settings))
    try:
        opened.fleet.apply_fleet(opened.transact, _for_rehearsals(fleet), by="rehearsal")
        parts = wire(opened)
        await parts.guest.start([])
        parts.worker.start(parts.supervisor)
        service = PrivateService(parts)
        try:
            yield service
        finally:
            await service.client.aclose()
            await parts.guest.stop()
            await asyncio.to_thread(parts.reads.stop)
            await asyncio.to_thread(parts.lanes.stop)
            # Not on this loop: the worker needs it for its last publication.
            await asyncio.to_thread(parts.worker.stop)
    finally:
        opened.close()


def _for_rehearsals(fleet: FleetSpec) -> FleetSpec:
    """Mark all projects for rehearsals, and remove the addresses of machines, which get their own endpoints.

    All drivers become `simulated`, so that nothing really happens to the fleet.
    """
    machines = (replace(machine, address=None, network="", port=None) for machine in fleet.machines)
    projects = (replace(project, rehearsal=True) for project in fleet.projects)
    return replace(
        fleet,
        defaults=FleetDefaults(driver=SIMULATED),
        hosts=tuple(replace(host, driver=None) for host in fleet.hosts),
        machines=tuple(machines),
        projects=tuple(projects),
    )
