"""Run all benchmarks, or some; print a table, and write all measurements as JSON."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path

from rich.console import Console

from bench import (
    agent,
    command,
    engine,
    fixture,
    history,
    large_fleet,
    noisy_tenant,
    polls,
    report,
    rollout,
    silent,
    start,
    stuck_lanes,
    waiting,
)
from bench.computer import this_computer
from bench.processes import Failed
from bench.report import Findings, Report, Row
from bench.versions import Version, version_in
from bench.workplace import Workplace

PARTS: dict[str, Callable[[Workplace], Findings]] = {
    "polls": polls.measure,
    "fleet": large_fleet.measure,
    "waiting": waiting.measure,
    "help": command.measure,
    "start": start.measure,
    "agent": agent.measure,
    "fixture": fixture.measure,
    "history": history.measure,
    "rollout": rollout.measure,
    "engine": engine.measure,
    "silent": silent.measure,
    "lanes": stuck_lanes.measure,
    "tenants": noisy_tenant.measure,
}

# A load average that does not distort the measurements.
QUIET = 0.5


def main() -> int:
    """Measure, print and write."""
    options = _options(sys.argv[1:])
    console = Console(highlight=False)
    # On SIGTERM, end the programs that were started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # The measured programs may cache bytecode, as installed programs do.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    computer, began = this_computer(), time.perf_counter()
    if computer.load > QUIET:
        console.print(
            f"Other programs are running (load {computer.load:.1f}), so the times will be too long."
        )
    against = None if options.against is None else version_in(options.against)
    parts = {name: _measure(name, console, began=began, against=against) for name in options.only}
    finished = Report(computer=computer, seconds=time.perf_counter() - began, parts=parts)
    report.show(finished, console)
    if options.json is not None:
        report.write(finished, options.json)
        console.print(f"Written to {options.json}.")
    return 1 if options.strict and finished.missed else 0


def _measure(name: str, console: Console, *, began: float, against: Version | None) -> Findings:
    """Measure one part. If it fails, return the failure as a row, so that the other parts still run."""

    def log(line: str) -> None:
        console.print(f"{time.perf_counter() - began:6.1f} s  {name}: {line}", markup=False, soft_wrap=True)

    log("starts")
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as folder:
        try:
            return PARTS[name](Workplace(folder=Path(folder), log=log, against=against))
        except (Failed, OSError, HTTPException, subprocess.SubprocessError) as error:
            log(f"failed: {error}")
            return Findings(rows=[Row(what=name, measured="failed", met=False, note=str(error))])


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements to this file")
    parser.add_argument(
        "--only", type=_parts, default=list(PARTS), metavar="PARTS", help=f"some of {','.join(PARTS)}"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CLONE",
        help="also measure the version of another clone (after `make setup` there): engine, rollout",
    )
    parser.add_argument("--strict", action="store_true", help="exit with code 1 if a target is missed")
    return parser.parse_args(arguments)


def _parts(text: str) -> list[str]:
    wanted = text.split(",")
    for name in wanted:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(
                f"part {name!r} does not exist; expected some of {', '.join(PARTS)}"
            )
    return wanted


if __name__ == "__main__":
    sys.exit(main())
