"""The processor time of a server start, with a new store and with an existing one."""

from statistics import median

from bench.history import FLEET
from bench.processes import cpu_seconds
from bench.report import Findings, Row
from bench.service import serving
from bench.workplace import Workplace

ROUNDS = 5
LONGEST = 0.8  # seconds of a processor


def measure(work: Workplace) -> Findings:
    """Start on a new store and again on the same store, a few times. The first round does not count."""
    rounds = [_start(work, number) for number in range(ROUNDS + 1)][1:]
    raw = {"new": [new for new, _ in rounds], "known": [known for _, known in rounds]}
    rows = [
        _row("start with the sample fleet, new store", raw["new"]),
        _row("start with the sample fleet, existing store", raw["known"]),
    ]
    work.log(", ".join(row.measured for row in rows))
    return Findings(rows=rows, raw=raw)


def _start(work: Workplace, number: int) -> tuple[float, float]:
    database = work.folder / f"start-{number}.db"
    new, known = (_seconds(work, database.name) for _ in range(2))
    return new, known


def _seconds(work: Workplace, database: str) -> float:
    """Return the processor time, user and system, from the start of the process until /healthz answers."""
    with serving(work.folder, "--fleet", str(FLEET), database=work.folder / database) as server:
        return round(cpu_seconds([server.pid]), 3)


def _row(what: str, seconds: list[float]) -> Row:
    typical = median(seconds)
    return Row(
        what=what,
        measured=f"{typical:.2f} s of CPU",
        value=typical,
        target=f"< {LONGEST} s",
        met=typical < LONGEST,
    )
