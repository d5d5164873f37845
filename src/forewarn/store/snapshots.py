"""Snapshots and transactions, put together from their parts: each is made when it is first used.

A snapshot or transaction of a project lacks the queries that a project must not make.
"""

from contextlib import AbstractContextManager
from functools import cached_property
from typing import Protocol

from forewarn.core.scope import Scope
from forewarn.store.queries.callers import (
    AnswerQueries,
    RehearsalQueries,
    SessionQueries,
    TokenQueries,
    WebhookQueries,
)
from forewarn.store.queries.engine import DueQueries, RuleQueries
from forewarn.store.queries.fleet import FleetFileQueries, FleetQueries
from forewarn.store.queries.metrics import MetricQueries
from forewarn.store.queries.records import FeedQueries, RecordQueries
from forewarn.store.queries.rollouts import RolloutQueries
from forewarn.store.queries.service_time import TimeQueries
from forewarn.store.queries.work import WorkQueries
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.reads.slice_reads import ScopedRuleQueries


class ScopedSnapshot:
    """What one project sees, in one transaction."""

    def __init__(self, transaction: OpenTransaction) -> None:
        self.transaction = transaction  # which all its parts share

    @property
    def scope(self) -> Scope:
        """What its caller sees."""
        return self.transaction.scope

    @cached_property
    def fleet(self) -> FleetQueries:
        """The declared fleet."""
        return FleetQueries(self.transaction)

    @cached_property
    def work(self) -> WorkQueries:
        """Orders and events."""
        return WorkQueries(self.transaction)

    @cached_property
    def records(self) -> RecordQueries:
        """The history."""
        return RecordQueries(self.transaction)

    @cached_property
    def webhooks(self) -> WebhookQueries:
        """Webhooks."""
        return WebhookQueries(self.transaction)

    @cached_property
    def rules(self) -> ScopedRuleQueries:
        """What decisions are made on."""
        return ScopedRuleQueries(self.transaction)


class Snapshot(ScopedSnapshot):
    """All that is kept, in one transaction."""

    @cached_property
    def rules(self) -> RuleQueries:
        """What decisions are made on."""
        return RuleQueries(self.transaction)

    @cached_property
    def feed(self) -> FeedQueries:
        """What boards follow."""
        return FeedQueries(self.transaction)

    @cached_property
    def due(self) -> DueQueries:
        """What the engine goes by."""
        return DueQueries(self.transaction)

    @cached_property
    def rollouts(self) -> RolloutQueries:
        """Rollouts."""
        return RolloutQueries(self.transaction)

    @cached_property
    def metrics(self) -> MetricQueries:
        """What metrics count."""
        return MetricQueries(self.transaction)

    @cached_property
    def time(self) -> TimeQueries:
        """Service time."""
        return TimeQueries(self.transaction)

    @cached_property
    def fleet_file(self) -> FleetFileQueries:
        """The fleet file."""
        return FleetFileQueries(self.transaction)

    @cached_property
    def tokens(self) -> TokenQueries:
        """Tokens."""
        return TokenQueries(self.transaction)

    @cached_property
    def sessions(self) -> SessionQueries:
        """Sessions of browsers."""
        return SessionQueries(self.transaction)

    @cached_property
    def answers(self) -> AnswerQueries:
        """What calls were answered."""
        return AnswerQueries(self.transaction)

    @cached_property
    def rehearsals(self) -> RehearsalQueries:
        """Rehearsals."""
        return RehearsalQueries(self.transaction)


class ScopedReadStore(Protocol):
    """Opens snapshots of what a scope sees: of the store, or of an open transaction."""

    def read(self) -> AbstractContextManager[ScopedSnapshot]:
        """Open a consistent snapshot."""
        ...


class ReadStore(Protocol):
    """Opens snapshots: of the store, or of an open transaction."""

    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent snapshot, in which everything is seen that was answered before."""
        ...

    def scoped(self, scope: Scope) -> ScopedReadStore:
        """Return the same as a scope sees it."""
        ...
