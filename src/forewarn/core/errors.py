"""The few kinds of errors, each a decision for the caller.

A message names the thing and its state, so that a person can read it unchanged.
"""

from dataclasses import dataclass

from forewarn.core.basic_types import NameKind, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownName:
    """A name in a request that does not exist."""

    kind: NameKind
    name: str
    project: ProjectName | None = None  # the project that the request named, if any


class ForewarnError(Exception):
    """An error that forewarn raises on purpose.

    Searching for a similar name takes time. The thread that raises the error sets `unknown`, and another
    thread adds the suggestion.
    """

    def __init__(self, *args: object, unknown: UnknownName | None = None) -> None:
        super().__init__(*args)
        self.unknown = unknown


class Invalid(ForewarnError):
    """The request itself is wrong; a retry does not help."""


class NotFound(ForewarnError):
    """The request names something that does not exist for this caller."""


class Conflict(ForewarnError):
    """The request is valid, but not in the present state of the thing that it names."""


class LimitReached(ForewarnError):
    """The request would exceed a limit; the caller may retry later."""


class Refused(ForewarnError):
    """The caller may not do this; another token may."""


class Unauthenticated(ForewarnError):
    """The caller did not authenticate."""


class Unavailable(ForewarnError):
    """The server cannot save anything now; nothing changed."""


# The advice to a caller if the server does not know whether the transaction was committed.
RETRY_ADVICE = (
    "it may still happen: repeat it with the same Idempotency-Key, or first check whether it has happened"
)


class Uncertain(Unavailable):
    """The outcome of a commit is unknown: the change may still take effect."""
