"""Commits that the database does not answer: it may have saved everything, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from forewarn.core.errors import Uncertain
from forewarn.store.batch import Batch

_commit = Batch.commit


@contextmanager
def lost_commit(*, saved: bool, after: int = 0) -> Iterator[None]:
    """Leave the next commit that saves something without answer, or the one after so many others."""
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
