"""The store: snapshots that are read and transactions that are saved, made of parts.

Each part is a protocol in the words of its reader (`control/parts`): what needs one part is given that part
alone. Adapters implement all of it without inheriting from it. All of it is synchronous: one worker thread
runs all use cases that may write, one at a time, and gives each its open transaction. Those that only read
have a `ReadStore`, on threads of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar

from forewarn.control.parts.answers import AnswerChanges, AnswerQueries
from forewarn.control.parts.due import DueQueries
from forewarn.control.parts.feed import FeedQueries
from forewarn.control.parts.fleet import FleetQueries
from forewarn.control.parts.fleet_file import FleetFileChanges, FleetFileQueries
from forewarn.control.parts.metrics import MetricQueries
from forewarn.control.parts.records import RecordChanges, RecordQueries
from forewarn.control.parts.rehearsals import RehearsalChanges, RehearsalQueries, RehearsalSaving
from forewarn.control.parts.rollouts import RolloutQueries
from forewarn.control.parts.rules import ChangeSaving, RuleQueries, ScopedRuleQueries
from forewarn.control.parts.service_time import TimeChanges, TimeQueries
from forewarn.control.parts.sessions import SessionChanges, SessionQueries
from forewarn.control.parts.tokens import TokenChanges, TokenQueries
from forewarn.control.parts.webhooks import WebhookChanges, WebhookQueries
from forewarn.control.parts.work import WorkQueries
from forewarn.control.ports.foreseen import Foreseen
from forewarn.control.ports.scope import Scope
from forewarn.core.words import GroupName, MachineId, ProjectName

T = TypeVar("T")
Act: TypeAlias = Callable[[], None]


class ScopedSnapshot(Protocol):
    """What a scope sees, read in one transaction."""

    @property
    def scope(self) -> Scope:
        """What its caller sees."""
        ...

    @property
    def fleet(self) -> FleetQueries:
        """The declared fleet."""
        ...

    @property
    def work(self) -> WorkQueries:
        """Orders and events."""
        ...

    @property
    def records(self) -> RecordQueries:
        """The history."""
        ...

    @property
    def webhooks(self) -> WebhookQueries:
        """Webhooks."""
        ...

    @property
    def rules(self) -> ScopedRuleQueries:
        """What decisions are made on."""
        ...


class ScopedTransaction(ScopedSnapshot, Protocol):
    """A snapshot that can be written to; writes of all transactions come one after another."""

    def narrowed(self, project: ProjectName) -> "ScopedTransaction":
        """Return the same transaction for one project in its scope; ValueError if it is not in it."""
        ...

    def after_commit(self, act: Act, *, undone: Act = ...) -> None:
        """Call `act` once this is committed, or `undone` once it is rolled back."""
        ...

    @property
    def webhooks(self) -> WebhookChanges:
        """Webhooks."""
        ...

    @property
    def rehearsals(self) -> RehearsalSaving:
        """Rehearsals."""
        ...

    @property
    def changes(self) -> ChangeSaving:
        """Where what was decided is saved."""
        ...


class Snapshot(ScopedSnapshot, Protocol):
    """All that is kept, read in one transaction."""

    @property
    def rules(self) -> RuleQueries:
        """What decisions are made on."""
        ...

    @property
    def feed(self) -> FeedQueries:
        """What boards follow."""
        ...

    @property
    def due(self) -> DueQueries:
        """What the engine goes by."""
        ...

    @property
    def rollouts(self) -> RolloutQueries:
        """Rollouts."""
        ...

    @property
    def metrics(self) -> MetricQueries:
        """What metrics count."""
        ...

    @property
    def time(self) -> TimeQueries:
        """Service time."""
        ...

    @property
    def fleet_file(self) -> FleetFileQueries:
        """The fleet file."""
        ...

    @property
    def tokens(self) -> TokenQueries:
        """Tokens."""
        ...

    @property
    def sessions(self) -> SessionQueries:
        """Sessions of browsers."""
        ...

    @property
    def answers(self) -> AnswerQueries:
        """What calls were answered."""
        ...

    @property
    def rehearsals(self) -> RehearsalQueries:
        """Rehearsals."""
        ...


class Transaction(ScopedTransaction, Snapshot, Protocol):
    """A snapshot of everything that can be written to."""

    def scoped(self, scope: Scope) -> ScopedTransaction:
        """Return the same transaction as a scope sees it."""
        ...

    def savepoint(self) -> "AbstractContextManager[Transaction]":
        """Open the same transaction again; if the block raises, only the block is undone."""
        ...

    @property
    def records(self) -> RecordChanges:
        """The history."""
        ...

    @property
    def time(self) -> TimeChanges:
        """Service time."""
        ...

    @property
    def fleet_file(self) -> FleetFileChanges:
        """The fleet file."""
        ...

    @property
    def tokens(self) -> TokenChanges:
        """Tokens."""
        ...

    @property
    def sessions(self) -> SessionChanges:
        """Sessions of browsers."""
        ...

    @property
    def answers(self) -> AnswerChanges:
        """What calls were answered."""
        ...

    @property
    def rehearsals(self) -> RehearsalChanges:
        """Rehearsals."""
        ...


class Transact(Protocol):
    """Runs work in a transaction of its own; the worker has it, and nothing else does."""

    def __call__(self, work: Callable[[Transaction], T], /) -> T:
        """Return what the work returns once it is committed."""
        ...


class Batch(Protocol):
    """Transactions that are committed together."""

    def foresee(self, calls: Sequence[Foreseen]) -> None:
        """Load at once what calls that come next will ask for; what they ask for besides is loaded then."""
        ...

    def savepoint(self) -> AbstractContextManager[Transaction]:
        """Open a transaction; if the block raises, only the block is undone."""
        ...


class ScopedReadStore(Protocol):
    """Where everything is kept, as a scope sees it: to be read alone."""

    def read(self) -> AbstractContextManager[ScopedSnapshot]:
        """Open a consistent snapshot."""
        ...


class ReadStore(Protocol):
    """Where everything is kept: to be read alone."""

    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent snapshot, in which everything is seen that was answered before."""
        ...

    def scoped(self, scope: Scope) -> ScopedReadStore:
        """Return the same store as a scope sees it."""
        ...


class Store(ReadStore, Protocol):
    """Where everything is kept."""

    def batch(self) -> AbstractContextManager[Batch]:
        """Open a batch: committed when the block ends, rolled back when it raises."""
        ...

    def save_activity(
        self, groups: Mapping[GroupName, datetime], machines: Mapping[MachineId, datetime]
    ) -> None:
        """Save when groups and machines last polled, in a transaction that other writers need not wait for.

        Groups that are not enabled and machines that are gone are passed over, and an older time than the one
        known changes nothing.
        """
        ...
