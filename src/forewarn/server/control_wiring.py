"""The wiring of use cases and engine, without threads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from forewarn.control.all_use_cases import UseCases
from forewarn.control.driver import Driver
from forewarn.control.engine.driver_calls import DriverCalls
from forewarn.control.engine.engine import Engine
from forewarn.control.engine.incoming_changes import ExternalTimeout, GuestActivitySaver
from forewarn.control.engine.order_work import OrderWork
from forewarn.control.fleet.declarations import FleetCommands, FleetItems
from forewarn.control.followed_records import RecentRecords
from forewarn.control.idempotent_calls import IdempotentCalls
from forewarn.control.interfaces import ExternalReports, GuestActivity
from forewarn.control.orders.guest_use_cases import GuestUseCases
from forewarn.control.orders.order_use_cases import HostOrders, OrderUseCases
from forewarn.control.rehearsals.open_rehearsals import OpenRehearsals, RehearsalEndpoint
from forewarn.control.rehearsals.rehearsal_use_cases import Rehearsals
from forewarn.control.rollouts.rollout_engine import RolloutEngine
from forewarn.control.rollouts.rollout_use_cases import Rollouts
from forewarn.control.token_use_cases import BrowserSessions, Tokens
from forewarn.control.unsaved_activity import UnsavedNotices, UnsavedPolls
from forewarn.control.unsaved_holds import UnsavedHolds
from forewarn.control.use_case import Context, EngineContext
from forewarn.control.webhook_use_cases import DeliveryState, Webhooks, WebhookTerms
from forewarn.core.session_cookies import USUAL_LIFE
from forewarn.server.threads.batches import Batches
from forewarn.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlInputs:
    """The objects that control needs from the server."""

    guests: GuestActivity
    endpoint: RehearsalEndpoint
    drivers: Mapping[str, Driver]
    external: ExternalReports
    calls: DriverCalls
    webhooks: WebhookTerms
    new_secret: Callable[[], str]
    monotonic: Callable[[], float]
    session_life: timedelta = USUAL_LIFE
    keep_history: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The use cases and the engine of a server."""

    context: EngineContext
    batches: Batches
    use_cases: UseCases
    order_work: OrderWork
    engine: Engine


def wire_control(context: Context, *, store: Store, around: ControlInputs) -> Control:
    """Make the use cases and the engine."""
    notices, polls = UnsavedNotices(around.guests), UnsavedPolls(around.guests)
    batches = Batches(store, notices)
    # Use cases get the plain context, which cannot commit.
    engine_context = EngineContext.of(
        context, store=store, transact=batches.transact, keep_history=around.keep_history
    )
    rehearsals = OpenRehearsals(context, endpoint=around.endpoint, monotonic=around.monotonic)
    answering = IdempotentCalls(context)
    declarations = FleetCommands(context, webhooks_changed=around.webhooks.changed)
    rollout_engine = RolloutEngine(context, polls=polls)
    order_work = OrderWork(engine_context, drivers=around.drivers, calls=around.calls)
    use_cases = UseCases(
        context=context,
        polls=polls,
        unsaved=notices,
        recent=RecentRecords(store),
        open_rehearsals=rehearsals,
        orders=OrderUseCases(context, external=around.external),
        webhooks=Webhooks(context, terms=around.webhooks),
        rehearsals=Rehearsals(context, open_ones=rehearsals),
        sessions=BrowserSessions(context, new_secret=around.new_secret, life=around.session_life),
        answering=answering,
        declarations=declarations,
        puts=FleetItems(context, declarations),
        hosts=HostOrders(context),
        rollouts=Rollouts(context, polls=polls, engine=rollout_engine),
        tokens=Tokens(context, new_secret=around.new_secret),
        guests=GuestUseCases(context),
        unsaved_holds=UnsavedHolds(engine_context, answering=answering),
        deliveries=DeliveryState(context),
    )
    engine = Engine(
        engine_context,
        orders=order_work,
        rollouts=rollout_engine,
        guests=GuestActivitySaver(engine_context, polls=polls, unsaved=notices),
        external=ExternalTimeout(context, external=around.external),
        rehearsals=rehearsals,
    )
    return Control(
        context=engine_context, batches=batches, use_cases=use_cases, order_work=order_work, engine=engine
    )
