"""Who calls, who is called, and what they were answered: tokens, sessions, answers, webhooks, rehearsals."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, delete, literal, or_, select

from forewarn.core.access import Token
from forewarn.core.basic_types import ProjectName
from forewarn.core.webhook_rules import Webhook, WebhookId
from forewarn.core.rehearsal_rules import KeptRehearsal
from forewarn.core.session_cookies import BrowserSession
from forewarn.store import tables
from forewarn.store.reads.loading import SELECT_ANSWERS
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.mapping import Row, micros, moment
from forewarn.store.rows.stored import REHEARSALS, SESSIONS, TOKENS, WEBHOOKS
from forewarn.store.writes.writer import delete_rows, put, put_rows

_T, _S, _A, _W = tables.tokens.c, tables.sessions.c, tables.answers.c, tables.webhooks.c
_R = tables.rehearsals.c
_BY_CREATION = (_T.number, _T.digest)


class TokenQueries(Reader):
    """What can be asked about tokens."""

    def page(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        return self._page(TOKENS.read, TOKENS.select(), _BY_CREATION, after=after, limit=limit)

    def in_force(self) -> Sequence[Token]:
        """List the tokens that were not revoked, the oldest first; some may have expired."""
        query = TOKENS.select().where(_T.revoked_at.is_(None))
        return self._list(TOKENS.read, query.order_by(*_BY_CREATION))

    def any(self) -> bool:
        """Return whether a token was ever made."""
        return bool(self._all(select(literal(1)).select_from(tables.tokens).limit(1)))


class TokenChanges(TokenQueries):
    """The same, and what can be changed."""

    def save(self, token: Token) -> None:
        """Save a token; one with the same digest is replaced."""
        put(self._connection, TOKENS, [token])


_IN_FORCE = select(_T.digest).where(_T.revoked_at.is_(None))
_REMOVE_ENDED = delete(tables.sessions).where(
    or_(_S.expires_at <= bindparam("real_now", type_=tables.TIME), _S.token.not_in(_IN_FORCE))
)


class SessionQueries(Reader):
    """What can be asked about sessions of browsers."""

    def all(self) -> Sequence[BrowserSession]:
        """List all sessions, also of tokens that were revoked; some may be over."""
        return self._list(SESSIONS.read, SESSIONS.select())

    def find(self, digest: str) -> BrowserSession | None:
        """Find a session by its digest; it may be over."""
        return self._find(SESSIONS.read, SESSIONS.select().where(_S.digest == digest))

    def of_token(self, token: str) -> Sequence[BrowserSession]:
        """List the sessions of a token, by its digest, the oldest first."""
        mine = SESSIONS.select().where(_S.token == token)
        return self._list(SESSIONS.read, mine.order_by(_S.created_at, _S.digest))

    def changes(self) -> int:
        """Return how often sessions have changed."""
        return self._meta.session_changes


class SessionChanges(SessionQueries):
    """The same, and what can be changed."""

    def save(self, session: BrowserSession) -> None:
        """Save a session."""
        put(self._connection, SESSIONS, [session])
        self._count_change()

    def remove(self, digests: Sequence[str]) -> None:
        """Remove sessions, by their digests."""
        if digests:
            delete_rows(self._connection, _S.digest, digests)
            self._count_change()

    def remove_ended(self, real_now: datetime) -> None:
        """Remove sessions that are over, and those of tokens that were revoked."""
        if self._connection.execute(_REMOVE_ENDED, {"real_now": micros(real_now)}).rowcount:
            self._count_change()

    def _count_change(self) -> None:
        self._transaction.keep(replace(self._meta, session_changes=self._meta.session_changes + 1))


_KEYS = select(_A.caller, _A.key)
_REMOVE = delete(tables.answers).where(_A.caller == bindparam("of"), _A.key == bindparam("for"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer:
    """What a call was answered, as it is kept."""

    caller: str
    key: str  # a digest
    request: str  # a digest of what was asked for
    status: int
    salt: str
    body: bytes | None  # sealed; None: it was too large to be kept
    saved_at: datetime  # in real time


class AnswerQueries(Reader):
    """What can be asked about saved answers."""

    def find(self, caller: str, key: str) -> SavedAnswer | None:
        """Find what a call was answered."""
        loaded = self._transaction.loaded.answers
        if (caller, key) in loaded:
            return next(map(_answer, loaded[caller, key]), None)
        return self._find(_answer, SELECT_ANSWERS.where(_A.caller == caller, _A.key == key))

    def old(self, before: datetime, *, limit: int) -> Sequence[tuple[str, str]]:
        """List callers and keys of answers saved before a moment, the oldest first."""
        return self._keys(_KEYS.where(_A.saved_at < micros(before)).order_by(_A.saved_at).limit(limit))

    def surplus(self, caller: str, *, keep: int, limit: int) -> Sequence[tuple[str, str]]:
        """List a caller's answers but for the newest; each with its caller and key."""
        newest_first = _KEYS.where(_A.caller == caller).order_by(_A.saved_at.desc(), _A.key.desc())
        return self._keys(newest_first.offset(keep).limit(limit))

    def _keys(self, query: Select[Any]) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._all(query)]


