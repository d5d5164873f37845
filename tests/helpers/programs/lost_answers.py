"""Commits without an answer from the database: it saved everything or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from forewarn.core.errors import Uncertain
from forewarn.store.batch import Batch

_commit = Batch.commit


@contextmanager
def lost_commit(*, saved: bool, after: int = 0) -> Iterator[None]:
    """Lose the answer of the next commit that saves something, or of a later one."""
    left = after

    def commit(batch: Batch) -> None:
        nonlocal left
        if batch.connection is None or left:
            left -= batch.connection is not None
            return _commit(batch)
        left = -1
        if saved:
            _commit(batch)
        raise Uncertain("the connection was cut")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batch, "commit", commit)
        yield
