"""Run Spin on the model: search its states, or print a random run."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from forewarn.clock import monotonic

MODEL = Path(__file__).parent / "forewarn.pml"
# The rules are about what never happens: cycles and dead ends need not be looked for.
SAFETY = ("-DSAFETY", "-DNOCLAIM", "-DNOFAIR")
# Progress is about what happens in the end: Spin looks for cycles without it, in which all processes go on.
PROGRESS = ("-DNP", "-DNFAIR=3")
# Of memory, for one search; two run at once.
MOST_MIB = 1900


class SpinError(Exception):
    """Spin, or the compiler, did not take the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched, and how."""

    name: str
    defines: tuple[str, ...] = ()  # of the model
    compiled: tuple[str, ...] = ("-O2",)
    arguments: tuple[str, ...] = ()
    expected: bool = False  # that an assertion fails: of a mutant, or of a situation that must be reached
    live: bool = False  # whether progress is looked for, and not assertions


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search came to."""

    search: Search
    states: int
    transitions: int
    errors: int
    mib: float
    seconds: float
    whole: bool  # no state was left out for want of depth
    actions: tuple[str, ...]  # that lead to what was found, if anything was

    @property
    def good(self) -> bool:
        """Whether it came to what was expected."""
        return bool(self.errors) == self.search.expected


def search(each: Search, folder: Path) -> Found:
    """Search the states of the model in a folder of one's own."""
    begun = monotonic()
    _run(["spin", "-a", *each.defines, str(MODEL)], folder)
    limit = f"-DMEMLIM={MOST_MIB}"
    compiled = (*(PROGRESS if each.live else SAFETY), *each.compiled, limit)
    _run(["gcc", "-w", *compiled, "-o", "pan", "pan.c"], folder)
    # -E: time can always go on, so there are no dead ends. -l -f: cycles, under weak fairness.
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
    """Print what happens in a random run, an action a line, with the state that it leaves."""
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
