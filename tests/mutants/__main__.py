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
# Longer than the tests of any mutant take on a busy machine. A mutant that makes them hang is not caught.
PATIENCE = 300.0
PASSED, FAILED = 0, 1  # exit codes of pytest; any other proves nothing about the mutant


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a mutant's tests."""

    mutant: str
    rule: str
    good: bool
    by: str  # the test that failed, or what went wrong
    seconds: float

    def __str__(self) -> str:
        return f"{self.mutant:<58} {self.rule:<9} {self.by:<110} {self.seconds:5.1f} s"


def try_one(mutant: Mutant) -> Verdict:
    """Run the tests of a mutant up to the first failure, which is required."""
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
    """Run all these tests without a mutant, to be sure that only mutants make them fail."""
    begun = monotonic()
    code, output = _pytest(*sorted({killer for each in chosen for killer in each.killers}))
    by = "(all pass)" if code == PASSED else f"BROKEN: they fail without a mutant\n{output}"
    return Verdict(mutant="(none)", rule="", good=code == PASSED, by=by, seconds=monotonic() - begun)


def _pytest(*arguments: str) -> tuple[int | str, str]:
    with tempfile.TemporaryDirectory() as folder:
        # Do not save failing examples: they fail only because of the mutant.
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
    """Try these mutants, or all; return the number of failed tries."""
    if unknown := set(names) - MUTANTS.keys():
        sys.exit(
            f"no such mutant in {Path(mutants.__file__).relative_to(ROOT)}: {', '.join(sorted(unknown))}"
        )
    chosen = [each for name, each in MUTANTS.items() if not names or name in names]
    bad = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # Start the longest first: histories, and the run without a mutant.
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
