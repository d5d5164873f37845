"""What a request asks for: the outcome of the checks of what it says."""

from dataclasses import dataclass
from typing import TypeAlias


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
