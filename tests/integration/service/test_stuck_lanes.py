"""While every driver hangs, orders and approvals are answered as usual: no caller waits for a driver."""

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from forewarn.config import Settings
from forewarn.control.driver import Begun, CancelAnswer, Cancelled, Checked, Done, DriverLimits, DriverTask
from forewarn.core.basic_types import HostName, MachineName
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, HostSpec, MachineSpec
from forewarn.drivers.registry import DriversByName
from forewarn.server.preparation import drivers_of, prepare_server
from forewarn.server.wiring import wire

PATIENCE = 60.0
HOSTS = 3


class StuckDriver:
    """Answers only when it is released."""

    limits = DriverLimits(timeout=timedelta(minutes=10), at_once=1)

    def __init__(self) -> None:
        self.go = threading.Event()
        self.called = threading.Semaphore(0)

    def begin(self, task: DriverTask) -> Begun:
        self.called.release()
        self.go.wait(PATIENCE)
        return Done()

    def check(self, task: DriverTask) -> Checked:
        return self.begin(task)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        return Cancelled()


FLEET = FleetSpec(
    defaults=FleetDefaults(driver="stuck"),
    hosts=tuple(HostSpec(name=HostName(f"host-{each}")) for each in range(HOSTS)),
    machines=tuple(
        MachineSpec(name=MachineName(f"m-{each}"), host=HostName(f"host-{each % HOSTS}"))
        for each in range(2 * HOSTS)
    ),
)


def test_an_order_is_answered_while_every_lane_is_stuck(tmp_path: Path) -> None:
    asyncio.run(_ordered_while_stuck(tmp_path, StuckDriver()))


async def _ordered_while_stuck(folder: Path, driver: StuckDriver) -> None:
    settings = Settings(database=f"sqlite:///{folder / 'f.db'}", clock="manual")
    opened = prepare_server(settings, drivers_of(settings))
    assert isinstance(opened.drivers.by_name, DriversByName)
    opened.drivers.by_name["stuck"] = driver
    opened.drivers.names |= {"stuck"}
    opened.fleet.apply_fleet(opened.transact, FLEET, by="test")
    parts = wire(opened)
    await parts.guest.start([])
    parts.worker.start(parts.supervisor)
    try:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=parts.app), base_url="http://127.0.0.1", timeout=PATIENCE
        ) as client:

            async def restart(machine: int) -> dict[str, Any]:
                answer = await client.post(f"/v1/machines/m-{machine}/restart", json={"now": True})
                assert answer.status_code == 202, answer.text
                return dict(answer.json()["order"])

            for host in range(HOSTS):
                await restart(host)
            for _ in range(HOSTS):
                assert await asyncio.to_thread(driver.called.acquire, timeout=PATIENCE)
            assert parts.lanes.counts().running == {"stuck": HOSTS}
            placed = await restart(HOSTS)
            shown = (await client.get(f"/v1/orders/{placed['id']}")).json()["order"]
            assert shown["state"] == "started"
            assert not driver.go.is_set()
    finally:
        driver.go.set()
        await parts.guest.stop()
        await asyncio.to_thread(parts.reads.stop)
        await asyncio.to_thread(parts.lanes.stop)
        await asyncio.to_thread(parts.worker.stop)
        opened.store.close()
