"""A database that hangs: the latency of refused writes, of probes and of polls."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles
from typing import Any

from bench import fleets, guests
from bench.postgresql import new_database, postgresql
from bench.processes import Failed, family
from bench.report import Findings, Row
from bench.service import Serving, serving
from bench.workplace import Workplace

HANGS_FOR = 10.0  # seconds
WRITES_EVERY, PROBES_EVERY, POLLS_EVERY = 0.5, 0.1, 0.01
LONGEST_WRITE, LONGEST_PROBE, MOST_RATIO = 6.0, 0.1, 2.0
PROBES = ("/healthz", "/readyz")
REFUSED = 503
BACK_WITHIN = 30.0

Times = list[float]


def measure(work: Workplace) -> Findings:
    """Stop PostgreSQL for some seconds, and measure requests meanwhile."""
    fleet = work.folder / "silent.toml"
    fleet.write_text(fleets.toml(fleets.racks(1)), encoding="utf-8")
    with (
        postgresql(work.folder) as url,
        serving(
            work.folder,
            *("--fleet", str(fleet)),
            database=new_database(url, "silent"),
            settings=fleets.NO_LIMITS,
        ) as server,
    ):
        server.operator.order("vm-0-0", "freeze")
        before = _polls(server, until=time.monotonic() + HANGS_FOR)
        with _stopped(work.folder), ThreadPoolExecutor() as pool:
            until = time.monotonic() + HANGS_FOR
            polls = pool.submit(_polls, server, until=until)
            probes = pool.submit(_probes, server, until=until)
            writes = pool.submit(_writes, server, until=until)
            found = {"polls": polls.result(), "probes": probes.result(), "writes": writes.result()}
        back = _back_after(server)
    ratio = _p99(found["polls"]) / _p99(before)
    rows = [
        _row(
            "slowest 503 for a write",
            max(found["writes"]),
            LONGEST_WRITE,
            f"orders accepted again after {back:.1f} s",
        ),
        _row("slowest probe", max(found["probes"]), LONGEST_PROBE, " and ".join(PROBES)),
        Row(
            what="database hangs: poll p99, during / before",
            measured=f"{ratio:.1f}",
            value=round(ratio, 2),
            target=f"≤ {MOST_RATIO:.0f}",
            met=ratio <= MOST_RATIO,
            note=f"{_p99(found['polls']) * 1000:.2f} to {_p99(before) * 1000:.2f} ms",
        ),
    ]
    work.log(", ".join(row.measured for row in rows))
    return Findings(rows=rows, raw={**found, "before": before, "back": back})


@contextmanager
def _stopped(folder: Path) -> Iterator[None]:
    """Stop the PostgreSQL server of a folder (SIGSTOP) while the block lasts."""
    postmaster = int((folder / "postgresql" / "postmaster.pid").read_text(encoding="ascii").split()[0])
    stopped = [postmaster]
    try:
        os.kill(postmaster, signal.SIGSTOP)  # first, so that it starts no more children
        for process in family(postmaster)[1:]:
            stopped.append(process)
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in stopped:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def _polls(server: Serving, *, until: float) -> Times:
    caller, request = guests.call(server.port, source=fleets.address(0)), guests.poll(server.port)

    def poll() -> None:
        if not guests.ask(caller, request).startswith(b"HTTP/1.1 200"):
            raise Failed("a poll was refused while the database hung")

    with closing(caller):
        return _timed(poll, every=POLLS_EVERY, until=until)


def _probes(server: Serving, *, until: float) -> Times:
    return _timed(lambda: [_status(server, "GET", path) for path in PROBES], every=PROBES_EVERY, until=until)


def _writes(server: Serving, *, until: float) -> Times:
    def write() -> None:
        if (status := _status(server, "POST", "/v1/machines/vm-0-1/freeze")) != REFUSED:
            raise Failed(f"an order got {status} instead of {REFUSED} while the database hung")

    return _timed(write, every=WRITES_EVERY, until=until)


def _back_after(server: Serving) -> float:
    """Return the time until the server accepts an order again."""
    began = time.monotonic()
    while _status(server, "POST", "/v1/machines/vm-0-2/freeze") == REFUSED:
        if time.monotonic() - began > BACK_WITHIN:
            raise Failed("the database is back, but the server accepts no order")
        time.sleep(PROBES_EVERY)
    return time.monotonic() - began


def _timed(act: Callable[[], Any], *, every: float, until: float) -> Times:
    """Repeat a call until a time; return the time of each call."""
    taken = []
    while time.monotonic() < until:
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
        time.sleep(every)
    return taken


def _status(server: Serving, method: str, path: str) -> int:
    with closing(HTTPConnection("127.0.0.1", server.operator.port, timeout=60)) as connection:
        connection.request(method, path)
        response = connection.getresponse()
        response.read()
        return response.status


def _p99(seconds: Times) -> float:
    return quantiles(seconds, n=100)[98]


def _row(what: str, worst: float, longest: float, note: str) -> Row:
    return Row(
        what=f"database hangs: {what}",
        measured=f"{worst:.3f} s",
        value=round(worst, 3),
        target=f"≤ {longest:g} s",
        met=worst <= longest,
        note=note,
    )
