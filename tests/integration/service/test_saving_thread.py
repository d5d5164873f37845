"""Only the worker saves, so the feed, the engine and the clock watch need no lock."""

import asyncio
import threading
from pathlib import Path

import httpx

from forewarn.config import Settings
from forewarn.server.preparation import PreparedServer, drivers_of, prepare_server
from forewarn.server.wiring import wire
from tests.helpers.service.racing import PATIENCE

FLEET = {
    "defaults": {"driver": "simulated"},
    "hosts": {"host-1": {}, "host-2": {}},
    "machines": [{"name": "web-0", "host": "host-1", "address": "127.0.0.1"}],
}
CALLS = (
    ("PUT", "/v1/fleet", FLEET),
    ("POST", "/v1/machines/web-0/redeploy", {}),
    ("POST", "/v1/clock/advance", {"seconds": 3600}),
    ("POST", "/v1/rollouts", {"hosts": "all", "action": "freeze"}),
    ("POST", "/v1/clock/advance", {"seconds": 3600}),
    ("POST", "/v1/holds", {"reason": "not now"}),
)


def test_the_worker_saves_and_publishes_all_changes(tmp_path: Path) -> None:
    settings = Settings(database=f"sqlite:///{tmp_path / 'f.db'}", clock="manual")
    opened = prepare_server(settings, drivers_of(settings))
    saved_on = asyncio.run(_called(opened))
    opened.close()
    assert len(saved_on) >= len(CALLS)
    assert set(saved_on) == {"forewarn-worker"}


async def _called(opened: PreparedServer) -> list[str]:
    """Make calls; return the names of the threads that called the listeners."""
    saved_on: list[str] = []
    parts = wire(opened)
    opened.listeners.add(lambda _: saved_on.append(threading.current_thread().name))
    await parts.guest.start([])
    parts.worker.start(parts.supervisor)
    parts.lanes.start()
    try:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=parts.app), base_url="http://127.0.0.1", timeout=PATIENCE
        ) as client:
            for method, path, body in CALLS:
                answer = await client.request(method, path, json=body)
                assert answer.is_success, answer.text
            assert (await client.get("/v1/machines/web-0")).json()["machine"]["host"] == "host-2"
    finally:
        await parts.guest.stop()
        for each in (parts.reads, parts.lanes, parts.worker):
            await asyncio.to_thread(each.stop)
    return saved_on
