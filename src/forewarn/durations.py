"""Histograms of durations, for the metrics."""

import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

# In seconds: from a read of memory to the longest wait of a person.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A cumulative histogram."""

    up_to: tuple[int, ...]  # how many took at most each bound; the last element counts all
    seconds: float  # the sum


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCounts:
    """How many reads run and wait, and how many were refused since the start."""

    running: int = 0
    waiting: int = 0
    refused: int = 0


class Durations:
    """Histograms by labels. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, ...], list[int]] = {}  # lock: self._lock
        self._sums: dict[tuple[str, ...], float] = {}  # lock: self._lock

    def note(self, *labels: str, seconds: float) -> None:
        """Count a duration."""
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(BOUNDS) + 1))
            counts[bisect_left(BOUNDS, seconds)] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def seen(self) -> Mapping[tuple[str, ...], Distribution]:
        """Return the histograms by labels."""
        with self._lock:
            return {
                labels: Distribution(up_to=tuple(accumulate(counts)), seconds=self._sums[labels])
                for labels, counts in sorted(self._counts.items())
            }
