"""The fixture `forewarn`: what each test that uses it waits for before its first line, and after its last."""

import time
from statistics import median

from bench.report import Findings, Row
from bench.workplace import Workplace

ROUNDS = 10
LONGEST = 0.5


def measure(work: Workplace) -> Findings:
    """Open a fleet with one machine and take it down, a few times; the first, with imports, is left out."""
    rounds = [_round() for _ in range(ROUNDS + 1)][1:]
    start, stop = (median(each[what] for each in rounds) for what in ("start", "stop"))
    work.say(f"start {start:.3f} s, stop {stop:.3f} s")
    row = Row(
        what="fixture of the pytest plug-in, start",
        measured=f"{start:.2f} s",
        value=round(start, 3),
        target=f"< {LONGEST} s",
        met=start < LONGEST,
        note=f"with its first machine, after imports; to take it down {stop:.2f} s",
    )
    return Findings(rows=[row], raw={"rounds": rounds})


def _round() -> dict[str, float]:
    # Here, so that the other parts of the bench run in a process without the server.
    from forewarn.testing.fleet import opened_fleet

    began = time.perf_counter()
    with opened_fleet() as fleet:
        fleet.machine("web-0")
        opened = time.perf_counter()
    return {"start": round(opened - began, 4), "stop": round(time.perf_counter() - opened, 4)}
