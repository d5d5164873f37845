"""Tokens, browser sessions, saved answers, webhooks and rehearsals."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, delete, literal, or_, select

from forewarn.core.access import Token
from forewarn.core.basic_types import ProjectName
from forewarn.core.rehearsal_rules import SavedRehearsal
from forewarn.core.session_cookies import BrowserSession
from forewarn.core.webhook_rules import Webhook, WebhookId
from forewarn.store import tables
from forewarn.store.reads.open_transaction import Queries
from forewarn.store.reads.prefetching import SELECT_ANSWERS
from forewarn.store.rows.mapping import Row, micros, moment
from forewarn.store.rows.stored import REHEARSALS, SESSIONS, TOKENS, WEBHOOKS
from forewarn.store.writes.writer import delete_rows, put, put_rows

_T, _S, _A, _W = tables.tokens.c, tables.sessions.c, tables.answers.c, tables.webhooks.c
_R = tables.rehearsals.c
_BY_CREATION = (_T.number, _T.digest)


class TokenQueries(Queries):
    """Queries for tokens."""

    def page(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, revoked ones too, oldest first."""
        return self._tx.page(TOKENS.read, TOKENS.select(), _BY_CREATION, after=after, limit=limit)

    def in_force(self) -> Sequence[Token]:
        """List the tokens that were not revoked, oldest first; some may have expired."""
        query = TOKENS.select().where(_T.revoked_at.is_(None))
        return self._tx.read_all(TOKENS.read, query.order_by(*_BY_CREATION))

    def any(self) -> bool:
        """Return whether a token was ever created."""
        return bool(self._tx.rows(select(literal(1)).select_from(tables.tokens).limit(1)))


class TokenChanges(TokenQueries):
    """Queries and changes of tokens."""

    def save(self, token: Token) -> None:
        """Save a token; one with the same digest is replaced."""
        put(self._tx, TOKENS, [token])


_IN_FORCE = select(_T.digest).where(_T.revoked_at.is_(None))
_REMOVE_ENDED = delete(tables.sessions).where(
    or_(_S.expires_at <= bindparam("real_now", type_=tables.TIME), _S.token.not_in(_IN_FORCE))
)


class SessionQueries(Queries):
    """Queries for browser sessions."""

    def all(self) -> Sequence[BrowserSession]:
        """List all sessions, including expired ones and those of revoked tokens."""
        return self._tx.read_all(SESSIONS.read, SESSIONS.select())

    def find(self, digest: str) -> BrowserSession | None:
        """Find a session by its digest; it may have expired."""
        return self._tx.find(SESSIONS.read, SESSIONS.select().where(_S.digest == digest))

    def of_token(self, token: str) -> Sequence[BrowserSession]:
        """List the sessions of a token, by the digest of the token, oldest first."""
        mine = SESSIONS.select().where(_S.token == token)
        return self._tx.read_all(SESSIONS.read, mine.order_by(_S.created_at, _S.digest))

    def changes(self) -> int:
        """Return a counter of the changes of sessions."""
        return self._tx.meta.session_changes


class SessionChanges(SessionQueries):
    """Queries and changes of browser sessions."""

    def save(self, session: BrowserSession) -> None:
        """Save a session."""
        put(self._tx, SESSIONS, [session])
        self._count_change()

    def remove(self, digests: Sequence[str]) -> None:
        """Remove sessions, by their digests."""
        if digests:
            delete_rows(self._tx, _S.digest, digests)
            self._count_change()

    def remove_ended(self, real_now: datetime) -> None:
        """Remove expired sessions and the sessions of revoked tokens."""
        if self._tx.connection.execute(_REMOVE_ENDED, {"real_now": micros(real_now)}).rowcount:
            self._count_change()

    def _count_change(self) -> None:
        self._tx.update_meta(session_changes=self._tx.meta.session_changes + 1)


