"""The wiring of use cases and engine, without the programs and threads around them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from forewarn.control.access.answering_once import AnsweringOnce
from forewarn.control.access.browser_sessions import BrowserSessions
from forewarn.control.access.tokens import Tokens
from forewarn.control.callers import UseCases
from forewarn.control.driver import Driver
from forewarn.control.engine.driver_calls import DriverCalls
from forewarn.control.engine.engine import Engine
from forewarn.control.engine.external_timeout import ExternalTimeout
from forewarn.control.engine.guest_saving import GuestSaving
from forewarn.control.engine.order_work import OrderWork
from forewarn.control.fleet.declaring import FleetCommands
from forewarn.control.fleet.putting_things import FleetPuts
from forewarn.control.following.recent_records import RecentRecords
from forewarn.control.interfaces import ExternalReports, GuestActivity
from forewarn.control.orders.guest_use_cases import GuestUseCases
from forewarn.control.orders.host_orders import HostOrders
from forewarn.control.orders.order_use_cases import OrderUseCases
from forewarn.control.push.delivery_state import DeliveryState
from forewarn.control.push.webhooks import Webhooks, WebhookTerms
from forewarn.control.rehearsals.open_rehearsals import OpenRehearsals
from forewarn.control.rehearsals.rehearsal import RehearsalEndpoint
from forewarn.control.rehearsals.rehearsals import Rehearsals
from forewarn.control.rollouts.rollouts import Rollouts
from forewarn.control.unsaved_holds import UnsavedHolds
from forewarn.control.unsaved_notices import UnsavedNotices
from forewarn.control.unsaved_polls import UnsavedPolls
from forewarn.control.use_case import Context, EngineContext
from forewarn.core.session_cookies import USUAL_LIFE
from forewarn.server.threads.batches import Batches
from forewarn.store.sql import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What control works with and does not make itself."""

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
    """Use cases and engine of one service."""

    context: EngineContext
    batches: Batches
    use_cases: UseCases
    order_work: OrderWork
    engine: Engine


def wire_control(context: Context, *, store: Store, around: Surroundings) -> Control:
    """Make the use cases and the engine of a service on a store."""
    notices, polls = UnsavedNotices(around.guests), UnsavedPolls(around.guests)
    batches = Batches(store, notices)
    context = EngineContext.of(context, store=store, transact=batches.transact)
    rehearsals = OpenRehearsals(context, endpoint=around.endpoint, monotonic=around.monotonic)
    answering = AnsweringOnce(context, real_now=context.real_now)
    declarations = FleetCommands(context, webhooks_changed=around.webhooks.changed)
    order_work = OrderWork(context, drivers=around.drivers, calls=around.calls)
    use_cases = UseCases(
        context=context,
        polls=polls,
        unsaved=notices,
        recent=RecentRecords(store),
        open_rehearsals=rehearsals,
        orders=OrderUseCases(context, external=around.external),
        webhooks=Webhooks(context, terms=around.webhooks),
        rehearsals=Rehearsals(context, open_ones=rehearsals),
        sessions=BrowserSessions(
            context, new_secret=around.new_secret, real_now=context.real_now, life=around.session_life
        ),
        answering=answering,
        declarations=declarations,
        puts=FleetPuts(context, declarations),
        hosts=HostOrders(context),
        rollouts=Rollouts(context, polls=polls),
        tokens=Tokens(context, new_secret=around.new_secret),
        guests=GuestUseCases(context),
        unsaved_holds=UnsavedHolds(context, answering=answering),
        deliveries=DeliveryState(context),
    )
    engine = Engine(
        context,
        orders=order_work,
        guests=GuestSaving(context, polls=polls, unsaved=notices),
        external=ExternalTimeout(context, external=around.external),
        rehearsals=rehearsals,
        keep_history=around.keep_history,
    )
    return Control(
        context=context, batches=batches, use_cases=use_cases, order_work=order_work, engine=engine
    )
