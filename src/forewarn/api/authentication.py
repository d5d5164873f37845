"""Authentication: who asks, by tokens and sessions in memory, at most a moment old, also with no store."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from forewarn.api.services import RunRead
from forewarn.clock import monotonic
from forewarn.control.access.browser_sessions import BrowserSessions
from forewarn.core.errors import Unavailable
from forewarn.core.session_cookies import Credentials, Identified, identify
from forewarn.signals import Signal

# A token that another process makes or revokes must count within a second. Where calls come often, the store
# is looked at beside them, and none of them waits.
LOOK_AGAIN_AFTER = 0.5
LOOK_AT_LEAST_AFTER = 0.9
# Real seconds, in which a worker that does not hang has its turn.
LONGEST_WAIT = 1.0


class Authenticator:
    """Finds the caller by what a call shows.

    The store is looked at once in a while, whoever asks and however often: what a stranger sends costs a hash
    and a look-up.
    """

    def __init__(
        self,
        sessions: BrowserSessions,
        *,
        run: RunRead,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Load tokens and sessions; `run` is how they are looked at again later."""
        self._sessions = sessions
        self._run = run
        self._now = now
        self._monotonic = monotonic
        self._known = sessions.loaded()
        self.cut_off = Signal()  # somebody who was known may be no more
        self._looked_at = monotonic()
        self._looking: asyncio.Task[None] | None = None
        # By all callers, from when the first of them waits: who comes later does not wait anew.
        self._awaited_until: float | None = None
        # How often tokens have changed: by now, when the store was last looked at, and is being looked at.
        self._changes = self._changes_seen = self._changes_awaited = 0

    async def identify(self, shown: Credentials) -> Identified:
        """Return the caller; Anonymous if none can show that."""
        # While there are no tokens all callers are operators; one with a secret knows of the first.
        if self._must_look() or (self._known.keyring.unused and shown != Credentials()):
            # What hangs must not hold strangers' connections: then what is known must do.
            looking, now = self._look(), self._monotonic()
            if self._awaited_until is None:
                self._awaited_until = now + LONGEST_WAIT
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(looking), self._awaited_until - now)
            if self._is_behind():
                # What was ended must not do, nor that there were no tokens.
                raise Unavailable("tokens or sessions were changed, and cannot be read now: try again")
        elif self._monotonic() - self._looked_at > LOOK_AGAIN_AFTER:
            self._look()
        return identify(
            shown,
            self._known.keyring,
            self._known.sessions,
            now=self._now(),
            real_now=self._sessions.real_now(),
        )

    def forget(self, *, cut_off: bool = False) -> None:
        """Look at the store before the next call: tokens or sessions have changed, and that is saved.

        With `cut_off` callers may have lost what they are known by: those who follow the stream ask at once.
        """
        self._changes += 1
        if cut_off:
            self.cut_off.send()

    def _must_look(self) -> bool:
        return self._is_behind() or self._monotonic() - self._looked_at > LOOK_AT_LEAST_AFTER

    def _is_behind(self) -> bool:
        """Return whether something was changed that was not looked at since."""
        return self._changes_seen != self._changes

    def _look(self) -> "asyncio.Task[None]":
        """Look at the store, once for all who wait for it; the first of them may go away meanwhile."""
        is_behind = self._changes_awaited != self._changes
        if self._looking is None or self._looking.done() or is_behind:
            self._changes_awaited = self._changes
            self._awaited_until = None
            self._looking = asyncio.create_task(self._refresh(self._changes))
        return self._looking

    async def _refresh(self, changes: int) -> None:
        # While the store is away, what was known must do: operators want to see how the store is.
        with suppress(Unavailable):
            known = await self._run(lambda: self._sessions.loaded(self._known))
            if changes < self._changes_seen:
                return  # another look began later, and was sooner back
            self._known, self._changes_seen = known, changes
        self._looked_at = self._monotonic()
