"""A fleet of 100,000 machines: memory, start, and the time from an order to the poll that shows it."""

import json
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench import fleets, guests, ticks
from bench.processes import Failed, resident
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.workplace import Workplace

RACKS = 1000
MACHINES = RACKS * fleets.RACK
STARTS = 2
ORDERS = 200
KIB = 1024
MOST_KIB = 2.0
LONGEST_START = 10.0
LONGEST_MAKING = 60.0
LONGEST_DELAY = 50.0  # milliseconds

Starts = list[dict[str, float]]


def measure(work: Workplace) -> Findings:
    """Create two fleets that differ only in size, and compare the large one with the small one."""
    small, large = work.folder / "small.db", work.folder / "large.db"
    fleets.make_store(small, fleets.racks(1), enabled=True)
    making = _make(work, large)
    empty = _empty(work)
    starts, memory, delay = _serve(work, large, empty=empty)
    ticked = ticks.compare(work, small=small, large=large)
    return Findings(
        rows=[
            *(_memory_row(memory), _start_row(starts), _making_row(making)),
            *(_delay_row(delay), *ticks.rows(ticked, machines=MACHINES)),
        ],
        raw={
            "machines": MACHINES,
            "made_in_seconds": making,
            "starts": starts,
            "memory": memory,
            "order_to_poll": delay,
            "ticks": ticked,
        },
    )


def _make(work: Workplace, database: Path) -> float:
    work.log(f"creating a store of {MACHINES:,} machines")
    spec = fleets.racks(RACKS)
    began = time.perf_counter()
    fleets.make_store(database, spec, enabled=True)
    seconds = time.perf_counter() - began
    work.log(f"created in {seconds:.1f} s")
    return round(seconds, 2)


def _empty(work: Workplace) -> int:
    """Return the memory of a server without machines."""
    database = work.folder / "empty.db"
    fleets.make_store(database, fleets.racks(0), enabled=False)
    with serving(work.folder, database=database) as server:
        return resident(server.pid)


def _serve(work: Workplace, database: Path, *, empty: int) -> tuple[Starts, dict[str, int], dict[str, Any]]:
    starts: Starts = []
    for _ in range(STARTS - 1):
        with serving(work.folder, database=database) as server:
            starts.append(_start(server))
    with serving(work.folder, database=database) as server:
        starts.append(_start(server))
        shown = ", ".join(f"{each['healthy_seconds']:.1f} s" for each in starts)
        work.log(f"started in {shown}; next: every machine polls once")
        memory = {"empty": empty, "started": resident(server.pid)}
        began = time.perf_counter()
        guests.poll_once(server.port, [fleets.address(number) for number in range(MACHINES)])
        memory["polled"] = resident(server.pid)
        work.log(
            f"{MACHINES:,} machines polled in {time.perf_counter() - began:.1f} s; next: {ORDERS} orders"
        )
        return starts, memory, _order_to_poll(server)


def _start(server: Serving) -> dict[str, float]:
    """Return the time of the start, and of the first poll after it."""
    began = time.perf_counter()
    guests.poll_once(server.port, [fleets.address(0)])
    waited = time.perf_counter() - began
    return {"healthy_seconds": round(server.started_in, 2), "first_poll_after_seconds": round(waited, 3)}


def _order_to_poll(server: Serving) -> dict[str, Any]:
    """Alternate orders and polls. The first poll after the 202 should show the event."""
    ordering, showing = [], []
    request = guests.poll(server.port)
    for number in range(ORDERS):
        machine = number * (MACHINES // ORDERS)
        rack, place = divmod(machine, fleets.RACK)
        guest = guests.call(server.port, source=fleets.address(machine))
        guests.ask(guest, request)
        began = time.perf_counter()
        order = server.operator.order(f"vm-{rack}-{place}", "restart")
        placed = time.perf_counter()
        while not _shows_event(guests.ask(guest, request)):
            if time.perf_counter() - placed > 10:
                raise Failed("no poll showed the order within 10 s")
        showing.append(round((time.perf_counter() - placed) * 1000, 3))
        ordering.append(round((placed - began) * 1000, 3))
        server.operator.post(f"/v1/orders/{order}/cancel")
        guest.close()
    return {"order_ms": ordering, "shown_after_ms": showing}


def _shows_event(response: bytes) -> bool:
    return bool(json.loads(response.partition(guests.END_OF_HEAD)[2])["Events"])


def _memory_row(memory: dict[str, int]) -> Row:
    started, polled = ((memory[when] - memory["empty"]) / MACHINES / KIB for when in ("started", "polled"))
    return Row(
        what=f"server memory per machine, {MACHINES:,} machines",
        measured=f"{polled:.2f} KiB",
        value=round(polled, 3),
        target=f"< {MOST_KIB:.0f} KiB",
        met=polled < MOST_KIB,
        note=f"resident memory minus that of a server without machines ({memory['empty'] / KIB**2:.0f} MiB), "
        f"after every machine has polled; {started:.2f} KiB before the first poll",
    )


def _start_row(starts: Starts) -> Row:
    seconds = median(each["healthy_seconds"] for each in starts)
    first_poll = max(each["first_poll_after_seconds"] for each in starts)
    return Row(
        what=f"start from a store of {MACHINES:,} machines until /healthz answers",
        measured=f"{seconds:.1f} s",
        value=seconds,
        target=f"< {LONGEST_START:.0f} s",
        met=seconds < LONGEST_START,
        note=f"the first poll after that took {first_poll:.2f} s",
    )


def _making_row(seconds: float) -> Row:
    return Row(
        what=f"apply a fleet of {MACHINES:,} machines to a new store",
        measured=f"{seconds:.1f} s",
        value=seconds,
        target=f"< {LONGEST_MAKING:.0f} s",
        met=seconds < LONGEST_MAKING,
        note="includes enabling all its groups; two transactions",
    )


def _delay_row(delay: dict[str, Any]) -> Row:
    shown = quantiles(delay["shown_after_ms"], n=100, method="inclusive")
    ordered = quantiles(delay["order_ms"], n=100, method="inclusive")
    return Row(
        what="from an order's 202 to a poll that shows it, same server, p99",
        measured=f"{shown[98]:.2f} ms",
        value=round(shown[98], 3),
        target=f"< {LONGEST_DELAY:.0f} ms",
        met=shown[98] < LONGEST_DELAY,
        note=f"p50 {shown[49]:.2f} ms; {ORDERS} orders in a fleet of {MACHINES:,} machines; "
        f"the orders took p50 {ordered[49]:.1f} ms, p99 {ordered[98]:.1f} ms",
    )
