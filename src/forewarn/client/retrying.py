"""When a call is sent again: what is beyond a limit has changed nothing, and what has a key is done once."""

from collections.abc import Mapping
from typing import Any

from forewarn.client.replies import (
    TOO_MANY,
    UNAVAILABLE,
    OutcomeUnknown,
    RequestRefused,
    ServerUnreachable,
)
from forewarn.core.errors import MAY_STILL_HAPPEN

KEY_HEADER = "Idempotency-Key"
# The API's code for what may still happen.
UNCERTAIN = "Uncertain"
FIRST_FAULT = 500
LOOK_FIRST = (
    "A command that is repeated is a new one: once the server answers, look whether it has happened before "
    "you repeat it (`forewarn history`, `forewarn order list`)."
)
TRIES = 5
# After a connection broke, in seconds; doubled each time. A server may be on its way back.
FIRST_PAUSE = 0.5
# What lasts longer is told at once: a limit of a project, not of calls.
LONGEST_PAUSE = 10.0


def new_key() -> str:
    """Make a key for one thing to be done."""
    import uuid

    return str(uuid.uuid4())


def changes_something(method: str, *, body: object, params: Mapping[str, Any]) -> bool:
    """Return whether a call may leave something changed: it does not only read, and is no dry run."""
    given = body if isinstance(body, Mapping) else {}
    return method != "GET" and not given.get("dry_run") and not params.get("dry_run")


class Tries:
    """The tries of one call: how many there were, and whether one of them may still happen."""

    def __init__(self, *, has_key: bool = False, changes: bool = False) -> None:
        """Take whether the call can be sent again, and whether its caller must know what became of it."""
        self._has_key = has_key
        self._changes = changes
        self._failed = 0
        self._may_happen = False

    def pause_after(self, error: RequestRefused | ServerUnreachable) -> float | None:
        """Return after how many seconds the call is sent again; None if it is not."""
        self._failed += 1
        self._may_happen = self._may_happen or may_have_taken_effect(error)
        if self._failed >= TRIES:
            return None
        if isinstance(error, ServerUnreachable):
            # One that was never there is not waited for.
            is_back_soon = self._has_key and (error.connection_broke or self._failed > 1)
            return FIRST_PAUSE * 2 ** (self._failed - 1) if is_back_soon else None
        if error.status == TOO_MANY or (error.status == UNAVAILABLE and self._has_key):
            after = error.retry_after
            return after if after is not None and after <= LONGEST_PAUSE else None
        return None

    def outcome(self, error: RequestRefused | ServerUnreachable) -> RequestRefused | ServerUnreachable:
        """Return what the caller is to be told after the last error: a try before it may still happen."""
        if self._changes and self._may_happen and not _is_decision(error):
            return OutcomeUnknown(f"{unknown_outcome_message(str(error))}\n{LOOK_FIRST}")
        return error


def may_have_taken_effect(error: RequestRefused | ServerUnreachable) -> bool:
    """Return whether a call that failed so may have been done, or may still be."""
    if isinstance(error, ServerUnreachable):
        return error.may_have_changed
    return error.code == UNCERTAIN


def unknown_outcome_message(trouble: str) -> str:
    """Write that it is not known whether something was done, and why the last try had no answer."""
    last = trouble.splitlines()[0].removesuffix(f"; {MAY_STILL_HAPPEN}")
    return f"it is not known whether this was done, and it may still happen; the last try ended with: {last}"


def _is_decision(error: RequestRefused | ServerUnreachable) -> bool:
    """Return whether the server has looked at a call, and so at what became of those with the same key."""
    if isinstance(error, ServerUnreachable) or error.status is None:
        return False
    return error.status < FIRST_FAULT and error.status != TOO_MANY


def describe(error: Exception, seconds: float) -> str:
    """Write what a person who waits is to know."""
    return f"trying again in {seconds:g} s: {str(error).splitlines()[0]}"
