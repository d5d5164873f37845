"""Commits that the database does not answer: it may have saved everything, or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from forewarn.store.joint import Joint

from forewarn.core.errors import Uncertain

_commit = Joint.commit


@contextmanager
def lost_commit(*, saved: bool, after: int = 0) -> Iterator[None]:
    """Leave the next commit that saves something without answer, or the one after so many others."""
    left = after

    def commit(joint: Joint) -> None:
        nonlocal left
        if not joint.begun or left:
            left -= joint.begun
            return _commit(joint)
        left = -1
        if saved:
            _commit(joint)
        raise Uncertain("the connection was cut")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Joint, "commit", commit)
        yield
