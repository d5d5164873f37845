"""Snapshots: the queries that a caller may make in one transaction.

A snapshot of one project lacks the queries that a project must not make.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

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

Kind_co = TypeVar("Kind_co", covariant=True)


class SnapshotPart(Generic[Kind_co]):
    """An attribute of a snapshot: made at its first use, then kept in the instance."""

    def __init__(self, kind: Callable[[OpenTransaction], Kind_co]) -> None:
        self._kind = kind

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, snapshot: "ScopedSnapshot", _owner: type) -> Kind_co:
        made = snapshot.__dict__[self._name] = self._kind(snapshot.transaction)
        return made


class ScopedSnapshot:
    """A snapshot of one project."""

    def __init__(self, transaction: OpenTransaction) -> None:
        self.transaction = transaction
        self.scope: Scope = transaction.scope

    fleet = SnapshotPart(FleetQueries)
    work = SnapshotPart(WorkQueries)
    records = SnapshotPart(RecordQueries)
    webhooks = SnapshotPart(WebhookQueries)
    rules = SnapshotPart(ScopedRuleQueries)


class Snapshot(ScopedSnapshot):
    """A snapshot of everything."""

    rules = SnapshotPart(RuleQueries)
    feed = SnapshotPart(FeedQueries)
    due = SnapshotPart(DueQueries)
    rollouts = SnapshotPart(RolloutQueries)
    metrics = SnapshotPart(MetricQueries)
    time = SnapshotPart(TimeQueries)
    fleet_file = SnapshotPart(FleetFileQueries)
    tokens = SnapshotPart(TokenQueries)
    sessions = SnapshotPart(SessionQueries)
    answers = SnapshotPart(AnswerQueries)
    rehearsals = SnapshotPart(RehearsalQueries)


class ScopedReadStore(Protocol):
    """Opens snapshots of one project."""

    def read(self) -> AbstractContextManager[ScopedSnapshot]:
        """Open a consistent snapshot."""
        ...


class ReadStore(Protocol):
    """Opens snapshots."""

    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent snapshot, which includes every change that was answered before."""
        ...

    def scoped(self, scope: Scope) -> ScopedReadStore:
        """Return the same store limited to a scope."""
        ...
