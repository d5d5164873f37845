"""The time of `forewarn --help`: the shortest command."""

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from bench.processes import Failed
from bench.report import Findings, Row
from bench.workplace import Workplace

ROUNDS = 10
LONGEST = 0.3
LONGEST_CPU = 0.2


def measure(work: Workplace) -> Findings:
    """Run the command a few times. The first run does not count, because it may read from the disk."""
    command = Path(sys.executable).parent / "forewarn"
    rounds = [_seconds(command) for _ in range(ROUNDS + 1)][1:]
    seconds, cpu = ([each[place] for each in rounds] for place in range(2))
    work.log(f"{median(seconds):.3f} s, {median(cpu):.3f} s of CPU")
    rows = [
        Row(
            what="forewarn --help",
            measured=f"{median(seconds):.2f} s",
            value=round(median(seconds), 3),
            target=f"< {LONGEST} s",
            met=median(seconds) < LONGEST,
        ),
        Row(
            what="forewarn --help, processor",
            measured=f"{median(cpu):.2f} s of CPU",
            value=round(median(cpu), 3),
            target=f"< {LONGEST_CPU} s",
            met=median(cpu) < LONGEST_CPU,
        ),
    ]
    return Findings(rows=rows, raw={"seconds": seconds, "cpu_seconds": cpu})


def _seconds(command: Path) -> tuple[float, float]:
    """Return the elapsed time and the processor time."""
    began, before = time.perf_counter(), _cpu()
    ended = subprocess.run((command, "--help"), capture_output=True, check=False)
    if ended.returncode != 0:
        raise Failed(f"forewarn --help exited with code {ended.returncode}: {ended.stderr.decode()[-300:]}")
    return round(time.perf_counter() - began, 4), round(_cpu() - before, 4)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
