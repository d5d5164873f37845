"""All use cases that callers reach: made once, and narrowed by the transaction or snapshot of each caller."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeVar

from forewarn.control import naming
from forewarn.control.disclosing import disclosed_refusal
from forewarn.control.fleet.declarations import FleetCommands, FleetDryRuns
from forewarn.control.fleet.fleet_views import FleetViews
from forewarn.control.fleet.fleet_items import FleetItems
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
from forewarn.control.unsaved_holds import HoldsInMemory, UnsavedHolds
from forewarn.control.use_case import Context
from forewarn.control.views import Views
from forewarn.control.webhook_use_cases import DeliveryState, Webhooks, WebhookViews
from forewarn.core.basic_types import ProjectName
from forewarn.core.errors import Conflict, ForewarnError, Refused
from forewarn.core.scope import Scope
from forewarn.store.batch import ScopedTransaction, Transaction
from forewarn.store.snapshots import ReadStore

T = TypeVar("T")


class InTransaction:
    """The store as an open transaction sees it: its snapshots are the transaction."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def read(self) -> AbstractContextManager[Transaction]:
        """Return the transaction."""
        return nullcontext(self._tx)

    def scoped(self, scope: Scope) -> "InTransaction | ScopedInTransaction":
        """Return the same as a scope sees it."""
        return self if scope.project is None else ScopedInTransaction(self._tx.scoped(scope))


class ScopedInTransaction:
    """The same for a scope."""

    def __init__(self, tx: ScopedTransaction) -> None:
        self._tx = tx

    def read(self) -> AbstractContextManager[ScopedTransaction]:
        """Return the transaction."""
        return nullcontext(self._tx)


class CallerReads:
    """What a caller may ask for that changes nothing; any thread may ask for it."""

    def __init__(self, of: "UseCases", scope: Scope, context: Context) -> None:
        self._of = of
        self._context = context
        self.scope = scope
        self.views = Views(context, scope, polls=of.polls, unsaved=of.unsaved)
        self.records = FollowedRecords(context, scope, recent=of.recent)
        self.webhooks = WebhookViews(context, scope)
        self.rehearsals = RehearsalViews(context, scope, going_on=of.open_rehearsals)

    @property
    def fleet(self) -> "FleetReads":
        """What belongs to no project; Refused to a project's people."""
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
        """Read something for the caller; it is refused in words that the caller may read."""
        try:
            return job()
        except ForewarnError as error:
            if not self.must_redact(error):
                raise
            said = self.redacted_error(error)
        raise said

    def must_redact(self, error: ForewarnError) -> bool:
        """Return whether the caller is refused in other words than these."""
        return error.unknown is not None or self._hides_names_in(error)

    def redacted_error(self, error: ForewarnError) -> ForewarnError:
        """Return a refusal in words that the caller may read, and with the name that may have been meant."""
        store = self._context.store
        if not self._hides_names_in(error):
            return naming.hinted(store, error, scope=self.scope, allowance=self._of.hints)
        with store.scoped(self.scope).read() as snapshot:
            return disclosed_refusal(snapshot.fleet, error, scope=self.scope)

    def _hides_names_in(self, error: ForewarnError) -> bool:
        return self.scope.caller is not None and isinstance(error, Conflict | Refused)

    def narrowed(self, project: ProjectName | None) -> "CallerReads":
        """Return the same for one project alone; NotFound if the scope does not have it."""
        if project is None:
            return self
        narrowed = _narrowed(self._context.store, self.scope, project)
        return CallerReads(self._of, narrowed, self._context)


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """All that callers may ask for, made once: each use case that changes something takes its transaction."""

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
    # For those who see everything: a project's transaction does not fit.
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
        """Return what a caller may ask for that changes nothing."""
        return CallerReads(self, scope, self.context)

    def reads_in(self, tx: Transaction, scope: Scope) -> CallerReads:
        """Return the same as an open transaction sees it."""
        return CallerReads(self, scope, replace(self.context, store=InTransaction(tx)))


def _narrowed(store: ReadStore, scope: Scope, project: ProjectName) -> Scope:
    with store.scoped(scope).read() as snapshot:
        naming.check_project(snapshot.fleet, project, scope=scope)
    return scope.narrowed(project)


def check_operator(scope: Scope) -> None:
    """Refuse what belongs to no project to a project's people."""
    if scope.caller is not None:
        raise Refused(f"the people of project {scope.caller} see it alone, not the whole fleet")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReads:
    """What only callers may ask for who see everything, and that changes nothing."""

    views: FleetViews
    rollouts: RolloutViews
    tokens: TokenViews
    sessions: SessionViews
    dry_runs: FleetDryRuns
    unsaved_holds: HoldsInMemory
