"""How the parts fit together: the only place that names concrete adapters, and that makes ids."""

import asyncio
import secrets
import uuid
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import ASGIApp

from forewarn.api.app import create_app
from forewarn.api.services import ApiSettings, Services
from forewarn.clock import Clock, ManualClock, ScaledClock, SystemClock, clock_of, monotonic
from forewarn.config import Settings
from forewarn.control.engine.engine import Engine
from forewarn.control.engine.external_timeout import Silence
from forewarn.control.following.board_feed import Feed
from forewarn.control.following.recent_records import Tail
from forewarn.control.plane import Plane
from forewarn.control.ports.driver import Driver
from forewarn.control.ports.store import Delta
from forewarn.control.rehearsals.rehearsals import Rehearsals
from forewarn.control.rollouts.rollouts import Rollouts
from forewarn.control.sent_notices import NotingStore
from forewarn.control.signal import Bell
from forewarn.control.tokens import Tokens
from forewarn.control.views import Views
from forewarn.control.webhooks import SECRET_PREFIX, Webhooks
from forewarn.core.policy import EXTERNAL
from forewarn.drivers.external import ExternalDriver
from forewarn.drivers.simulated import SimulatedDriver
from forewarn.guest.board.board import Board
from forewarn.guest.server import GuestServer
from forewarn.guest.settings import EndpointSettings
from forewarn.server.health import Health
from forewarn.server.push.delivery import Delivery
from forewarn.server.push.lookup import PublicOnly
from forewarn.server.push.pusher import Pusher
from forewarn.server.threads.bridge import (
    Boards,
    FrontDesk,
    Plays,
    Runner,
)
from forewarn.server.threads.worker import Worker
from forewarn.server.timekeeper import Timekeeper
from forewarn.store.sql import SqlStore, open_store
from forewarn.wire.instance import InstanceMetadata


def new_id() -> str:
    """Make an upper-case GUID."""
    return str(uuid.uuid4()).upper()


def new_secret() -> str:
    """Make 256 random bits as text."""
    return secrets.token_urlsafe(32)


def new_webhook_secret() -> str:
    """Make a secret as Standard Webhooks writes it."""
    return SECRET_PREFIX + b64encode(secrets.token_bytes(32)).decode()


def drivers(settings: Settings, external: ExternalDriver) -> Mapping[str, Driver]:
    """Make what does the steps."""
    return {"simulated": SimulatedDriver(settings.simulated), EXTERNAL: external}


def endpoint_settings(settings: Settings) -> EndpointSettings:
    """Take over what is set about the guest endpoint."""
    return EndpointSettings(
        rate=settings.guest.rate,
        instance=InstanceMetadata(settings.guest.instance),
        lenient_header_on_post=settings.guest.lenient_header_on_post,
        names=tuple(name.lower() for name in settings.guest.names),
    )


def tokens_of(store: SqlStore, clock: Clock) -> Tokens:
    """Make the use cases about tokens."""
    return Tokens(store=store, clock=clock, new_id=new_id, new_secret=new_secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """What there is before anything listens: the store, the clock, and the use cases that need no guest."""

    settings: Settings
    store: SqlStore
    noting: NotingStore  # the same, as the use cases see it
    clock: SystemClock | ScaledClock | ManualClock
    plane: Plane
    external: ExternalDriver
    webhooks_changed: Bell


def open_core(settings: Settings) -> Core:
    """Open the store, and let time go on from where it was."""
    clock = clock_of(settings.clock)
    store = open_store(settings.database, new_id=new_id)
    with store.read() as snapshot:
        reached = snapshot.reached()
    if reached is not None:
        clock.start_from(reached)
    noting = NotingStore(store)
    external = ExternalDriver(settings.times.external_silence, monotonic=monotonic)
    changed = Bell()
    plane = Plane(
        store=noting,
        clock=clock,
        policy=settings.times,
        new_id=new_id,
        heard=external.heard,
        webhooks_changed=changed,
    )
    return Core(
        settings=settings,
        store=store,
        noting=noting,
        clock=clock,
        plane=plane,
        external=external,
        webhooks_changed=changed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A whole service, not started yet."""

    board: Board
    guest: GuestServer
    worker: Worker
    services: Services
    app: ASGIApp
    health: Health
    tail: Tail
    pusher: Pusher


def wire(core: Core) -> Parts:
    """Make a service; called on the guest loop, on which the boards live."""
    settings = core.settings
    with core.store.read() as snapshot:
        board = Board(lineage=snapshot.lineage())
        all_of_it = snapshot.since(0)
    board.apply(all_of_it)
    desk = FrontDesk()
    guest = GuestServer(board, desk, clock=core.clock, settings=endpoint_settings(settings), new_id=new_id)
    boards = Boards(board, guest, asyncio.get_running_loop())
    core.noting.attend(boards)
    silence = Silence(store=core.noting, outside=core.external, policy=settings.times, new_id=new_id)
    rehearsals = Rehearsals(
        store=core.noting,
        clock=core.clock,
        playhouse=Plays(guest.playhouse, asyncio.get_running_loop()),
        cancel=core.plane.cancel_order,
        monotonic=monotonic,
        new_id=new_id,
    )
    engine = Engine(
        store=core.noting,
        policy=settings.times,
        drivers=drivers(settings, core.external),
        silence=silence,
        activity=boards,
        new_id=new_id,
    )
    engine.keep_history(settings.history.keep)
    engine.attend(rehearsals)
    tail = Tail(core.store)

    def publish(delta: Delta) -> None:
        boards.publish(delta)
        tail.catch_up()

    feed = Feed(core.store, publish, number=all_of_it.number)
    worker = Worker(engine=engine, clock=core.clock, feed=feed)
    desk.open(core.plane, worker)
    health = Health(worker)
    webhooks = Webhooks(
        store=core.store,
        clock=core.clock,
        new_id=new_id,
        new_secret=new_webhook_secret,
        only_public=settings.webhooks.project_targets == "public",
        changes=core.webhooks_changed,
    )
    pusher = _pusher(core, webhooks, tail, Runner(worker))
    services = Services(
        plane=core.plane,
        views=Views(store=core.noting, activity=boards),
        tail=tail,
        webhooks=webhooks,
        pushing=pusher,
        tokens=tokens_of(core.store, core.clock),
        rollouts=Rollouts(
            store=core.noting, clock=core.clock, policy=settings.times, new_id=new_id, activity=boards
        ),
        rehearsals=rehearsals,
        timekeeper=Timekeeper(core.clock, engine, core.plane, moved=boards.time_moved),
        run=Runner(worker),
        probes=health,
        guest_counters=guest.counters,
    )
    app = create_app(services, ApiSettings(names=settings.operator.names))
    return Parts(
        board=board,
        guest=guest,
        worker=worker,
        services=services,
        app=app,
        health=health,
        tail=tail,
        pusher=pusher,
    )


def _pusher(core: Core, webhooks: Webhooks, tail: Tail, run: Runner) -> Pusher:
    with core.store.read() as snapshot:
        lineage = snapshot.lineage()
    wall = SystemClock()

    def delivery() -> Delivery:
        guard = PublicOnly() if core.settings.webhooks.project_targets == "public" else None
        return Delivery(lineage=lineage, wall=wall.now, new_id=new_id, guard=guard)

    return Pusher(webhooks=webhooks, tail=tail, run=run, delivery=delivery)
