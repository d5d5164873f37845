"""Connection tests of hosts in lanes, and how the results are shown."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from forewarn.clock import monotonic
from forewarn.config import Settings
from forewarn.control.driver import Begun, CancelAnswer, Cancelled, Checked, Done, DriverLimits, DriverTask
from forewarn.core.basic_types import HostName
from forewarn.core.model.declaration import FleetSpec, HostSpec
from forewarn.core.model.host import Host
from forewarn.server.preparation import PreparedServer, drivers_of, prepare_server
from forewarn.server.wiring import WiredServer, wire

PATIENCE = 60.0


class RackDriver:
    """Reaches hosts as the test says; a hanging call is released."""

    limits = DriverLimits(timeout=timedelta(seconds=1), at_once=1, reach_every=timedelta(seconds=0.02))

    def __init__(self) -> None:
        self.unreached: dict[str, str | Exception] = {}
        self.hanging: set[str] = set()
        self.go = threading.Event()
        self.asked: list[str] = []

    def begin(self, task: DriverTask) -> Begun:
        return Done()

    def check(self, task: DriverTask) -> Checked:
        return Done()

    def cancel(self, task: DriverTask) -> CancelAnswer:
        return Cancelled()

    def reach(self, host: Host) -> str | None:
        self.asked.append(host.name)
        if host.name in self.hanging:
            self.go.wait()
        why = self.unreached.get(host.name)
        if isinstance(why, Exception):
            raise why
        return why


FLEET = FleetSpec(
    hosts=(
        *(HostSpec(name=HostName(name), driver="rack") for name in ("rack-1", "rack-2", "rack-3", "rack-4")),
        HostSpec(name=HostName("other"), driver="simulated"),
    ),
)


def test_hosts_are_shown_with_whether_they_are_reached(tmp_path: Path) -> None:
    asyncio.run(_reached(tmp_path, RackDriver()))


def _opened(folder: Path, driver: RackDriver) -> PreparedServer:
    settings = Settings(database=f"sqlite:///{folder / 'f.db'}", clock="manual")
    opened = prepare_server(settings, drivers_of(settings))
    opened.drivers.by_name["rack"] = driver
    opened.drivers.names |= {"rack"}
    opened.drivers.reaching = frozenset({"rack"})
    opened.fleet.apply_fleet(opened.transact, FLEET, by="test")
    return opened


async def _reached(folder: Path, driver: RackDriver) -> None:
    opened = _opened(folder, driver)
    parts = wire(opened)
    driver.unreached = {"rack-2": "no route to rack-2", "rack-3": OSError("torn")}
    driver.hanging = {"rack-4"}
    await parts.guest.start([])
    parts.worker.start(parts.supervisor)
    try:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=parts.app), base_url="http://127.0.0.1", timeout=PATIENCE
        ) as client:
            parts.host_probes.load()
            await _shown_as(
                parts,
                client,
                {
                    "rack-1": (True, None),
                    "rack-2": (False, "no route to rack-2"),
                    "rack-3": (False, "driver rack broke: torn"),
                    "rack-4": (False, "driver rack has not answered reach within 1 s"),
                    "other": (None, None),
                },
            )
            await _until(parts, lambda: _assert_unreachable_is_shown(client))
            driver.unreached = {"rack-1": "now this one"}
            await _shown_as(parts, client, {"rack-1": (False, "now this one"), "rack-2": (True, None)})
            assert driver.asked.count("rack-4") == 1  # until the first answer
            driver.go.set()
            await _shown_as(parts, client, {"rack-4": (True, None)})
            await _until(parts, lambda: _assert_reachable_is_shown(client))
    finally:
        driver.go.set()
        await parts.guest.stop()
        await asyncio.to_thread(parts.reads.stop)
        await asyncio.to_thread(parts.lanes.stop)
        await asyncio.to_thread(parts.worker.stop)
        opened.store.close()


async def _shown_as(
    parts: WiredServer, client: httpx.AsyncClient, expected: dict[str, tuple[bool | None, str | None]]
) -> None:
    """Wait until hosts are shown like this."""

    async def look() -> None:
        hosts = (await client.get("/v1/hosts")).json()["hosts"]
        assert {host["name"]: _shown(host) for host in hosts if host["name"] in expected} == expected

    await _until(parts, look)


async def _until(parts: WiredServer, look: Callable[[], Awaitable[None]]) -> None:
    """Run connection tests each second, like the server, until a look succeeds.

    On a busy machine an answer may come too late, which counts, and records are saved later than shown.
    """
    deadline = monotonic() + PATIENCE
    while True:
        await asyncio.to_thread(parts.host_probes.ask)
        try:
            return await look()
        except AssertionError:
            if monotonic() > deadline:
                raise
        await asyncio.sleep(0.02)


def _shown(host: dict[str, Any]) -> tuple[bool | None, str | None]:
    return host["reachable"], host["unreachable_because"]


async def _assert_unreachable_is_shown(client: httpx.AsyncClient) -> None:
    """Check the host and the gauges."""
    one = (await client.get("/v1/hosts/rack-2")).json()["host"]
    assert _shown(one) == (False, "no route to rack-2")
    assert one["reached_at"] is None
    assert one["unreachable_since"] is not None
    gauges = (await client.get("/metrics")).text
    assert 'forewarn_host_reachable{host="rack-1"} 1.0' in gauges
    assert 'forewarn_host_reachable{host="rack-2"} 0.0' in gauges
    assert 'host="other"' not in gauges


async def _assert_reachable_is_shown(client: httpx.AsyncClient) -> None:
    """Check the host, the counters, and the records by which clients update."""
    one = (await client.get("/v1/hosts/rack-4")).json()["host"]
    assert (one["reached_at"] is not None, one["unreachable_since"]) == (True, None)
    counted = (await client.get("/metrics")).text
    for answer in ("reached", "unreached", "none"):
        assert f'forewarn_driver_calls_total{{answer="{answer}",driver="rack",verb="reach"}}' in counted
    # Each change has a record, by which clients update.
    records = (await client.get("/v1/history?host=rack-2")).json()["records"]
    kinds = [each["kind"] for each in records if "reach" in each["kind"]]
    assert (kinds[0], kinds[-1]) == ("host-reachable", "host-unreachable")
