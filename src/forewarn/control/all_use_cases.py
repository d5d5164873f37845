"""All use cases. Each takes the transaction or snapshot of its caller, which limits what it may see."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from forewarn.control import naming
from forewarn.control.disclosing import disclosed_refusal
from forewarn.control.fleet.declarations import FleetCommands, FleetDryRuns, FleetItems
from forewarn.control.fleet.fleet_views import FleetViews
from forewarn.control.followed_records import FollowedRecords, RecentRecords
from forewarn.control.idempotent_calls import IdempotentCalls
from forewarn.control.orders.guest_use_cases import GuestUseCases
from forewarn.control.orders.order_use_cases import HostOrders, OrderUseCases
from forewarn.control.rehearsals.open_rehearsals import OpenRehearsals
from forewarn.control.rehearsals.rehearsal_use_cases import Rehearsals, RehearsalViews
from forewarn.control.rollouts.rollout_use_cases import Rollouts
from forewarn.control.rollouts.rollout_views import RolloutViews
from forewarn.control.token_use_cases import BrowserSessions, SessionViews, Tokens, TokenViews
from forewarn.control.unsaved_activity import UnsavedNotices, UnsavedPolls
from forewarn.control.unsaved_holds import UnsavedHolds
from forewarn.control.use_case import Context
from forewarn.control.views import Views
from forewarn.control.webhook_use_cases import DeliveryState, Webhooks, WebhookViews
from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import Conflict, ForewarnError, Refused
from forewarn.core.scope import Scope
from forewarn.store.batch import ScopedTransaction, Transaction

T = TypeVar("T")
Tx = TypeVar("Tx", bound=ScopedTransaction)


class ScopedTransactionStore(Generic[Tx]):
    """Lets reading use cases read from an open transaction instead of a new snapshot."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx

    def read(self) -> AbstractContextManager[Tx]:
        """Return the transaction, which stays open after the block."""
        return nullcontext(self._tx)


class TransactionStore(ScopedTransactionStore[Transaction]):
    """The same for a transaction without a scope."""

    def scoped(self, scope: Scope) -> ScopedTransactionStore[Any]:
        """Limit it to a scope."""
        return self if scope.project is None else ScopedTransactionStore(self._tx.scoped(scope))


class CallerReads:
    """The reading use cases of one caller. Thread-safe."""

    def __init__(self, of: "UseCases", scope: Scope, context: Context) -> None:
        self._of = of
        self._context = context
        self.scope = scope
        self.views = Views(context, scope, polls=of.polls, unsaved=of.unsaved)
        self.records = FollowedRecords(context, scope, recent=of.recent)
        self.webhooks = WebhookViews(context, scope)
        self.rehearsals = RehearsalViews(context, scope, open_ones=of.open_rehearsals)

    @property
    def fleet(self) -> "FleetReads":
        """The reads that cover the whole fleet; Refused for the callers of a project."""
        check_operator(self.scope)
        context = self._context
        return FleetReads(
            views=FleetViews(context),
            rollouts=RolloutViews(context, polls=self._of.polls),
            tokens=TokenViews(context),
            sessions=SessionViews(context),
            dry_runs=FleetDryRuns(context),
            unsaved_holds=self._of.unsaved_holds,
        )

    def read_redacted(self, job: Callable[[], T]) -> T:
        """Run a read. Its errors come redacted for the caller, and with spelling hints."""
        try:
            return job()
        except ForewarnError as error:
            if not self.must_redact(error):
                raise
            redacted = self.redacted_error(error)
        raise redacted

    def must_redact(self, error: ForewarnError) -> bool:
        """Return whether `redacted_error` would change an error."""
        return error.unknown is not None or self._may_name_others(error)

    def redacted_error(self, error: ForewarnError) -> ForewarnError:
        """Redact an error for the caller, or add a spelling hint. Reads the store."""
        store = self._context.store
        if not self._may_name_others(error):
            return naming.with_hint(store, error, scope=self.scope, allowance=self._of.hints)
        with store.scoped(self.scope).read() as snapshot:
            return disclosed_refusal(snapshot.fleet, error, scope=self.scope)

    def _may_name_others(self, error: ForewarnError) -> bool:
        return self.scope.caller is not None and isinstance(error, Conflict | Refused)

    def narrowed(self, project: ProjectName | None) -> "CallerReads":
        """Limit the reads to one project; NotFound if the scope does not include it."""
        if project is None:
            return self
        with self._context.store.scoped(self.scope).read() as snapshot:
            naming.check_project(snapshot.fleet, project, scope=self.scope)
        return CallerReads(self._of, self.scope.narrowed(project), self._context)


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """All use cases of a server. A use case that changes something takes a transaction."""

    context: Context
    polls: UnsavedPolls
    unsaved: UnsavedNotices
    recent: RecentRecords
    open_rehearsals: OpenRehearsals
    orders: OrderUseCases
    webhooks: Webhooks
    rehearsals: Rehearsals
    sessions: BrowserSessions
    answering: IdempotentCalls
    # For operators only: these do not accept the transaction of a project.
    declarations: FleetCommands
    puts: FleetItems
    hosts: HostOrders
    rollouts: Rollouts
    tokens: Tokens
    guests: GuestUseCases
    unsaved_holds: UnsavedHolds
    deliveries: DeliveryState
    hints: naming.HintAllowance = field(default_factory=naming.HintAllowance)

    def reads(self, scope: Scope) -> CallerReads:
        """Return the reading use cases of a caller."""
        return CallerReads(self, scope, self.context)

    def reads_in(self, tx: Transaction, scope: Scope) -> CallerReads:
        """Return the reading use cases of a caller, which read from an open transaction."""
        return CallerReads(self, scope, replace(self.context, store=TransactionStore(tx)))


def check_operator(scope: Scope) -> None:
    """Raise Refused for the callers of a project."""
    if scope.caller is not None:
        raise Refused(f"only operators see the whole fleet: this caller is limited to project {scope.caller}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReads:
    """The reading use cases for operators only."""

    views: FleetViews
    rollouts: RolloutViews
    tokens: TokenViews
    sessions: SessionViews
    dry_runs: FleetDryRuns
    unsaved_holds: UnsavedHolds
