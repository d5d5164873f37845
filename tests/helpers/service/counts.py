"""Numbers of attempts: few in `make test`, many in `make test-long`."""

import os
import random
from collections.abc import Sequence

LONG = bool(os.environ.get("FOREWARN_TEST_LONG"))


def tries(few: int, *, long: int) -> int:
    """Choose the number of random examples, histories or kills in this run."""
    return long if LONG else few


def seeds(few: int, *, long: int) -> Sequence[int]:
    """Choose the seeds of random histories: a few fixed ones, or many random ones in each long run.

    A failure in `make test` is therefore reproducible. FOREWARN_TEST_SEED repeats a long run.
    """
    if not LONG:
        return range(few)
    first = int(os.environ.get("FOREWARN_TEST_SEED") or random.randrange(1_000_000_000))
    return range(first, first + long)
