"""The use cases that callers reach: those made for their scope, and those for who sees everything."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from forewarn.control import naming
from forewarn.control.answering_once import AnsweringOnce
from forewarn.control.browser_sessions import BrowserSessions
from forewarn.control.disclosing import disclosed_refusal
from forewarn.control.fleet.declaring import FleetCommands
from forewarn.control.fleet.fleet_views import FleetViews
from forewarn.control.following.followed_records import FollowedRecords
from forewarn.control.following.recent_records import RecentRecords
from forewarn.control.orders.guest_use_cases import GuestUseCases
from forewarn.control.orders.host_orders import HostOrders
from forewarn.control.orders.order_use_cases import OrderUseCases
from forewarn.control.ports.external import ExternalReports
from forewarn.control.ports.scope import Scope
from forewarn.control.push.webhooks import Webhooks, WebhookTerms
from forewarn.control.rehearsals.open_rehearsals import OpenRehearsals
from forewarn.control.rehearsals.rehearsals import Rehearsals
from forewarn.control.rollouts.rollouts import Rollouts
from forewarn.control.tokens import Tokens
from forewarn.control.unsaved_holds import UnsavedHolds
from forewarn.control.unsaved_notices import UnsavedNotices
from forewarn.control.unsaved_polls import UnsavedPolls
from forewarn.control.use_case import Context
from forewarn.control.views import Views
from forewarn.core.errors import Conflict, Refused
from forewarn.core.words import ProjectName

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the use cases of all callers share."""

    context: Context
    polls: UnsavedPolls
    unsaved: UnsavedNotices
    external: ExternalReports
    recent: RecentRecords
    webhooks: WebhookTerms
    rehearsals: OpenRehearsals
    answering: AnsweringOnce
    sessions: BrowserSessions
    unsaved_holds: UnsavedHolds


class CallerUseCases:
    """What a caller may ask for."""

    def __init__(self, shared: Shared, scope: Scope) -> None:
        context = shared.context
        self._shared = shared
        self.scope = scope
        self.orders = OrderUseCases(context, scope, external=shared.external)
        self.views = Views(context, scope, polls=shared.polls, unsaved=shared.unsaved)
        self.records = FollowedRecords(context, scope, recent=shared.recent)
        self.webhooks = Webhooks(context, scope, terms=shared.webhooks)
        self.rehearsals = Rehearsals(context, scope, open_ones=shared.rehearsals)

    def in_its_words(self, job: Callable[[], T]) -> T:
        """Do something for the caller; it is refused in words that the caller may read."""
        try:
            return job()
        except (Conflict, Refused) as error:
            with self._shared.context.store.scoped(self.scope).read() as snapshot:
                said = disclosed_refusal(snapshot, error, scope=self.scope)
        raise said

    def narrowed(self, project: ProjectName | None) -> "CallerUseCases":
        """Return the same for one project alone; NotFound if the scope does not have it."""
        if project is None:
            return self
        with self._shared.context.store.scoped(self.scope).read() as snapshot:
            naming.check_project(snapshot, project, scope=self.scope)
        return CallerUseCases(self._shared, self.scope.narrowed(project))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetUseCases:
    """What only callers may ask for who see everything."""

    declarations: FleetCommands
    hosts: HostOrders
    views: FleetViews
    rollouts: Rollouts
    tokens: Tokens
    guests: GuestUseCases
    unsaved_holds: UnsavedHolds

    @classmethod
    def made(cls, shared: Shared, *, new_secret: Callable[[], str]) -> "FleetUseCases":
        """Make them; `new_secret` makes random texts that cannot be guessed."""
        context = shared.context
        return cls(
            declarations=FleetCommands(context, webhooks_changed=shared.webhooks.changed),
            hosts=HostOrders(context),
            views=FleetViews(context),
            rollouts=Rollouts(context, polls=shared.polls),
            tokens=Tokens(context, new_secret=new_secret),
            guests=GuestUseCases(context),
            unsaved_holds=shared.unsaved_holds,
        )
