"""How often something is tried: a few times in `make test`, many times in `make test-long`."""

import os
import random
from collections.abc import Sequence

LONG = bool(os.environ.get("FOREWARN_TEST_LONG"))


def tries(few: int, *, long: int) -> int:
    """Choose how many random examples, histories or kills there are in this run."""
    return long if LONG else few


def seeds(few: int, *, long: int) -> Sequence[int]:
    """Choose the seeds of random histories: always the same few, or many others in each long run.

    What fails in `make test` has failed before it was sent in, then; FOREWARN_TEST_SEED repeats a long run.
    """
    if not LONG:
        return range(few)
    first = int(os.environ.get("FOREWARN_TEST_SEED") or random.randrange(1_000_000_000))
    return range(first, first + long)
