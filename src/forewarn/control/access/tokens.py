"""Making, listing and revoking tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from forewarn.control.push.webhooks import MOST_WEBHOOKS, named
from forewarn.control.use_case import Context, FleetReading, UseCase
from forewarn.core import access
from forewarn.core.access import Grant, Keyring, Token
from forewarn.core.copies import replace
from forewarn.core.filters import RecordFilter
from forewarn.core.words import Kind
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


class TokenViews(FleetReading):
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
