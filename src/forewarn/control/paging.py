"""Reads of long lists, page by page."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def all_pages(read: Callable[..., tuple[Sequence[T], str | None]], *, limit: int) -> Iterator[T]:
    """Yield the items of all pages of a list; `read` takes `after` and `limit`."""
    after: str | None = None
    while True:
        page, after = read(after=after, limit=limit)
        yield from page
        if after is None:
            return
