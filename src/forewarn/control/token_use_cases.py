"""Tokens, and the browser sessions that begin with a token."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

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
from forewarn.store.snapshots import Snapshot

LAST_OPERATOR = (
    "no operator token is left, so the fleet cannot be operated: "
    "create one on the store with `forewarn token create --role operator --database …`"
)

_OF_TOKENS = RecordFilter(kinds=frozenset({Kind.TOKEN_CREATED.value, Kind.TOKEN_REVOKED.value}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """A revoked token, and warnings about what keeps working without it."""

    token: Token
    warnings: tuple[str, ...]


class TokenViews(Reading):
    """Reads about tokens."""

    def list(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, oldest first, including revoked ones."""
        with self._store.read() as snapshot:
            return snapshot.tokens.page(after=after, limit=limit)


class Tokens(UseCase, TokenViews):
    """Use cases that create and revoke tokens."""

    def __init__(self, context: Context, *, new_secret: Callable[[], str]) -> None:
        """Take a generator of unguessable secrets."""
        super().__init__(context)
        self._new_secret = new_secret

    def create(self, tx: Transaction, wanted: Grant, *, by: str) -> tuple[Token, str]:
        """Create a token. Return it with its secret, which cannot be retrieved later."""
        secret = f"{access.PREFIX}{self._new_secret()}"
        access.check_grant(wanted, _keyring(tx), projects=[each.name for each in tx.fleet.projects()])
        with self._saving(tx) as draft:
            token = access.granted(wanted, secret=secret, by=by, now=draft.now, number=draft.number + 1)
            draft.record(Kind.TOKEN_CREATED, None, by=by, reason=access.describe(token))
        token = replace(token, number=draft.given(token.number))
        tx.tokens.save(token)
        return token, secret

    def revoke(self, tx: Transaction, name: str, *, by: str) -> Revoked:
        """Revoke a token immediately."""
        with self._saving(tx) as draft:
            token = access.revoke(name, tx.tokens.in_force(), now=draft.now)
            draft.record(Kind.TOKEN_REVOKED, None, by=by, reason=access.describe(token))
        tx.tokens.save(token)
        return Revoked(token=token, warnings=tuple(_warnings(tx, token)))


def keyring(snapshot: Snapshot, known: Keyring | None) -> Keyring:
    """Return all tokens in force. They are loaded only if the known ones are stale."""
    records = snapshot.records
    # Each change of a token, by any process, has a record, unless pruning has removed it.
    if (
        known is None
        or records.pruning().up_to > known.number
        or records.following(known.number, _OF_TOKENS, limit=1).records
    ):
        return _keyring(snapshot)
    return replace(known, number=records.newest())


def _warnings(snapshot: Snapshot, revoked: Token) -> Iterator[str]:
    if not access.operators(snapshot.tokens.in_force(), now=revoked.revoked_at or revoked.created_at):
        yield LAST_OPERATOR
    every, _ = snapshot.webhooks.page(project=None, after=None, limit=MOST_WEBHOOKS)
    for webhook in every:
        if webhook.by == revoked.name:
            yield f"{named(webhook)} was added with it and stays active: remove it if it is no longer needed"


def _keyring(snapshot: Snapshot) -> Keyring:
    return Keyring(
        tokens=tuple(snapshot.tokens.in_force()),
        unused=not snapshot.tokens.any(),
        number=snapshot.records.newest(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSession:
    """A new session. Its secret cannot be retrieved later."""

    session: BrowserSession
    secret: str
    ended_others: bool  # whether it has replaced other sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCallers:
    """The tokens and sessions by which callers are identified."""

    keyring: Keyring
    sessions: OpenSessions
    changes: int  # the change counter of sessions


class SessionViews(Reading):
    """Reads about browser sessions."""

    def loaded(self, known: KnownCallers | None = None) -> KnownCallers:
        """Return all sessions and tokens. They are loaded only if the known ones are stale."""
        with self._store.read() as snapshot:
            tokens = keyring(snapshot, None if known is None else known.keyring)
            changes = snapshot.sessions.changes()
            if known is not None and known.changes == changes:
                return replace(known, keyring=tokens)
            sessions = OpenSessions(sessions=tuple(snapshot.sessions.all()))
            return KnownCallers(keyring=tokens, sessions=sessions, changes=changes)


class BrowserSessions(UseCase, SessionViews):
    """Use cases for browser sessions; each caller manages only its own.

    Sessions leave no records, because they change nothing in the fleet. The audit log contains them.
    """

    def __init__(
        self,
        context: Context,
        *,
        new_secret: Callable[[], str],
        life: timedelta = rules.USUAL_LIFE,
    ) -> None:
        """Take a generator of unguessable secrets."""
        super().__init__(context)
        self._new_secret = new_secret
        self.real_now = context.real_now
        self.life = life

    def sign_in(self, tx: Transaction, by: Identified, *, instead_of: str | None = None) -> BegunSession:
        """Begin a session with the token of this call. `instead_of` is the digest of a session to replace.

        It also removes expired sessions, so that there are never many.
        """
        token, now = rules.token_for_session(by), self.real_now()
        secret = f"{rules.SESSION_PREFIX}{self._new_secret()}"
        session = rules.begun(token, secret=secret, real_now=now, life=self.life)
        tx.sessions.remove_ended(now)
        others = [each for each in tx.sessions.of_token(token.digest) if each.digest != instead_of]
        gone = [each.digest for each in rules.surplus(others)]
        if instead_of is not None:
            gone.append(instead_of)
        tx.sessions.remove(gone)
        tx.sessions.save(session)
        return BegunSession(session=session, secret=secret, ended_others=bool(gone))

    def check_open(self, tx: Transaction, secret: str) -> None:
        """Raise Conflict if a repeated sign-in would return a session that has ended."""
        session = tx.sessions.find(digest_of(secret))
        if session is None or session.expires_at <= self.real_now():
            raise Conflict(
                "this sign-in was answered before, and its session has ended: "
                "use a new Idempotency-Key to sign in again"
            )

    def sign_out(self, tx: Transaction, by: Identified) -> BrowserSession:
        """End the session of this call for all copies of its cookie."""
        session = rules.session_to_end(by)
        tx.sessions.remove([session.digest])
        return session
