"""Check the model and replay its runs: `python -m tests.model [exhaustive|bounded|progress|…]`."""

import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from tests.model import searches, spin, trace
from tests.model.replay import Constants, Diverged, Replay
from tests.model.spin import Found, Search

AT_ONCE = 2
SEEDS = range(1, 121)
# The depth for Spin: about ninety actions. In longer runs, most machines end up on one host.
STEPS = 100_000

SMALL = Constants(reboot=2, redeploy=1, degrade=3, stale=2, deferral=1)
REAL = Constants(reboot=3, redeploy=2, degrade=2016, stale=6, deferral=3)


def main(parts: Sequence[str]) -> int:
    """Run these parts, or all; return the number of failures."""
    known: Mapping[str, Callable[[], int]] = {
        "exhaustive": exhaustive,
        "bounded": bounded,
        "progress": progress,
        "mutants": mutants,
        "replays": replays,
    }
    if unknown := set(parts) - known.keys():
        sys.exit(f"expected {', '.join(known)}, got {', '.join(sorted(unknown))}")
    bad = sum(do() for part, do in known.items() if not parts or part in parts)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + own.ru_utime + own.ru_stime
    print(f"{seconds:.0f} s of processor time, at most {used.ru_maxrss / 1024:.0f} MiB for a search")
    print(f"{bad} things are not as they should be" if bad else "all is well")
    return bad


def exhaustive() -> int:
    """Search all states at small constants."""
    print("All states, at small constants:")
    return sum(_show(found, whole=True) for found in _each(searches.EXHAUSTIVE))


def bounded() -> int:
    """Search many states, most at the real constants."""
    print("Many states:")
    return sum(_show(found, whole=False) for found in _each(searches.BOUNDED))


def progress() -> int:
    """Look for runs in which work waits forever: none with the rules, one with the mutant."""
    print("Announced work starts, whatever people do:")
    bad = sum(_show(found, whole=True) for found in _each(searches.LIVE))
    (found,) = _each([searches.LIVELOCK])
    actions = "; ".join(str(trace.read(line)) for line in found.actions)
    print(f"  livelock of the mutant: {actions if found.good else 'NOT FOUND'}", flush=True)
    return bad + (not found.good)


def mutants() -> int:
    """Catch each mutant, and reach each situation of the rules."""
    print("Mutants, each caught by its rule, and how soon:")
    tried = [searches.mutant(name, allowed) for name, allowed, _ in searches.MUTANTS]
    bad = 0
    for found, (name, _, what) in zip(_each(tried), searches.MUTANTS, strict=True):
        actions = "; ".join(str(trace.read(line)) for line in found.actions)
        print(f"  {name:<16} {what:<58} {actions if found.good else 'SURVIVED'}", flush=True)
        bad += not found.good
    print("Situations that are come to:")
    for found in _each(map(searches.situation, searches.SITUATIONS)):
        print(f"  {found.search.name:<60} {'yes' if found.good else 'NEVER'}")
        bad += not found.good
    return bad


def replays() -> int:
    """Replay random runs on core."""
    print("Random runs, replayed on core:")
    return sum(_replayed(*each) for each in (("small", SMALL, ()), ("real", REAL, ("-DREAL",))))


def _replayed(times: str, constants: Constants, defines: tuple[str, ...]) -> int:
    seen: Counter[str] = Counter()
    actions = bad = 0
    for seed in SEEDS:
        replay, done = Replay(constants), []
        try:
            for line in spin.random_run(defines, seed=seed, steps=STEPS):
                done.append(trace.read(line))
                replay.do(done[-1])
        except Diverged as diverged:
            bad += 1
            print(f"  DIVERGED, {times} times, seed {seed}: {'; '.join(map(str, done))}\n    {diverged}")
        actions += len(done)
        for before, action in pairwise(done):
            seen.update(trace.situations(before, action, stale=constants.stale))
    print(f"  {times} times: {len(SEEDS)} runs of {actions:,} actions in all, {bad} diverged")
    print(f"    {', '.join(f'{number:,} {what}' for what, number in sorted(seen.items()))}", flush=True)
    never = set(trace.SITUATIONS) - seen.keys()
    if never:
        print(f"    NEVER: {', '.join(sorted(never))}")
    return bad + len(never)


def _each(wanted: Iterable[Search]) -> Iterable[Found]:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        folders = (Path(tempfile.mkdtemp(dir=folder)) for _ in iter(int, 1))
        yield from pool.map(spin.search, wanted, folders)


def _show(found: Found, *, whole: bool) -> int:
    good = found.good and (found.whole or not whole)
    cut = "" if found.whole or not whole else ", not deep enough"
    verdict = "" if good else f"  NOT GOOD: {found.errors} errors{cut}"
    figures = f"{found.states:>12,} states {found.transitions:>13,} transitions {found.mib:6.0f} MiB"
    print(f"  {found.search.name:<60} {figures} {found.seconds:5.0f} s{verdict}", flush=True)
    return not good


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
