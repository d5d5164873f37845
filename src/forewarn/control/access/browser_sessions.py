"""Signing browsers in and out."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.control.access.tokens import keyring
from forewarn.control.use_case import Context, Reading, UseCase
from forewarn.core import session_cookies as rules
from forewarn.core.access import Keyring, digest_of
from forewarn.core.copies import replace
from forewarn.core.errors import Conflict
from forewarn.core.session_cookies import BrowserSession, Identified, OpenSessions
from forewarn.store.batch import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A session that was begun; its secret is never to be had again."""

    session: BrowserSession
    secret: str
    ended_others: bool  # whether others have ended with that


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCallers:
    """What callers are known by, as it was loaded."""

    keyring: Keyring
    sessions: OpenSessions
    changes: int  # how often sessions had changed by then


class SessionViews(Reading):
    """What can be asked about sessions of browsers."""

    def loaded(self, known: KnownCallers | None = None) -> KnownCallers:
        """Return all sessions, and the tokens they are of; they are loaded if those known are old."""
        with self._store.read() as snapshot:
            tokens = keyring(snapshot, None if known is None else known.keyring)
            changes = snapshot.sessions.changes()
            if known is not None and known.changes == changes:
                return replace(known, keyring=tokens)
            sessions = OpenSessions(sessions=tuple(snapshot.sessions.all()))
            return KnownCallers(keyring=tokens, sessions=sessions, changes=changes)


class BrowserSessions(UseCase, SessionViews):
    """The use cases about sessions of browsers: each caller's own alone.

    They leave no records: they change nothing in the fleet. The audit tells of them.
    """

    def __init__(
        self,
        context: Context,
        *,
        new_secret: Callable[[], str],
        real_now: Callable[[], datetime],
        life: timedelta = rules.USUAL_LIFE,
    ) -> None:
        """Take a maker of texts that cannot be guessed, and a reader of real time."""
        super().__init__(context)
        self._new_secret = new_secret
        self.real_now = real_now
        self.life = life

    def sign_in(self, tx: Transaction, by: Identified, *, instead_of: str | None = None) -> Begun:
        """Begin a session of the token that a call was made with, perhaps instead of one with this digest.

        Sessions that are over are removed meanwhile: so there are never many.
        """
        token, now = rules.token_to_begin_with(by), self.real_now()
        secret = f"{rules.SESSION_PREFIX}{self._new_secret()}"
        session = rules.begun(token, secret=secret, real_now=now, life=self.life)
        tx.sessions.remove_ended(now)
        mine = [each for each in tx.sessions.of_token(token.digest) if each.digest != instead_of]
        gone = [each.digest for each in rules.surplus(mine)]
        if instead_of is not None:
            gone.append(instead_of)
        tx.sessions.remove(gone)
        tx.sessions.save(session)
        return Begun(session=session, secret=secret, ended_others=bool(gone))

    def check_open(self, tx: Transaction, secret: str) -> None:
        """Refuse to answer a sign-in again whose session has ended."""
        session = tx.sessions.find(digest_of(secret))
        if session is None or session.expires_at <= self.real_now():
            raise Conflict(
                "this sign-in was answered before, and its session has ended: "
                "use a new Idempotency-Key to sign in again"
            )

    def sign_out(self, tx: Transaction, by: Identified) -> BrowserSession:
        """End the session that a call was made with, whoever has a copy of its cookie."""
        session = rules.session_to_end(by)
        tx.sessions.remove([session.digest])
        return session
