"""Reads of long lists page by page, and work on long lists in chunks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
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


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut a list into chunks; `itertools.batched` needs Python 3.12."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
