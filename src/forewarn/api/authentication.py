"""Authentication: who asks, by tokens that are at most a moment old, even while the store is away."""

from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import datetime

from forewarn.api.services import RunUseCase
from forewarn.clock import monotonic
from forewarn.control.tokens import Tokens
from forewarn.core.access import Caller, Keyring
from forewarn.core.errors import Anonymous, Unavailable

# A token that another process revokes must not be good for longer than a second.
LOOK_AGAIN_AFTER = 0.5


class Authenticator:
    """Finds the caller by the Authorization header."""

    def __init__(
        self,
        tokens: Tokens,
        *,
        run: RunUseCase,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """Load the tokens; `run` is how they are loaded again later."""
        self._tokens = tokens
        self._run = run
        self._now = now
        self._monotonic = monotonic
        self._keyring: Keyring = tokens.keyring()
        self._loaded_at: float | None = monotonic()

    async def caller(self, headers: Sequence[str]) -> Caller:
        """Return the caller; Anonymous if there is none for these headers."""
        secret = _secret(headers)
        # Who has a secret knows of a token: the first one may have been made this moment.
        if self._is_old() or (secret is not None and self._keyring.unused):
            await self._load()
        try:
            return self._keyring.caller(secret, now=self._now())
        except Anonymous:
            if secret is None:
                raise
        # Perhaps it was made this moment, by another process.
        await self._load()
        return self._keyring.caller(secret, now=self._now())

    def _is_old(self) -> bool:
        return self._loaded_at is None or self._monotonic() - self._loaded_at > LOOK_AGAIN_AFTER

    def forget(self) -> None:
        """Load the tokens again before the next call: they have changed."""
        self._loaded_at = None

    async def _load(self) -> None:
        try:
            self._keyring = await self._run(self._tokens.keyring)
            self._loaded_at = self._monotonic()
        except Unavailable:
            # What was known must do: operators want to see how the store is.
            pass


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
