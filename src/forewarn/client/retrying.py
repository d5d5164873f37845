"""Retries: a call over a rate limit has changed nothing, and a call with an idempotency key runs once."""

from collections.abc import Mapping
from typing import Any

from forewarn.client.replies import (
    TOO_MANY,
    UNAVAILABLE,
    OutcomeUnknown,
    RequestRefused,
    ServerUnreachable,
)
from forewarn.core.errors import RETRY_ADVICE

KEY_HEADER = "Idempotency-Key"
# The error code of the API for a call whose outcome is not known.
UNCERTAIN = "Uncertain"
FIRST_FAULT = 500
LOOK_FIRST = (
    "Repeating the command is a new request: once the server answers, check whether the first took effect "
    "(`forewarn history`, `forewarn order list`)."
)
TRIES = 5
# Seconds after the first broken connection; doubled each time. The server may be restarting.
FIRST_PAUSE = 0.5
# A longer pause is an error at once: it is the limit of a project, not a rate limit.
LONGEST_PAUSE = 10.0


def new_key() -> str:
    """Return a new idempotency key."""
    import uuid

    return str(uuid.uuid4())


def changes_something(method: str, *, body: object, params: Mapping[str, Any]) -> bool:
    """Return whether a call may change something: it is not a read, and not a dry run."""
    given = body if isinstance(body, Mapping) else {}
    return method != "GET" and not given.get("dry_run") and not params.get("dry_run")


class RetryState:
    """The tries of one call: how many have failed, and whether one of them may still take effect."""

    def __init__(self, *, has_key: bool = False, changes: bool = False) -> None:
        """Take whether the call has an idempotency key, and whether it changes something."""
        self._has_key = has_key
        self._changes = changes
        self._failed = 0
        self._may_happen = False

    def pause_after(self, error: RequestRefused | ServerUnreachable) -> float | None:
        """Return the seconds until the next try; None if there is none."""
        self._failed += 1
        self._may_happen = self._may_happen or may_have_taken_effect(error)
        if self._failed >= TRIES:
            return None
        if isinstance(error, ServerUnreachable):
            # A server that never answered is not retried.
            may_return = self._has_key and (error.connection_broke or self._failed > 1)
            return FIRST_PAUSE * 2 ** (self._failed - 1) if may_return else None
        if error.status == TOO_MANY or (error.status == UNAVAILABLE and self._has_key):
            after = error.retry_after
            return after if after is not None and after <= LONGEST_PAUSE else None
        return None

    def outcome(self, error: RequestRefused | ServerUnreachable) -> RequestRefused | ServerUnreachable:
        """Return the error of the call: OutcomeUnknown if an earlier try may still take effect."""
        # A decision of the server includes the outcome of earlier tries with the same key.
        status = error.status if isinstance(error, RequestRefused) else None
        is_decision = status is not None and status < FIRST_FAULT and status != TOO_MANY
        if self._changes and self._may_happen and not is_decision:
            return OutcomeUnknown(f"{unknown_outcome_message(str(error))}\n{LOOK_FIRST}")
        return error


def may_have_taken_effect(error: RequestRefused | ServerUnreachable) -> bool:
    """Return whether a failed call may have taken effect, or may still."""
    return error.may_have_changed if isinstance(error, ServerUnreachable) else error.code == UNCERTAIN


def unknown_outcome_message(trouble: str) -> str:
    """Return the message for an unknown outcome, with the error of the last try."""
    last = trouble.splitlines()[0].removesuffix(f"; {RETRY_ADVICE}")
    return f"it is not known whether this was done, and it may still happen; the last try ended with: {last}"
