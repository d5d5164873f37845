"""Errors as operators read them: without the marks around names that projects must not see."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from forewarn.core.errors import ForewarnError
from forewarn.core.redaction import unmarked


@contextmanager
def refused(kind: type[ForewarnError], *, match: str) -> Iterator[None]:
    """Expect an error whose text contains these words."""
    with pytest.raises(kind) as caught:
        yield
    said = unmarked(str(caught.value))
    assert re.search(match, said), said
