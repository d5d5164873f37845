"""The memory of the console stays flat over a long time on a busy fleet."""

import os
from dataclasses import dataclass
from pathlib import Path

from bench.fleets import make_store, racks
from playwright.sync_api import Page

from forewarn.clock import monotonic
from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.programs.process import Program

VIEWS = ("fleet", "timeline", "history")
MINUTES = float(os.environ.get("FOREWARN_TEST_MINUTES") or 10)
# First caches fill and the engine compiles. Later growth would be a leak.
WARM_UP = 0.25
GROWTH = 1.2
MEBIBYTE = 2**20
# Between two orders, in milliseconds; a day passes in two and a half minutes.
PAUSE = 200
CLOCK = "x600"


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    heap: float  # MiB
    nodes: float
    listeners: float


def test_memory_stays_flat(serve: Serve, visit: Visit) -> None:
    program = serve(store=busy_fleet, clock=CLOCK)
    visitor = visit(program)
    pages = {view: visitor.open(f"/console/{view}") for view in VIEWS}
    busy(pages["fleet"], program, minutes=MINUTES * WARM_UP)
    before = {view: footprint(page) for view, page in pages.items()}
    busy(pages["fleet"], program, minutes=MINUTES * (1 - WARM_UP))
    after = {view: footprint(page) for view, page in pages.items()}
    grown = [
        f"{view}: {before[view]} became {after[view]}" for view in VIEWS if _grew(before[view], after[view])
    ]
    assert not grown, "\n".join(grown)


def busy_fleet(folder: Path) -> None:
    make_store(folder / "forewarn.db", racks(2), enabled=True)


def _grew(before: Footprint, after: Footprint) -> bool:
    return (
        after.heap > before.heap * GROWTH + 1
        or after.nodes > before.nodes * GROWTH + 1000
        or after.listeners > before.listeners * GROWTH + 200
    )


def busy(page: Page, program: Program, *, minutes: float) -> None:
    """Restart one machine after another."""
    names = [machine["name"] for machine in program.all("machines")]
    until, number = monotonic() + minutes * 60, 0
    while monotonic() < until:
        number += 1
        # The server refuses a restart while the last one runs; the next machine follows.
        program.call("POST", f"/v1/machines/{names[number % len(names)]}/restart")
        page.wait_for_timeout(PAUSE)


def footprint(page: Page) -> Footprint:
    """Measure the memory after a garbage collection."""
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable")
    for _ in range(3):
        tools.send("HeapProfiler.collectGarbage")
    found = {each["name"]: each["value"] for each in tools.send("Performance.getMetrics")["metrics"]}
    tools.detach()
    return Footprint(
        heap=found["JSHeapUsedSize"] / MEBIBYTE, nodes=found["Nodes"], listeners=found["JSEventListeners"]
    )
