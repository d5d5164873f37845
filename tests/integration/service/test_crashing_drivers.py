"""A server with a crashing driver: steps are unknown for a moment, and nothing is done twice."""

import asyncio
from importlib.metadata import EntryPoint
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from forewarn.clock import monotonic
from forewarn.config import Settings
from forewarn.core.basic_types import HostName, MachineName
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, HostSpec, MachineSpec
from forewarn.drivers import registry
from forewarn.drivers.registry import ENTRY_POINTS, Drivers
from forewarn.server.preparation import prepare_server
from forewarn.server.wiring import wire
from tests.helpers.service.crashing_driver import begun, calls, crash_in

PATIENCE = 60.0
CRASHING = EntryPoint("crashing", "tests.helpers.service.crashing_driver:make", ENTRY_POINTS)
FLEET = FleetSpec(
    defaults=FleetDefaults(driver="crashing"),
    hosts=(HostSpec(name=HostName("host-1")),),
    machines=(MachineSpec(name=MachineName("web-0"), host=HostName("host-1")),),
)


def test_a_step_whose_driver_crashes_is_checked_and_begun_once(tmp_path: Path) -> None:
    asked = asyncio.run(_restarted(tmp_path))
    # After each crash `check` comes first, and `begin` follows only after NotBegun.
    assert asked == ["begin", "check", "begin", "begun", "check"]
    assert len(begun(tmp_path)) == 1


async def _restarted(folder: Path) -> list[str]:
    seconds = count(step=1000.0)  # each process seems to live long, so that the next one starts immediately
    settings = Settings(
        database=f"sqlite:///{folder / 'f.db'}", clock="manual", drivers={"crashing": {"folder": str(folder)}}
    )
    found = [*registry.entry_points(group=ENTRY_POINTS), CRASHING]
    opened = prepare_server(settings, Drivers(settings, monotonic=lambda: next(seconds), found=found))
    opened.fleet.apply_fleet(opened.transact, FLEET, by="test")
    parts = wire(opened)
    await parts.guest.start([])
    parts.worker.start(parts.supervisor)
    try:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=parts.app), base_url="http://127.0.0.1", timeout=PATIENCE
        ) as client:
            crash_in(folder, "begin")
            crash_in(folder, "begun", "kill")
            answer = await client.post("/v1/machines/web-0/restart", json={"now": True})
            assert answer.status_code == 202, answer.text
            await _done(client, answer.json()["order"]["id"])
            metrics = (await client.get("/metrics")).text
            assert 'forewarn_driver_crashes_total{driver="crashing"} 2.0' in metrics
    finally:
        await parts.guest.stop()
        await asyncio.to_thread(parts.reads.stop)
        await asyncio.to_thread(parts.lanes.stop)
        await asyncio.to_thread(parts.worker.stop)
        opened.close()
    return [each for each in calls(folder) if each not in ("reach", "ended")]


async def _done(client: httpx.AsyncClient, order: str) -> None:
    deadline = monotonic() + PATIENCE
    while True:
        shown: dict[str, Any] = (await client.get(f"/v1/orders/{order}")).json()["order"]
        if shown["state"] == "done":
            return
        assert shown["state"] == "started", shown
        assert monotonic() < deadline, shown
        await asyncio.sleep(0.05)
