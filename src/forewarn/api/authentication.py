"""Authentication: who asks, by tokens in memory, at most a moment old, even while the store is away."""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from forewarn.api.services import RunUseCase
from forewarn.clock import monotonic
from forewarn.control.tokens import Tokens
from forewarn.core.access import Caller, Keyring
from forewarn.core.errors import Unavailable

# A token that another process makes or revokes must count within a second. Where calls come often, the store
# is looked at beside them, and none of them waits.
LOOK_AGAIN_AFTER = 0.5
LOOK_AT_LEAST_AFTER = 0.9
# Real seconds, in which a worker that does not hang has its turn.
LONGEST_WAIT = 1.0


class Authenticator:
    """Finds the caller by the Authorization header.

    The store is looked at once in a while, whoever asks and however often: what a stranger sends costs a hash
    and a look-up.
    """

    def __init__(
        self,
        tokens: Tokens,
        *,
        run: RunUseCase,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Load the tokens; `run` is how they are looked at again later."""
        self._tokens = tokens
        self._run = run
        self._now = now
        self._monotonic = monotonic
        self._keyring: Keyring = tokens.keyring()
        self._looked_at = monotonic()
        self._looking: asyncio.Task[None] | None = None
        # How often tokens have changed: by now, when the store was last looked at, and is being looked at.
        self._changes = self._changes_seen = self._changes_awaited = 0

    async def caller(self, headers: Sequence[str]) -> Caller:
        """Return the caller; Anonymous if there is none for these headers."""
        secret = _secret(headers)
        # While there are no tokens all callers are operators; one with a secret knows of the first.
        if self._must_look() or (self._keyring.unused and secret is not None):
            # What hangs must not hold strangers' connections: then what is known must do.
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._look()), LONGEST_WAIT)
        elif self._monotonic() - self._looked_at > LOOK_AGAIN_AFTER:
            self._look()
        return self._keyring.caller(secret, now=self._now())

    def forget(self) -> None:
        """Look at the store before the next call: the worker is changing tokens."""
        self._changes += 1

    def _must_look(self) -> bool:
        is_behind = self._changes_seen != self._changes
        return is_behind or self._monotonic() - self._looked_at > LOOK_AT_LEAST_AFTER

    def _look(self) -> "asyncio.Task[None]":
        """Look at the store, once for all who wait for it; the first of them may go away meanwhile."""
        is_behind = self._changes_awaited != self._changes
        if self._looking is None or self._looking.done() or is_behind:
            self._changes_awaited = self._changes
            self._looking = asyncio.create_task(self._refresh(self._changes))
        return self._looking

    async def _refresh(self, changes: int) -> None:
        # While the store is away, what was known must do: operators want to see how the store is.
        with suppress(Unavailable):
            self._keyring = await self._run(lambda: self._tokens.keyring(self._keyring))
        self._looked_at, self._changes_seen = self._monotonic(), changes


def _secret(headers: Sequence[str]) -> str | None:
    if len(headers) != 1:
        return None
    scheme, _, given = headers[0].strip().partition(" ")
    match scheme.lower():
        case "bearer":
            return given.strip() or None
        case "basic":
            return _password(given) or None
        case _:
            return None


def _password(given: str) -> str:
    """Take the password of Basic authentication, whatever the name: calendars can send nothing else."""
    try:
        return b64decode(given.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""
