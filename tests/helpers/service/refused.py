"""Refusals as operators read them: without the marks by which projects are kept from reading names."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from forewarn.core.errors import ForewarnError
from forewarn.core.redaction import unmarked


@contextmanager
def refused(kind: type[ForewarnError], *, match: str) -> Iterator[None]:
    """Expect an error whose text has something in it."""
    with pytest.raises(kind) as caught:
        yield
    said = unmarked(str(caught.value))
    assert re.search(match, said), said
