"""Snapshots and transactions, put together from their parts: each is made when it is first used.

A snapshot or transaction of a project lacks the queries that a project must not make.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from forewarn.control.ports.scope import Scope
from forewarn.control.ports.store import Act
from forewarn.core.words import ProjectName
from forewarn.store.parts.answers import AnswerReads, AnswerWrites
from forewarn.store.parts.due import DueReads
from forewarn.store.parts.feed import FeedReads
from forewarn.store.parts.fleet import FleetReads
from forewarn.store.parts.fleet_file import FleetFileReads, FleetFileWrites
from forewarn.store.parts.metrics import MetricReads
from forewarn.store.parts.records import RecordReads, RecordWrites
from forewarn.store.parts.rehearsals import ProjectRehearsals, RehearsalReads, RehearsalWrites
from forewarn.store.parts.rollouts import RolloutReads
from forewarn.store.parts.rules import RuleReads
from forewarn.store.parts.service_time import TimeReads, TimeWrites
from forewarn.store.parts.sessions import SessionReads, SessionWrites
from forewarn.store.parts.tokens import TokenReads, TokenWrites
from forewarn.store.parts.webhooks import WebhookReads, WebhookWrites
from forewarn.store.parts.work import WorkReads
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.reads.slice_reads import SliceReads
from forewarn.store.writes.saving import Saving

if TYPE_CHECKING:
    from forewarn.store.batch import Batch


class ProjectSnapshot:
    """What one project sees, in one transaction."""

    def __init__(self, transaction: OpenTransaction) -> None:
        self._transaction = transaction

    @property
    def scope(self) -> Scope:
        """What its caller sees."""
        return self._transaction.scope

    @cached_property
    def fleet(self) -> FleetReads:
        """The declared fleet."""
        return FleetReads(self._transaction)

    @cached_property
    def work(self) -> WorkReads:
        """Orders and events."""
        return WorkReads(self._transaction)

    @cached_property
    def records(self) -> RecordReads:
        """The history."""
        return RecordReads(self._transaction)

    @cached_property
    def webhooks(self) -> WebhookReads:
        """Webhooks."""
        return WebhookReads(self._transaction)

    @cached_property
    def rules(self) -> SliceReads:
        """What decisions are made on."""
        return SliceReads(self._transaction)


def _nothing() -> None:
    """Do nothing after a rollback."""


class ProjectTransaction(ProjectSnapshot):
    """The same, and what can be changed for a project."""

    def __init__(self, batch: "Batch", transaction: OpenTransaction) -> None:
        super().__init__(transaction)
        self._batch = batch

    def narrowed(self, project: ProjectName) -> "ProjectTransaction":
        """Return the same transaction for one project in its scope."""
        return ProjectTransaction(self._batch, self._batch.open(self.scope.narrowed(project)))

    @contextmanager
    def savepoint(self) -> Iterator["ProjectTransaction"]:
        """Open the same transaction again; if the block raises, only the block is undone."""
        with self._batch.undone_alone():
            yield ProjectTransaction(self._batch, self._batch.open(self.scope))

    def after_commit(self, act: Act, *, undone: Act = _nothing) -> None:
        """Call `act` after the commit, or `undone` if this is rolled back."""
        self._batch.after_commit(act, undone)

    @cached_property
    def webhooks(self) -> WebhookWrites:
        """Webhooks."""
        return WebhookWrites(self._transaction)

    @cached_property
    def rehearsals(self) -> ProjectRehearsals:
        """Rehearsals."""
        return ProjectRehearsals(self._transaction)

    @cached_property
    def changes(self) -> Saving:
        """Where what was decided is saved."""
        return Saving(self._transaction)


class SqlSnapshot(ProjectSnapshot):
    """All that is kept, in one transaction."""

    @cached_property
    def rules(self) -> RuleReads:
        """What decisions are made on."""
        return RuleReads(self._transaction)

    @cached_property
    def feed(self) -> FeedReads:
        """What boards follow."""
        return FeedReads(self._transaction)

    @cached_property
    def due(self) -> DueReads:
        """What the engine goes by."""
        return DueReads(self._transaction)

    @cached_property
    def rollouts(self) -> RolloutReads:
        """Rollouts."""
        return RolloutReads(self._transaction)

    @cached_property
    def metrics(self) -> MetricReads:
        """What metrics count."""
        return MetricReads(self._transaction)

    @cached_property
    def time(self) -> TimeReads:
        """Service time."""
        return TimeReads(self._transaction)

    @cached_property
    def fleet_file(self) -> FleetFileReads:
        """The fleet file."""
        return FleetFileReads(self._transaction)

    @cached_property
    def tokens(self) -> TokenReads:
        """Tokens."""
        return TokenReads(self._transaction)

    @cached_property
    def sessions(self) -> SessionReads:
        """Sessions of browsers."""
        return SessionReads(self._transaction)

    @cached_property
    def answers(self) -> AnswerReads:
        """What calls were answered."""
        return AnswerReads(self._transaction)

    @cached_property
    def rehearsals(self) -> RehearsalReads:
        """Rehearsals."""
        return RehearsalReads(self._transaction)


class SqlTransaction(SqlSnapshot):
    """The same, and all that can be changed."""

    def __init__(self, batch: "Batch", transaction: OpenTransaction) -> None:
        super().__init__(transaction)
        self._batch = batch

    def scoped(self, scope: Scope) -> "SqlTransaction | ProjectTransaction":
        """Return the same transaction as a scope sees it."""
        opened = self._batch.open(scope)
        kind = SqlTransaction if scope.project is None else ProjectTransaction
        return kind(self._batch, opened)

    def narrowed(self, project: ProjectName) -> ProjectTransaction:
        """Return the same transaction for one project in its scope."""
        return ProjectTransaction(self._batch, self._batch.open(self.scope.narrowed(project)))

    @contextmanager
    def savepoint(self) -> Iterator["SqlTransaction"]:
        """Open the same transaction again; if the block raises, only the block is undone."""
        with self._batch.savepoint() as tx:
            yield tx

    def after_commit(self, act: Act, *, undone: Act = _nothing) -> None:
        """Call `act` after the commit, or `undone` if this is rolled back."""
        self._batch.after_commit(act, undone)

    @cached_property
    def changes(self) -> Saving:
        """Where what was decided is saved."""
        return Saving(self._transaction)

    @cached_property
    def records(self) -> RecordWrites:
        """The history."""
        return RecordWrites(self._transaction)

    @cached_property
    def webhooks(self) -> WebhookWrites:
        """Webhooks."""
        return WebhookWrites(self._transaction)

    @cached_property
    def time(self) -> TimeWrites:
        """Service time."""
        return TimeWrites(self._transaction)

    @cached_property
    def fleet_file(self) -> FleetFileWrites:
        """The fleet file."""
        return FleetFileWrites(self._transaction)

    @cached_property
    def tokens(self) -> TokenWrites:
        """Tokens."""
        return TokenWrites(self._transaction)

    @cached_property
    def sessions(self) -> SessionWrites:
        """Sessions of browsers."""
        return SessionWrites(self._transaction)

    @cached_property
    def answers(self) -> AnswerWrites:
        """What calls were answered."""
        return AnswerWrites(self._transaction)

    @cached_property
    def rehearsals(self) -> RehearsalWrites:
        """Rehearsals."""
        return RehearsalWrites(self._transaction)