class AnswerChanges(AnswerQueries):
    """The same, and what can be changed."""

    def save(self, answer: SavedAnswer) -> None:
        """Save what a call was answered; an older answer to the same key is replaced."""
        row = asdict(answer) | {"saved_at": micros(answer.saved_at)}
        self._transaction.loaded.answers.pop((answer.caller, answer.key), None)
        put_rows(self._connection, tables.answers, [row])

    def remove(self, answers: Sequence[tuple[str, str]]) -> None:
        """Remove answers, by caller and key."""
        if answers:
            rows = [{"of": caller, "for": key} for caller, key in answers]
            self._connection.execute(_REMOVE, rows)


def _answer(row: Row) -> SavedAnswer:
    written = dict(zip(tables.answers.columns.keys(), row, strict=True))
    return SavedAnswer(**written | {"saved_at": moment(written["saved_at"])})


class WebhookQueries(Reader):
    """What can be asked about webhooks."""

    def find(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; ids in any case."""
        query = WEBHOOKS.select().where(_W.id == webhook.upper())
        return self._find(WEBHOOKS.read, self._mine(query, _W.owner))

    def page(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first; None lists those of all projects and of none."""
        query = self._mine(WEBHOOKS.select(), _W.owner)
        if project is not None:
            query = query.where(_W.project == project)
        return self._page(WEBHOOKS.read, query, (_W.number, _W.id), after=after, limit=limit)

    def count(self, *, owner: ProjectName | None = None) -> int:
        """Count a project's own webhooks; None counts all there are."""
        query = WEBHOOKS.select()
        return self._count(query if owner is None else query.where(_W.owner == owner))


class WebhookChanges(WebhookQueries):
    """The same, and what can be changed."""

    def save(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        put(self._connection, WEBHOOKS, [webhook])

    def remove(self, webhook: WebhookId) -> None:
        """Remove a webhook."""
        delete_rows(self._connection, _W.id, [webhook.upper()])


_OLDEST_FIRST = REHEARSALS.select().order_by(_R.renewed_at, _R.project, _R.id)
_REMOVE_REHEARSAL = delete(tables.rehearsals).where(
    _R.project == bindparam("of"), _R.id == bindparam("which")
)
_REMOVE_ENDED_REHEARSALS = delete(tables.rehearsals).where(
    _R.ended_by != "", _R.renewed_at < bindparam("before", type_=tables.TIME)
)


class RehearsalQueries(Reader):
    """What can be asked about rehearsals."""

    def all(self) -> Sequence[KeptRehearsal]:
        """List all rehearsals that go on, and those that were ended for good, the latest last."""
        return self._list(REHEARSALS.read, _OLDEST_FIRST)


class RehearsalSaving(Reader):
    """What can be changed for a project: its own rehearsal is known to who has it."""

    def save(self, rehearsal: KeptRehearsal) -> None:
        """Save a rehearsal, new or known."""
        put(self._connection, REHEARSALS, [rehearsal])


class RehearsalChanges(RehearsalQueries, RehearsalSaving):
    """All rehearsals, and what can be changed of them."""

    def save(self, rehearsal: KeptRehearsal) -> None:
        """Save a rehearsal, new or known."""
        put(self._connection, REHEARSALS, [rehearsal])

    def remove(self, project: ProjectName, rehearsal: str) -> None:
        """Forget a rehearsal."""
        self._connection.execute(_REMOVE_REHEARSAL, {"of": project, "which": rehearsal})

    def remove_ended(self, before: datetime) -> None:
        """Forget those that were ended for good and last asked for before a moment of real time."""
        self._connection.execute(_REMOVE_ENDED_REHEARSALS, {"before": micros(before)})
