"""Measure how start, memory, orders and polls grow with the fleet, from a thousand machines to a million.

Orders and their execution are measured on SQLite and PostgreSQL. The benchmark needs some minutes, a few
gigabytes and an idle computer. `make bench-scale` draws scale.svg and writes the table of scale.md, both in
docs/contributing.
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
    Curve(key="start_cpu", title="start", unit="s of CPU"),
    Curve(key="memory", title="server memory", unit="MiB"),
    Curve(key="poll", title="poll", unit="µs of CPU"),
    Curve(key="order", title="order, median", unit="ms"),
    Curve(key="due_order", title="order execution", unit="ms of CPU"),
    Curve(key="postgresql_order", title="order on PostgreSQL", unit="ms"),
    Curve(key="postgresql_due_order", title="execution on PostgreSQL", unit="ms of CPU"),
)

Figures = dict[str, float]


def main() -> int:
    """Measure all sizes, draw the charts, and write the table."""
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
    """Measure a fleet of a given size."""
    database = folder / "filled.db"
    fill(database, machines // fleets.RACK, log=lambda line: print(line, flush=True))
    with serving(folder, "--clock", "manual", database=database, settings=fleets.NO_LIMITS) as server:
        start = cpu_seconds([server.pid])
        memory = resident(server.pid)
        order, executed = _order(server), _execute(server)
        poll = _poll(server, machines)
    return _on_postgresql(folder, database) | {
        "start": round(server.started_in, 2),
        "start_cpu": round(start, 2),
        "memory": round(memory / MIB, 1),
        "order": round(order * 1000, 2),
        "due_order": round(executed * 1000, 2),
        "poll": round(poll * 1_000_000, 2),
    }


def _order(server: Serving) -> float:
    """Restart machines one after the other; return the median seconds from request to answer."""
    took = []
    for number in range(ORDERS):
        began = time.perf_counter()
        server.operator.order(f"vm-{number % 10}-{number}", "restart")
        took.append(time.perf_counter() - began)
    return median(took)


def _execute(server: Serving, *database: int) -> float:
    """Let the server execute the orders; return the CPU seconds per order, including the database's."""
    used = ProcessorTime([server.pid, *database])
    server.operator.post("/v1/clock/advance", {"seconds": HOUR})
    return used.since() / ORDERS


def _on_postgresql(folder: Path, database: Path) -> Figures:
    """Measure orders on a copy of the store, made with `forewarn copy`."""
    with postgresql(folder) as postgres:
        url = new_database(postgres, "filled")
        subprocess.run((*FOREWARN, "copy", str(database), url), check=True, stdout=subprocess.DEVNULL)
        with serving(folder, "--clock", "manual", database=url, settings=fleets.NO_LIMITS) as server:
            order = _order(server)
            executed = _execute(server, *server_processes(folder))
    return {
        "postgresql_order": round(order * 1000, 2),
        "postgresql_due_order": round(executed * 1000, 2),
    }


def _poll(server: Serving, machines: int) -> float:
    """Poll from machines across the fleet; return the CPU seconds of one poll."""
    apart = machines // POLLERS
    callers = [guests.call(server.port, source=fleets.address(number * apart)) for number in range(POLLERS)]
    # No event is listed for these machines, so all documents have the same size.
    request = guests.poll(server.port)
    measured = load.measure(callers, request, pids=[server.pid], warm_up=WARM_UP, seconds=POLLING)
    guests.hang_up(callers)
    return 1 / float(measured["per_cpu_second"])


def _write_table(page: Path, found: dict[int, Figures]) -> None:
    """Replace the table of the page."""
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
        "--docs", type=Path, metavar="FOLDER", help="write scale.svg and the table of scale.md to this folder"
    )
    return parser.parse_args(arguments)


def _sizes(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
