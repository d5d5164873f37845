"""The transaction of control's ports: a snapshot that can be written to."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from hashlib import sha256
from json import dumps

from sqlalchemy import Connection, bindparam, delete, func, or_, select

from forewarn.control.ports.answers import SavedAnswer
from forewarn.control.ports.saved import SavedChanges
from forewarn.core.access import Token
from forewarn.core.browser_sessions import BrowserSession
from forewarn.core.errors import Conflict
from forewarn.core.model.absence import Absence
from forewarn.core.model.changes import Changes
from forewarn.core.model.hold import Grace
from forewarn.core.model.service_time import TimeKind
from forewarn.core.model.slice import Sent
from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.core.rehearsal.kept_rehearsal import KeptRehearsal
from forewarn.core.retention import Pruning
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.reads.reader import KnownMeta
from forewarn.store.reads.snapshot import ProjectSnapshot, SqlSnapshot
from forewarn.store.rows.meta import Meta
from forewarn.store.rows.stored import HOLDS, PROJECTS, REHEARSALS, ROLLOUTS, SESSIONS, TOKENS, WEBHOOKS
from forewarn.store.rows.times import micros
from forewarn.store.writes.fleet_writes import FleetWrites
from forewarn.store.writes.rehearsal_writes import RehearsalWrites
from forewarn.store.writes.tombstones import Tombstones
from forewarn.store.writes.waking import Waking
from forewarn.store.writes.work_writes import WorkWrites

_S, _T = tables.sessions.c, tables.tokens.c
_IN_FORCE = select(_T.digest).where(_T.revoked_at.is_(None))
_REMOVE_ENDED = delete(tables.sessions).where(
    or_(_S.expires_at <= bindparam("real_now", type_=tables.TIME), _S.token.not_in(_IN_FORCE))
)

_COUNT_BLOCKED = select(func.count()).where(tables.OPEN_ROLLOUT, tables.rollouts.c.blocked)
_A = tables.answers.c
_REMOVE_ANSWER = delete(tables.answers).where(_A.caller == bindparam("of"), _A.key == bindparam("for"))


class ProjectTransaction(ProjectSnapshot, FleetWrites, Tombstones, WorkWrites, Waking):
    """Reads and writes, one transaction at a time: it holds the lock on the counter from the start."""

    def __init__(
        self,
        connection: Connection,
        *,
        project: ProjectName | None = None,
        known: KnownMeta | None = None,
        saved: list[SavedChanges] | None = None,
    ) -> None:
        """Write on a connection; what was saved is added to a list."""
        super().__init__(connection, lock=True, project=project, known=known)
        self._saved = [] if saved is None else saved

    def save(self, changes: Changes) -> Changes:
        """Save what was decided, and return it with the numbers that it was given.

        Unavailable if it cannot be saved, Conflict if it was decided on what is saved no longer.
        """
        before = self._meta.number
        if changes.as_of is not None and changes.as_of != before:
            raise Conflict("somebody else has saved something meanwhile: try again")
        changes = changes.numbered(after=before)
        if changes.empty:
            return changes
        self._found.clear()
        number = _newest(changes, before)
        self._save_fleet(changes, number=number)
        forgotten = self._bury(changes, number=number)
        self._save_orders(changes)
        self._save_events(changes.events)
        self._save_records(changes.records)
        tallies = [{"kind": kind.value, "machines": count} for kind, count in changes.tallies.items()]
        self._add(tables.tallies, tallies)
        self._add(tables.promises, [asdict(counted) for counted in changes.promises])
        wakes = self._wake(changes)
        self._save(ROLLOUTS, changes.rollouts)
        self._save_meta(replace(self._meta_after(changes, number), forgotten=forgotten))
        self._saved.append(SavedChanges(before=before, number=number, changes=changes, wakes=wakes))
        return changes

    def _meta_after(self, changes: Changes, number: int) -> Meta:
        meta = replace(self._meta, number=number, reached=self._not_before(changes.now))
        if changes.defaults is not None:
            meta = replace(meta, defaults=changes.defaults)
        if changes.projects or changes.holds or changes.removed_projects or changes.removed_holds:
            meta = replace(meta, settings_version=_version_after(meta.settings_version, changes))
        if changes.rollouts:
            meta = replace(meta, blocked_rollouts=self._connection.scalar(_COUNT_BLOCKED) or 0)
        return meta

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; what is saved already stays as it is."""
        rows = [
            {"event_id": event.upper(), "machine_id": machine.lower(), "sent_at": micros(at)}
            for event, machines in sent.items()
            for machine, at in machines.items()
        ]
        self._put(tables.notices, rows, keep=("sent_at",))

    def save_webhook(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        self._save(WEBHOOKS, [webhook])

    def remove_webhook(self, webhook: WebhookId) -> None:
        """Remove a webhook."""
        self._delete(tables.webhooks.c.id, [webhook.upper()])

    def save_rehearsal(self, rehearsal: KeptRehearsal) -> None:
        """Save a rehearsal, new or known."""
        self._save(REHEARSALS, [rehearsal])

    def _not_before(self, now: datetime) -> datetime:
        return now if self._meta.reached is None else max(now, self._meta.reached)

    def _save_meta(self, meta: Meta) -> None:
        self._known.meta = meta  # written when the whole transaction is saved


def _newest(changes: Changes, before: int) -> int:
    """Return the number by which readers of the feed will find changes that are numbered."""
    newest = max((record.number for record in changes.records), default=before)
    boards_must_know = (
        changes.groups or changes.machines or changes.removed_groups or changes.removed_machines
    )
    # A change without a record needs a number too, or it would hide behind the last one.
    return before + 1 if newest == before and boards_must_know else newest


def _version_after(version: str, changes: Changes) -> str:
    """Return a text that stands for the projects and holds after these changes, and for no others ever."""
    written = [
        *map(PROJECTS.write, changes.projects),
        *map(HOLDS.write, changes.holds),
        *(changes.removed_projects, changes.removed_holds),
    ]
    return sha256(f"{version} {dumps(written)}".encode()).hexdigest()


class SqlTransaction(ProjectTransaction, RehearsalWrites, SqlSnapshot):
    """The same, for what no project has a share in."""

    def remove_records(self, numbers: Sequence[int]) -> None:
        """Remove records."""
        self._delete(tables.records.c.number, numbers)

    def save_token(self, token: Token) -> None:
        """Save a token; one with the same digest is replaced."""
        self._save(TOKENS, [token])

    def save_session(self, session: BrowserSession) -> None:
        """Save a session of a browser."""
        self._save(SESSIONS, [session])
        self._count_session_change()

    def remove_sessions(self, digests: Sequence[str]) -> None:
        """Remove sessions of browsers."""
        if digests:
            self._delete(_S.digest, digests)
            self._count_session_change()

    def remove_ended_sessions(self, real_now: datetime) -> None:
        """Remove sessions that are over, and those of tokens that were revoked."""
        if self._connection.execute(_REMOVE_ENDED, {"real_now": micros(real_now)}).rowcount:
            self._count_session_change()

    def save_answer(self, answer: SavedAnswer) -> None:
        """Save what a call was answered; an older answer to the same key is replaced."""
        self._put(tables.answers, [asdict(answer) | {"saved_at": micros(answer.saved_at)}])

    def remove_answers(self, answers: Sequence[tuple[str, str]]) -> None:
        """Remove answers, by caller and key."""
        if answers:
            rows = [{"of": caller, "for": key} for caller, key in answers]
            self._connection.execute(_REMOVE_ANSWER, rows)

    def _count_session_change(self) -> None:
        self._save_meta(replace(self._meta, session_changes=self._meta.session_changes + 1))

    def set_reached(self, now: datetime) -> None:
        """Save the service time reached; it never goes back."""
        self._save_meta(replace(self._meta, reached=self._not_before(now)))

    def set_time_kind(self, kind: TimeKind) -> None:
        """Save whose time the store lives in."""
        self._save_meta(replace(self._meta, time_kind=kind))

    def set_served(self) -> None:
        """Save that this is no backup any more."""
        self._save_meta(replace(self._meta, backup_of=None))

    def set_present(self, now: datetime) -> None:
        """Save that the service runs now."""
        reached = self._not_before(now)
        self._save_meta(replace(self._meta, reached=reached, present_at=reached, beats=self._meta.beats + 1))

    def set_absences(self, absences: Sequence[Absence]) -> None:
        """Save in which stretches guests could not be heard."""
        self._save_meta(replace(self._meta, absences=tuple(absences)))

    def set_grace(self, grace: Grace | None) -> None:
        """Save until when unapproved starts are deferred, or None."""
        self._save_meta(
            replace(
                self._meta,
                grace_until=None if grace is None else grace.until,
                grace_announced_before=None if grace is None else grace.announced_before,
            )
        )

    def set_applied_fleet(self, digest: str) -> None:
        """Save the digest of the fleet file that is being applied."""
        self._save_meta(replace(self._meta, applied_fleet=digest))

    def set_pruning(self, pruning: Pruning) -> None:
        """Save how far old records have been removed."""
        self._save_meta(
            replace(
                self._meta, pruned=pruning.up_to, pruned_unsaid=pruning.unreported, prune_at=pruning.next_at
            )
        )
