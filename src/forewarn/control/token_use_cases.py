"""Tokens, and the sessions that browsers begin with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.control.use_case import Context, Reading, UseCase
from forewarn.control.webhook_use_cases import MOST_WEBHOOKS, named
from forewarn.core import access
from forewarn.core import session_cookies as rules
from forewarn.core.access import Grant, Keyring, Token, digest_of
from forewarn.core.basic_types import Kind
from forewarn.core.errors import Conflict
from forewarn.core.filters import RecordFilter
from forewarn.core.session_cookies import BrowserSession, Identified, OpenSessions
from forewarn.store.batch import Transaction
from forewarn.store.queries.records import RecordQueries
from forewarn.store.snapshots import Snapshot

LAST_OPERATOR = (
    "no operator's token is left, so nobody can run the fleet: "
    "make one on the store with `forewarn token create --role operator --database …`"
)

_OF_TOKENS = RecordFilter(kinds=frozenset({Kind.TOKEN_CREATED.value, Kind.TOKEN_REVOKED.value}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """A token that is no longer good, and what goes on without it."""

    token: Token
    warnings: tuple[str, ...]


class TokenViews(Reading):
    """What can be asked about tokens."""

    def list(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        with self._store.read() as snapshot:
            return snapshot.tokens.page(after=after, limit=limit)


class Tokens(UseCase, TokenViews):
    """The use cases about tokens."""

    def __init__(self, context: Context, *, new_secret: Callable[[], str]) -> None:
        """Take a maker of random texts that cannot be guessed."""
        super().__init__(context)
        self._new_secret = new_secret

    def create(self, tx: Transaction, wanted: Grant, *, by: str) -> tuple[Token, str]:
        """Make a token; returns its secret too, which is never to be had again."""
        secret = f"{access.PREFIX}{self._new_secret()}"
        access.check_grant(wanted, _keyring(tx), projects=[each.name for each in tx.fleet.projects()])
        with self._saving(tx) as draft:
            token = access.granted(wanted, secret=secret, by=by, now=draft.now, number=draft.number + 1)
            draft.record(Kind.TOKEN_CREATED, None, by=by, reason=access.describe(token))
        token = replace(token, number=draft.given(token.number))
        tx.tokens.save(token)
        return token, secret

    def revoke(self, tx: Transaction, name: str, *, by: str) -> Revoked:
        """End a token at once."""
        with self._saving(tx) as draft:
            token = access.revoke(name, tx.tokens.in_force(), now=draft.now)
            draft.record(Kind.TOKEN_REVOKED, None, by=by, reason=access.describe(token))
        tx.tokens.save(token)
        return Revoked(token=token, warnings=tuple(_warnings(tx, token)))


def keyring(snapshot: Snapshot, known: Keyring | None) -> Keyring:
    """Return all tokens in force, by which callers are known; they are loaded if those known are old."""
    if known is None or _have_changed(snapshot.records, known):
        return _keyring(snapshot)
    return replace(known, number=snapshot.records.newest())


def _have_changed(records: RecordQueries, known: Keyring) -> bool:
    """Return whether a token was made or revoked, by whatever process: each is recorded."""
    if records.pruning().up_to > known.number:
        return True
    return bool(records.following(known.number, _OF_TOKENS, limit=1).records)


def _warnings(snapshot: Snapshot, revoked: Token) -> Iterator[str]:
    if not access.operators(snapshot.tokens.in_force(), now=revoked.revoked_at or revoked.created_at):
        yield LAST_OPERATOR
    every, _ = snapshot.webhooks.page(project=None, after=None, limit=MOST_WEBHOOKS)
    for webhook in every:
        if webhook.by == revoked.name:
            yield f"{named(webhook)} was added with it and goes on: remove it if nobody else needs it"


def _keyring(snapshot: Snapshot) -> Keyring:
    return Keyring(
        tokens=tuple(snapshot.tokens.in_force()),
        unused=not snapshot.tokens.any(),
        number=snapshot.records.newest(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSession:
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

    def sign_in(self, tx: Transaction, by: Identified, *, instead_of: str | None = None) -> BegunSession:
        """Begin a session of the token that a call was made with, perhaps instead of one with this digest.

        Sessions that are over are removed meanwhile: so there are never many.
        """
        token, now = rules.token_for_session(by), self.real_now()
        secret = f"{rules.SESSION_PREFIX}{self._new_secret()}"
        session = rules.begun(token, secret=secret, real_now=now, life=self.life)
        tx.sessions.remove_ended(now)
        mine = [each for each in tx.sessions.of_token(token.digest) if each.digest != instead_of]
        gone = [each.digest for each in rules.surplus(mine)]
        if instead_of is not None:
            gone.append(instead_of)
        tx.sessions.remove(gone)
        tx.sessions.save(session)
        return BegunSession(session=session, secret=secret, ended_others=bool(gone))

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
