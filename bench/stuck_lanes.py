"""The latency of orders while every call to a driver hangs. forewarn itself must not wait for drivers."""

import os
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from bench import fleets
from bench.operators import Operator
from bench.postgresql import new_database, postgresql
from bench.processes import Failed
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.workplace import Workplace

HOSTS = 50
ORDERS = 200
STUCK_WITHIN = 60.0
MOST_RATIO = 1.5

# A plug-in driver whose calls hang.
_DRIVER = """
import time
from datetime import timedelta
from forewarn.control.driver import Cancelled, DriverLimits, Unknown


class Hanging:
    limits = DriverLimits(timeout=timedelta(hours=1), at_once=1)

    def begin(self, task):
        with open("hanging", "a") as calls:
            calls.write(task.machine.name + chr(10))
        time.sleep(3600)

    def check(self, task):
        return Unknown("the driver hangs", None)

    def cancel(self, task):
        return Cancelled()


def make(setup):
    return Hanging()
"""


def measure(work: Workplace) -> Findings:
    """Measure orders for idle machines, before and while calls for other machines hang."""
    fleet = work.folder / "stuck.toml"
    fleet.write_text(fleets.toml(fleets.alone(HOSTS + ORDERS)), encoding="utf-8")
    settings = {**fleets.NO_LIMITS, "PYTHONPATH": _with_driver(work.folder), "FOREWARN_OPERATOR_CALLS": "0"}
    with (
        postgresql(work.folder) as url,
        serving(
            work.folder, *("--fleet", str(fleet)), database=new_database(url, "stuck"), settings=settings
        ) as server,
    ):
        idle = _orders(server, range(ORDERS))
        for number in range(HOSTS):
            server.operator.post(f"/v1/machines/vm-host-{number}/restart", {"driver": "hanging"})
        hanging = _await_hanging(work.folder)
        stuck = _orders(server, range(ORDERS, 2 * ORDERS))
    ratio = median(stuck) / median(idle)
    work.log(f"an order takes {ratio:.2f} times as long while {hanging} calls hang")
    row = Row(
        what="order time, all lanes stuck / idle",
        measured=f"{ratio:.2f}",
        value=round(ratio, 3),
        target=f"≤ {MOST_RATIO:g}",
        met=ratio <= MOST_RATIO,
        note=f"{median(stuck) * 1000:.1f} to {median(idle) * 1000:.1f} ms; {hanging} calls hang",
    )
    return Findings(rows=[row], raw={"idle": idle, "stuck": stuck, "hanging": hanging})


def _with_driver(folder: Path) -> str:
    """Install the driver into a folder; return the PYTHONPATH that finds it."""
    place = folder / "drivers"
    about = place / "hanging-1.dist-info"
    about.mkdir(parents=True)
    (place / "hanging_driver.py").write_text(_DRIVER, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(
        "[forewarn.drivers]\nhanging = hanging_driver:make\n", encoding="utf-8"
    )
    return os.pathsep.join(filter(None, (str(place), os.environ.get("PYTHONPATH"))))


def _await_hanging(folder: Path) -> int:
    """Wait until the number of calls no longer grows; return it."""
    deadline, before = time.monotonic() + STUCK_WITHIN, 0
    while time.monotonic() < deadline:
        time.sleep(1.0)
        calls = folder / "hanging"
        now = len(calls.read_text(encoding="utf-8").splitlines()) if calls.exists() else 0
        if now and now == before:
            return now
        before = now
    raise Failed("the driver's calls do not hang")


def _orders(server: Serving, numbers: range) -> list[float]:
    """Place orders one after the other; return the time of each."""
    taken: list[float] = []
    with closing(Operator(server.operator.port)) as operator:
        for number in numbers:
            began = time.perf_counter()
            placed: Any = operator.post(f"/v1/machines/apart-{number}/freeze")
            taken.append(time.perf_counter() - began)
            if "order" not in placed:
                raise Failed(f"no order was placed: {placed}")
    return taken
