"""Run Spin on the model: search its states, or print a random run."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from forewarn.clock import monotonic

MODEL = Path(__file__).parent / "forewarn.pml"
# The rules forbid states, so a search for them can ignore cycles and dead ends.
SAFETY = ("-DSAFETY", "-DNOCLAIM", "-DNOFAIR")
# Liveness: Spin looks for fair cycles without progress.
PROGRESS = ("-DNP", "-DNFAIR=3")
# The memory of one search; two run at once.
MOST_MIB = 1900


class SpinError(Exception):
    """Spin or the compiler rejected the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The model and options of a search."""

    name: str
    defines: tuple[str, ...] = ()  # macros of the model
    compiled: tuple[str, ...] = ("-O2",)
    arguments: tuple[str, ...] = ()
    expected: bool = False  # an assertion must fail: a mutant or a situation must be found
    live: bool = False  # check liveness instead of assertions


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a search."""

    search: Search
    states: int
    transitions: int
    errors: int
    mib: float
    seconds: float
    whole: bool  # the depth was enough for all states
    actions: tuple[str, ...]  # that lead to the failed assertion, if any

    @property
    def good(self) -> bool:
        """Whether the result is the expected one."""
        return bool(self.errors) == self.search.expected


def search(each: Search, folder: Path) -> Found:
    """Run a search in a temporary folder."""
    begun = monotonic()
    _run(["spin", "-a", *each.defines, str(MODEL)], folder)
    limit = f"-DMEMLIM={MOST_MIB}"
    compiled = (*(PROGRESS if each.live else SAFETY), *each.compiled, limit)
    _run(["gcc", "-w", *compiled, "-o", "pan", "pan.c"], folder)
    # -E: time can always advance, so there are no dead ends. -l -f: cycles, under weak fairness.
    said = _run(["./pan", *(("-l", "-f") if each.live else ("-E",)), *each.arguments], folder)
    if "pan: out of memory" in said or "error: reached -DMEMLIM" in said:
        raise SpinError(f"{each.name}: needs more than {MOST_MIB} MiB")
    errors = int(_number(r"errors: (\d+)", said))
    return Found(
        search=each,
        states=int(_number(r"([\d.e+]+) states, stored", said)),
        transitions=int(_number(r"([\d.e+]+) transitions", said)),
        errors=errors,
        mib=_number(r"([\d.]+)\s+total actual memory usage", said),
        seconds=monotonic() - begun,
        whole="max search depth too small" not in said,
        actions=tuple(_trail(each, folder)) if errors else (),
    )


def random_run(defines: Sequence[str], *, seed: int, steps: int) -> Iterator[str]:
    """Yield the actions of a random run, one per line, each with its state."""
    run = ["spin", "-T", f"-n{seed}", f"-u{steps}", "-DPRINTED", "-DREPLAYED", *defines, str(MODEL)]
    yield from _actions(_run(run, MODEL.parent))


def _trail(each: Search, folder: Path) -> Iterator[str]:
    trail = folder / f"{MODEL.name}.trail"
    if "-DPRINTED" in each.defines:
        yield from _actions(_run(["spin", "-T", "-k", str(trail), *each.defines, str(MODEL)], folder))


def _actions(said: str) -> Iterator[str]:
    for line in said.splitlines():
        # A run may end in the middle of a line.
        if line.startswith("ACT ") and line.endswith(" end"):
            yield line.removeprefix("ACT ").removesuffix(" end")


def _run(command: Sequence[str], folder: Path) -> str:
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        raise SpinError(f"{command[0]} is not installed: make test-model installs it as root") from missing
    said = ended.stdout + ended.stderr
    if ended.returncode and command[0] in ("gcc", "spin") and "assertion violated" not in said:
        raise SpinError(f"{' '.join(command)}: {said[:2000]}")
    return said


def _number(pattern: str, said: str) -> float:
    found = re.search(pattern, said)
    if found is None:
        raise SpinError(f"a search ended without {pattern}: {said[-2000:]}")
    return float(found[1])
