"""How often something is tried: a few times in `make test`, many times in `make test-long`."""

import os

LONG = bool(os.environ.get("FOREWARN_TEST_LONG"))


def tries(few: int, *, long: int) -> int:
    """Choose how many random examples, histories or kills there are in this run."""
    return long if LONG else few
