"""Tokens: make, list and revoke them, and know whose they are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from forewarn.control.ports.clock import Clock
from forewarn.control.ports.store import Snapshot, Store
from forewarn.control.webhooks import MOST_WEBHOOKS, named
from forewarn.core import access
from forewarn.core.access import Grant, Keyring, Token
from forewarn.core.draft import Draft
from forewarn.core.words import Kind

LAST_OPERATOR = (
    "no operator's token is left, so nobody can run the fleet: "
    "make one on the store with `forewarn token create --role operator --database …`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """A token that is no longer good, and what whoever revoked it may not have thought of."""

    token: Token
    warnings: tuple[str, ...]


class Tokens:
    """The use cases about tokens."""

    def __init__(
        self, *, store: Store, clock: Clock, new_id: Callable[[], str], new_secret: Callable[[], str]
    ) -> None:
        """Take a maker of random texts that nobody can guess."""
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._new_secret = new_secret

    def create(self, wanted: Grant, *, by: str) -> tuple[Token, str]:
        """Make a token; returns its secret too, which is never to be had again."""
        secret = f"{access.PREFIX}{self._new_secret()}"
        with self._store.write() as tx:
            draft = Draft(tx.around(), now=self._clock.now(), new_id=self._new_id)
            access.check_grant(wanted, _keyring(tx), projects=[each.name for each in tx.projects()])
            token = access.granted(wanted, secret=secret, by=by, now=draft.now, number=draft.number + 1)
            draft.record(Kind.TOKEN_CREATED, None, by=by, reason=access.said(token))
            tx.save_token(token)
            tx.save(draft.changes())
        return token, secret

    def revoke(self, name: str, *, by: str) -> Revoked:
        """End a token at once."""
        with self._store.write() as tx:
            draft = Draft(tx.around(), now=self._clock.now(), new_id=self._new_id)
            token = access.revoke(name, tx.tokens_in_force(), now=draft.now)
            draft.record(Kind.TOKEN_REVOKED, None, by=by, reason=access.said(token))
            tx.save_token(token)
            tx.save(draft.changes())
            return Revoked(token=token, warnings=tuple(_warnings(tx, token)))

    def list(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        with self._store.read() as snapshot:
            return snapshot.tokens(after=after, limit=limit)

    def keyring(self) -> Keyring:
        """Load what is needed to know who asks."""
        with self._store.read() as snapshot:
            return _keyring(snapshot)


def _warnings(snapshot: Snapshot, revoked: Token) -> Iterator[str]:
    if not access.operators(snapshot.tokens_in_force(), now=revoked.revoked_at or revoked.created_at):
        yield LAST_OPERATOR
    every, _ = snapshot.webhooks(project=None, after=None, limit=MOST_WEBHOOKS)
    for webhook in every:
        if webhook.by == revoked.name:
            yield f"{named(webhook)} was added with it and goes on: remove it if nobody else needs it"


def _keyring(snapshot: Snapshot) -> Keyring:
    return Keyring(tokens=tuple(snapshot.tokens_in_force()), unused=not snapshot.has_tokens())
