"""`forewarn --help`: what everybody waits for who types the first command."""

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


def measure(work: Workplace) -> Findings:
    """Run it a few times; the first, which may have to read from the disk, does not count."""
    command = Path(sys.executable).parent / "forewarn"
    rounds = [_seconds(command) for _ in range(ROUNDS + 1)][1:]
    work.say(f"{median(rounds):.3f} s")
    row = Row(
        what="forewarn --help",
        measured=f"{median(rounds):.2f} s",
        value=round(median(rounds), 3),
        target=f"< {LONGEST} s",
        met=median(rounds) < LONGEST,
    )
    return Findings(rows=[row], raw={"seconds": rounds})


def _seconds(command: Path) -> float:
    began = time.perf_counter()
    ended = subprocess.run((command, "--help"), capture_output=True, check=False)
    if ended.returncode != 0:
        raise Failed(f"forewarn --help ended with {ended.returncode}: {ended.stderr.decode()[-300:]}")
    return round(time.perf_counter() - began, 4)
