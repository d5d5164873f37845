"""The few ways in which a request can be turned down, each a decision for the caller.

A message names the thing and its state, so that it can be shown to a person as it is.
"""

from dataclasses import dataclass

from forewarn.core.basic_types import NameKind, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownName:
    """A name that a request gives, and that nothing has."""

    kind: NameKind
    name: str
    project: ProjectName | None = None  # the one in which it was looked for, if the request named one


class ForewarnError(Exception):
    """Anything forewarn turns down on purpose.

    To look for the name that was meant takes time, so the thread that refuses an unknown name leaves that
    to another one.
    """

    def __init__(self, *args: object, unknown: UnknownName | None = None) -> None:
        super().__init__(*args)
        self.unknown = unknown


class Invalid(ForewarnError):
    """The request itself is wrong: sending it again will not help."""


class NotFound(ForewarnError):
    """What the request names does not exist for this caller."""


class Conflict(ForewarnError):
    """The request is sound, but not in the present state of what it names."""


class LimitReached(ForewarnError):
    """The request would pass a limit; it may be sent again later."""


class Refused(ForewarnError):
    """The caller may not do this; another token may."""


class Unauthenticated(ForewarnError):
    """The caller did not prove who it is."""


class Unavailable(ForewarnError):
    """The service cannot save anything now; nothing has changed."""


# What a caller should do who cannot know whether something was saved.
MAY_STILL_HAPPEN = (
    "it may still happen: repeat it with the same Idempotency-Key, "
    "or look whether it has happened before you repeat it"
)


class Uncertain(Unavailable):
    """It is not known whether something was saved: its caller has no answer, and it may still happen."""
