"""A request as it came over the wire, and what it asks for."""

from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

# Of a header that is a list; clients send one or two. What is beyond that is not looked at.
MOST_ITEMS = 32


@dataclass(slots=True)
class Request:
    """A request; its parts are filled in as they arrive."""

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
        """Return the first elements of a header that is a list, over all its lines."""
        items = (
            item.strip() for value in self.all(name) for item in value.split(b",", MOST_ITEMS)[:MOST_ITEMS]
        )
        return list(islice((item for item in items if item), MOST_ITEMS))


NOTHING = Request()  # in the place of one that has been answered, and must not be kept


@dataclass(frozen=True, slots=True)
class RequestFault:
    """What came cannot be read any further; the connection ends with the answer."""

    status: int
    text: str
    retry: bool = False  # it may be otherwise in a moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The request is turned down."""

    status: int
    body: bytes
    headers: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """The document is asked for."""

    version: int  # the index of its version
    match: frozenset[bytes] = frozenset()  # the entity tags that the caller has, without quotes
    match_any: bool = False  # it has some document, whichever
    wait: int | None = None  # hold the answer for so many seconds while the document is that one
    plain: bool = True  # the answer depends on none of these

    def has(self, etag: bytes) -> bool:
        """Whether the caller has this document."""
        return self.match_any or etag in self.match


@dataclass(frozen=True, slots=True)
class Approve:
    """Events are approved."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Defer:
    """Events are to be deferred."""

    body: bytes


@dataclass(frozen=True, slots=True)
class ListVersions:
    """The versions are asked for."""


@dataclass(frozen=True, slots=True)
class AskInstance:
    """Instance metadata is asked for: all of it, or `compute`, or one field of that as text or JSON."""

    field: str | None = None
    whole: bool = False  # with all categories, each under its name


@dataclass(frozen=True, slots=True)
class AskNetwork:
    """The category `network` of instance metadata is asked for, or the part of it that a path leads to."""

    path: tuple[str, ...] = ()


Plan: TypeAlias = Refusal | Poll | Approve | Defer | ListVersions | AskInstance | AskNetwork
