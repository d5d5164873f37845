"""How start, memory, an order, a tick and a poll grow with the fleet: from a thousand machines to a million.

Orders and what becomes of them are measured on both databases. It takes some minutes and a few gigabytes; run
it alone. It draws docs/contributing/scale.svg and writes the table of docs/contributing/scale.md:
`make bench-scale`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench import fleets, guests, load
from bench.computer import this_computer
from bench.filled_store import fill
from bench.plot import Curve, draw
from bench.postgresql import new_database, postgresql, server_processes
from bench.processes import ProcessorTime, cpu_seconds, resident
from bench.report import fill_in
from bench.service import FOREWARN, Serving, serving

SIZES = (1_000, 10_000, 100_000, 1_000_000)
ORDERS = 40
POLLING, WARM_UP = 3.0, 0.5  # seconds
POLLERS = 32
HOUR = 3600
MIB = 1024 * 1024

CURVES = (
    Curve(key="start_cpu", title="start from the store", unit="s of CPU"),
    Curve(key="memory", title="memory of the server", unit="MiB"),
    Curve(key="poll", title="a poll", unit="µs of CPU"),
    Curve(key="order", title="an order, median", unit="ms"),
    Curve(key="due_order", title="an order, carried out", unit="ms of CPU"),
    Curve(key="postgresql_order", title="an order on PostgreSQL", unit="ms"),
    Curve(key="postgresql_due_order", title="carried out on PostgreSQL", unit="ms of CPU"),
)

Figures = dict[str, float]


def main() -> int:
    """Measure all sizes, draw, write."""
    options = _options(sys.argv[1:])
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[int, Figures] = {}
    for machines in options.sizes:
        with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as folder:
            found[machines] = measure(Path(folder), machines)
            print(f"{machines:,} machines: {json.dumps(found[machines])}", flush=True)
    if options.docs is not None:
        (options.docs / "scale.svg").write_text(draw(found, CURVES), encoding="utf-8")
        _write_table(options.docs / "scale.md", found)
    return 0


def measure(folder: Path, machines: int) -> Figures:
    """Measure a fleet of so many machines."""
    database = folder / "filled.db"
    fill(database, machines // fleets.RACK, say=lambda line: print(line, flush=True))
    with serving(folder, "--clock", "manual", database=database, settings=fleets.NO_LIMITS) as server:
        start = cpu_seconds([server.pid])
        memory = resident(server.pid)
        order, carried_out = _order(server), _carry_out(server)
        poll = _poll(server, machines)
    return _on_postgresql(folder, database) | {
        "start": round(server.started_in, 2),
        "start_cpu": round(start, 2),
        "memory": round(memory / MIB, 1),
        "order": round(order * 1000, 2),
        "due_order": round(carried_out * 1000, 2),
        "poll": round(poll * 1_000_000, 2),
    }


def _order(server: Serving) -> float:
    """Restart machines one after the other; returns the seconds that one takes, from request to answer."""
    took = []
    for number in range(ORDERS):
        began = time.perf_counter()
        server.operator.order(f"vm-{number % 10}-{number}", "restart")
        took.append(time.perf_counter() - began)
    return median(took)


def _carry_out(server: Serving, *database: int) -> float:
    """Let those orders be carried out; returns the seconds of CPU for one, also of a database's processes."""
    used = ProcessorTime([server.pid, *database])
    server.operator.post("/v1/clock/advance", {"seconds": HOUR})
    return used.since() / ORDERS


def _on_postgresql(folder: Path, database: Path) -> Figures:
    """Measure orders on a copy of the store, made as its users would."""
    with postgresql(folder) as postgres:
        url = new_database(postgres, "filled")
        subprocess.run((*FOREWARN, "copy", str(database), url), check=True, stdout=subprocess.DEVNULL)
        with serving(folder, "--clock", "manual", database=url, settings=fleets.NO_LIMITS) as server:
            order = _order(server)
            carried_out = _carry_out(server, *server_processes(folder))
    return {
        "postgresql_order": round(order * 1000, 2),
        "postgresql_due_order": round(carried_out * 1000, 2),
    }


def _poll(server: Serving, machines: int) -> float:
    """Poll from machines all over the fleet; returns the seconds of CPU that a poll takes."""
    apart = machines // POLLERS
    callers = [guests.call(server.port, source=fleets.address(number * apart)) for number in range(POLLERS)]
    # Other racks' documents have other sizes while their events are listed: all polled here have none.
    request = guests.poll(server.port)
    measured = load.measure(callers, request, pids=[server.pid], warm_up=WARM_UP, seconds=POLLING)
    guests.hang_up(callers)
    return 1 / float(measured["per_cpu_second"])


def _write_table(page: Path, found: dict[int, Figures]) -> None:
    """Replace the table between the page's marks."""
    head = f"| machines | {' | '.join(f'{curve.title} ({curve.unit})' for curve in CURVES)} |"
    rule = "|---" * (len(CURVES) + 1) + "|"
    lines = [
        f"| {machines:,} | {' | '.join(f'{figures[curve.key]:,g}' for curve in CURVES)} |"
        for machines, figures in found.items()
    ]
    table = "\n".join([f"Measured on: {this_computer()}.", "", head, rule, *lines])
    fill_in(page, table)


def _options(arguments: list[str]) -> Any:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--sizes", type=_sizes, default=list(SIZES), metavar="MACHINES,…")
    parser.add_argument(
        "--docs", type=Path, metavar="FOLDER", help="draw scale.svg there, and fill in scale.md"
    )
    return parser.parse_args(arguments)


def _sizes(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