_KEYS = select(_A.caller, _A.key)
_REMOVE = delete(tables.answers).where(_A.caller == bindparam("of"), _A.key == bindparam("for"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer:
    """The saved answer to a call that had an idempotency key."""

    caller: str
    key: str  # a digest
    request: str  # a digest of the request
    status: int
    salt: str
    body: bytes | None  # sealed; None: it was too large to save
    saved_at: datetime  # in real time


class AnswerQueries(Queries):
    """Queries for saved answers."""

    def find(self, caller: str, key: str) -> SavedAnswer | None:
        """Find the answer to a call."""
        prefetched = self._tx.batch.prefetched.answers
        if (caller, key) in prefetched:
            return next(map(_answer, prefetched[caller, key]), None)
        return self._tx.find(_answer, SELECT_ANSWERS.where(_A.caller == caller, _A.key == key))

    def old(self, before: datetime, *, limit: int) -> Sequence[tuple[str, str]]:
        """List callers and keys of answers saved before a moment, oldest first."""
        return self._keys(_KEYS.where(_A.saved_at < micros(before)).order_by(_A.saved_at).limit(limit))

    def surplus(self, caller: str, *, keep: int, limit: int) -> Sequence[tuple[str, str]]:
        """List caller and key of all answers of a caller except the newest ones."""
        newest_first = _KEYS.where(_A.caller == caller).order_by(_A.saved_at.desc(), _A.key.desc())
        return self._keys(newest_first.offset(keep).limit(limit))

    def _keys(self, query: Select[Any]) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._tx.rows(query)]


class AnswerChanges(AnswerQueries):
    """Queries and changes of saved answers."""

    def save(self, answer: SavedAnswer) -> None:
        """Save an answer, or replace the answer with the same key."""
        row = asdict(answer) | {"saved_at": micros(answer.saved_at)}
        self._tx.batch.prefetched.answers.pop((answer.caller, answer.key), None)
        put_rows(self._tx, tables.answers, [row])

    def remove(self, answers: Sequence[tuple[str, str]]) -> None:
        """Remove answers, by caller and key."""
        if answers:
            rows = [{"of": caller, "for": key} for caller, key in answers]
            self._tx.connection.execute(_REMOVE, rows)


def _answer(row: Row) -> SavedAnswer:
    written = dict(zip(tables.answers.columns.keys(), row, strict=True))
    return SavedAnswer(**written | {"saved_at": moment(written["saved_at"])})


class WebhookQueries(Queries):
    """Queries for webhooks."""

    def find(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; the case of the id does not matter."""
        query = WEBHOOKS.select().where(_W.id == webhook.upper())
        return self._tx.find(WEBHOOKS.read, self._tx.in_scope(query, _W.owner))

    def page(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first; project None lists all of them."""
        query = self._tx.in_scope(WEBHOOKS.select(), _W.owner)
        if project is not None:
            query = query.where(_W.project == project)
        return self._tx.page(WEBHOOKS.read, query, (_W.number, _W.id), after=after, limit=limit)

    def count(self, *, owner: ProjectName | None = None) -> int:
        """Count the webhooks that a project owns; None counts all."""
        query = WEBHOOKS.select()
        return self._tx.count(query if owner is None else query.where(_W.owner == owner))


class WebhookChanges(WebhookQueries):
    """Queries and changes of webhooks."""

    def save(self, webhook: Webhook) -> None:
        """Save a webhook."""
        put(self._tx, WEBHOOKS, [webhook])

    def remove(self, webhook: WebhookId) -> None:
        """Remove a webhook."""
        delete_rows(self._tx, _W.id, [webhook.upper()])


_OLDEST_FIRST = REHEARSALS.select().order_by(_R.renewed_at, _R.project, _R.id)
_REMOVE_REHEARSAL = delete(tables.rehearsals).where(
    _R.project == bindparam("of"), _R.id == bindparam("which")
)
_REMOVE_ENDED_REHEARSALS = delete(tables.rehearsals).where(
    _R.ended_by != "", _R.renewed_at < bindparam("before", type_=tables.TIME)
)


class RehearsalQueries(Queries):
    """Queries for rehearsals."""

    def all(self) -> Sequence[SavedRehearsal]:
        """List all rehearsals, running and permanently ended ones, latest last."""
        return self._tx.read_all(REHEARSALS.read, _OLDEST_FIRST)


class RehearsalSaving(Queries):
    """The change of rehearsals that a project may make."""

    def save(self, rehearsal: SavedRehearsal) -> None:
        """Save a rehearsal."""
        put(self._tx, REHEARSALS, [rehearsal])


class RehearsalChanges(RehearsalQueries, RehearsalSaving):
    """Queries and changes of all rehearsals."""

    def remove(self, project: ProjectName, rehearsal: str) -> None:
        """Remove a rehearsal."""
        self._tx.connection.execute(_REMOVE_REHEARSAL, {"of": project, "which": rehearsal})

    def remove_ended(self, before: datetime) -> None:
        """Remove permanently ended rehearsals that were last renewed before a moment of real time."""
        self._tx.connection.execute(_REMOVE_ENDED_REHEARSALS, {"before": micros(before)})
