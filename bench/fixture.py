"""The set-up and tear-down time of the pytest fixture `forewarn`."""

import time
from statistics import median

from bench.report import Findings, Row
from bench.workplace import Workplace

ROUNDS = 10
LONGEST = 0.5


def measure(work: Workplace) -> Findings:
    """Open and close a fleet with one machine a few times. The first round does not count."""
    rounds = [_round() for _ in range(ROUNDS + 1)][1:]
    start, stop = (median(each[phase] for each in rounds) for phase in ("start", "stop"))
    work.log(f"start {start:.3f} s, stop {stop:.3f} s")
    row = Row(
        what="fixture of the pytest plug-in, start",
        measured=f"{start:.2f} s",
        value=round(start, 3),
        target=f"< {LONGEST} s",
        met=start < LONGEST,
        note=f"with one machine, without imports; tear-down {stop:.2f} s",
    )
    return Findings(rows=[row], raw={"rounds": rounds})


def _round() -> dict[str, float]:
    # Imported here, so that other benchmarks run in a process without the server.
    from forewarn.testing.fleet import opened_fleet

    began = time.perf_counter()
    with opened_fleet() as fleet:
        fleet.machine("web-0")
        opened = time.perf_counter()
    return {"start": round(opened - began, 4), "stop": round(time.perf_counter() - opened, 4)}
