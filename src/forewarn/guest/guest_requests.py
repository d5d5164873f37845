"""Requests of guests: the HTTP request, and the operation that it asks for."""

from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

# Elements of a header with a list; clients send one or two. Further elements are ignored.
MOST_ITEMS = 32


@dataclass(slots=True)
class Request:
    """An HTTP request; the parser fills in the fields as they arrive."""

    method: bytes = b""
    target: bytes = b""
    fields: dict[bytes, list[bytes]] = field(default_factory=dict)  # by lower-case name
    body: bytes = b""
    http11: bool = True
    keep_alive: bool = True

    def all(self, name: bytes) -> list[bytes]:
        """Return every value of a header."""
        return self.fields.get(name, [])

    def listed(self, name: bytes) -> list[bytes]:
        """Return the first elements of a header with a list, from all its lines."""
        items = (
            item.strip() for value in self.all(name) for item in value.split(b",", MOST_ITEMS)[:MOST_ITEMS]
        )
        return list(islice((item for item in items if item), MOST_ITEMS))


NOTHING = Request()  # replaces a request that has been answered, to free its memory


@dataclass(frozen=True, slots=True)
class RequestFault:
    """An error after which the connection must close, because the data cannot be parsed further."""

    status: int
    text: str
    retry: bool = False  # a retry may succeed


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error answer; the connection stays open."""

    status: int
    body: bytes
    headers: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Get the document."""

    version: int  # the index of the api-version
    match: frozenset[bytes] = frozenset()  # the entity tags of If-None-Match, without quotes
    match_any: bool = False  # If-None-Match is `*`
    wait: int | None = None  # seconds to wait for a change while the tag matches
    plain: bool = True  # none of these is set

    def has(self, etag: bytes) -> bool:
        """Whether the caller has the document with this tag."""
        return self.match_any or etag in self.match


@dataclass(frozen=True, slots=True)
class Approve:
    """Approve events."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Defer:
    """Defer events."""

    body: bytes


@dataclass(frozen=True, slots=True)
class ListVersions:
    """List the api-versions."""


@dataclass(frozen=True, slots=True)
class GetInstance:
    """Get instance metadata: all categories, or `compute`, or one field of it."""

    field: str | None = None
    whole: bool = False  # all categories, each under its name


@dataclass(frozen=True, slots=True)
class GetNetwork:
    """Get the category `network` of instance metadata, or the value at a path in it."""

    path: tuple[str, ...] = ()


Operation: TypeAlias = Refusal | Poll | Approve | Defer | ListVersions | GetInstance | GetNetwork
