"""Run the tests meant to catch each mutant: `python -m tests.mutants [NAME…]`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from forewarn.clock import monotonic
from tests.mutants import mutants
from tests.mutants.placing import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
AT_ONCE = 2
# Longer than all tests of a mutant take on a busy machine: one that makes them run for ever is not caught.
PATIENCE = 300.0
PASSED, FAILED = 0, 1  # how pytest ends; anything else says nothing about the mutant


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How the tests of a mutant ended."""

    mutant: str
    rule: str
    good: bool
    by: str  # the test that failed, or what went wrong
    seconds: float

    def __str__(self) -> str:
        return f"{self.mutant:<58} {self.rule:<9} {self.by:<110} {self.seconds:5.1f} s"


def try_one(mutant: Mutant) -> Verdict:
    """Run the tests of a mutant up to the first that fails, which one must."""
    begun = monotonic()
    code, output = _pytest("--mutant", mutant.name, *mutant.killers)
    failed = (line.removeprefix("FAILED ") for line in output.splitlines() if line.startswith("FAILED "))
    died = next(failed, "").partition(" - ")[0]
    if code == PASSED:
        by = f"SURVIVED {' '.join(mutant.killers)}"
    else:
        by = died or f"BROKEN: pytest ended with {code}\n{output}"
    good = code == FAILED and bool(died)
    return Verdict(mutant=mutant.name, rule=mutant.rule, good=good, by=by, seconds=monotonic() - begun)


def try_none(chosen: Sequence[Mutant]) -> Verdict:
    """Run all these tests without a mutant: else it could be something else that they die of."""
    begun = monotonic()
    code, output = _pytest(*sorted({killer for each in chosen for killer in each.killers}))
    by = "(all pass)" if code == PASSED else f"BROKEN: they fail without a mutant\n{output}"
    return Verdict(mutant="(none)", rule="", good=code == PASSED, by=by, seconds=monotonic() - begun)


def _pytest(*arguments: str) -> tuple[int | str, str]:
    with tempfile.TemporaryDirectory() as folder:
        # Examples that only a mutant fails on are of no use to those who test without one.
        environment = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=short", "-p", "no:cacheprovider"]
        try:
            ended = subprocess.run(
                [*command, *arguments],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"nothing after {PATIENCE:.0f} s", ""
    return ended.returncode, ended.stdout + ended.stderr


def main(names: Sequence[str]) -> int:
    """Try the mutants of these names, or all; return how many tries say nothing good of the tests."""
    if unknown := set(names) - MUTANTS.keys():
        sys.exit(
            f"no such mutant in {Path(mutants.__file__).relative_to(ROOT)}: {', '.join(sorted(unknown))}"
        )
    chosen = [each for name, each in MUTANTS.items() if not names or name in names]
    bad = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # First what takes longest: histories, and everything without a mutant.
        clean = pool.submit(try_none, chosen)
        tried = list(pool.map(try_one, sorted(chosen, key=lambda each: "integration" not in each.killers[0])))
    order = list(MUTANTS)
    for verdict in (clean.result(), *sorted(tried, key=lambda each: order.index(each.mutant))):
        print(verdict)
        bad += [] if verdict.good else [verdict.mutant]
    print(f"{len(chosen)} mutants; not caught: {', '.join(bad) or 'none'}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
