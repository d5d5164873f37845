"""How the parts fit together: the only place that names concrete adapters, and that makes ids."""

import logging
import secrets
import uuid
from base64 import b64encode
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from starlette.types import ASGIApp

from forewarn.api.app import create_app
from forewarn.api.limits import CallerLimits
from forewarn.api.services import ApiDependencies, ApiSettings, Services
from forewarn.clock import Clock, ManualClock, ScaledClock, SystemClock, clock_of, monotonic
from forewarn.config import OperatorSettings, Settings
from forewarn.control.all_use_cases import UseCases
from forewarn.control.board_feed import BoardFeed
from forewarn.control.engine.driver_calls import move_answer, precheck_call
from forewarn.control.engine.incoming_changes import ReachabilitySaver
from forewarn.control.fleet.declarations import FleetCommands
from forewarn.control.followed_records import RecentRecords
from forewarn.control.rollouts.host_listings import HostListings, MachineSightings
from forewarn.control.token_use_cases import Tokens
from forewarn.control.use_case import Alone, Context
from forewarn.control.webhook_use_cases import SECRET_PREFIX, WebhookTerms
from forewarn.core.feed import Delta
from forewarn.core.scope import EVERYTHING
from forewarn.drivers.registry import Drivers
from forewarn.guest.board.board import Board
from forewarn.guest.http.refusals import Refusals
from forewarn.guest.rehearsal import RehearsalRegistry
from forewarn.guest.server import GuestServer
from forewarn.guest.settings import EndpointSettings, Limits
from forewarn.server.addresses import public_origin
from forewarn.server.control_wiring import Control, ControlInputs, wire_control
from forewarn.server.log_setup import log_records
from forewarn.server.threads import service_time
from forewarn.server.threads.batches import Batches
from forewarn.server.threads.bridge import BoardActivity, GuestLoop, RehearsalsOnLoop, WorkerCommands
from forewarn.server.threads.jobs import Jobs
from forewarn.server.threads.lanes import Lanes, TakeAnswers
from forewarn.server.threads.inventories import Listings, MachineWatch
from forewarn.server.threads.operator_connection import PortCounts
from forewarn.server.threads.operator_server import operator_app
from forewarn.server.threads.pusher import Pusher
from forewarn.server.threads.host_probes import HostProbes
from forewarn.server.threads.reads import Reads
from forewarn.server.threads.service_time import Timekeeper, TimeWatch
from forewarn.server.threads.worker import Health, Worker
from forewarn.signals import Signal
from forewarn.store.batch import Transact
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.saved import Listener, Saved, records_of
from forewarn.store.store import Store, open_store
from forewarn.supervision import Supervisor
from forewarn.wire.instance import InstanceDefaults, InstanceMetadata

if TYPE_CHECKING:
    from forewarn.server.threads.webhook_delivery import Delivery

log = logging.getLogger(__name__)


def new_id() -> str:
    """Make an upper-case GUID."""
    return str(uuid.uuid4()).upper()


def new_secret() -> str:
    """Make 256 random bits as text."""
    return secrets.token_urlsafe(32)


def new_webhook_secret() -> str:
    """Make a secret as Standard Webhooks writes it."""
    return SECRET_PREFIX + b64encode(secrets.token_bytes(32)).decode()


def endpoint_settings(settings: Settings) -> EndpointSettings:
    """Take over what is set about the guest endpoint."""
    return EndpointSettings(
        rate=settings.guest.rate,
        instance=InstanceMetadata(settings.guest.instance),
        instance_defaults=InstanceDefaults(location=settings.guest.location, size=settings.guest.size),
        preview=settings.guest.preview,
        lenient_header_on_post=settings.guest.lenient_header_on_post,
        names=tuple(name.lower() for name in settings.guest.names),
        check_mac=settings.guest.check_mac,
        limits=Limits(
            connections=settings.guest.connections_per_address,
            all_connections=settings.guest.connections or Limits().all_connections,
        ),
    )


def api_settings(settings: OperatorSettings) -> ApiSettings:
    """Take over what is set about the operator API."""
    limits = CallerLimits(rate=settings.rate, calls=settings.calls, streams=settings.streams)
    origins = tuple(public_origin(text) for text in settings.origins)
    return ApiSettings(names=settings.names, origins=origins, limits=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedServer:
    """What there is before anything listens: the store, and the time that goes on from where it was."""

    settings: Settings
    store: Store
    clock: SystemClock | ScaledClock | ManualClock
    drivers: Drivers

    @property
    def context(self) -> Context:
        """What use cases work with as long as there are no guests."""
        context = context_of(self.store, self.clock, self.settings)
        policy = replace(
            context.policy,
            hooks=self.settings.hooks.tasks,
            fencing=self.drivers.fencing,
            working_on_hosts=self.drivers.working_on_hosts,
            cordoning=self.drivers.cordoning,
            choosing_hosts=self.drivers.choosing_hosts,
            prechecking=self.drivers.prechecking,
            verifying_restarts=self.drivers.verifying_restarts,
        )
        return replace(context, drivers=self.drivers.known, policy=policy)

    @property
    def transact(self) -> Transact:
        """What commits before the worker runs."""
        return Batches(self.store).transact

    def close(self) -> None:
        """End the processes of drivers, and close the store."""
        self.drivers.stop()
        self.store.close()

    @property
    def fleet(self) -> FleetCommands:
        """What declares the fleet before anything listens."""
        return FleetCommands(self.context, webhooks_changed=Signal())


def context_of(store: Store, clock: Clock, settings: Settings) -> Context:
    """Make what use cases work with."""
    return Context(
        store=store,
        clock=clock,
        policy=settings.times,
        new_id=new_id,
        real_now=SystemClock().now,
        preview=settings.guest.preview,
    )


def drivers_of(settings: Settings) -> Drivers:
    """Make the drivers as they are set; Invalid names what is wrong with one."""
    return Drivers(settings, monotonic=monotonic)


def prepare_server(settings: Settings, drivers: Drivers) -> PreparedServer:
    """Open the store, and let time go on from where it was."""
    clock = clock_of(settings.clock)
    store = open_store(settings.database, new_id=new_id)
    store.saved = log_records
    try:
        service_time.begin(
            clock, store, name=parse_database(settings.database).name, system=SystemClock().now()
        )
    except BaseException:
        store.close()
        raise
    return PreparedServer(settings=settings, store=store, clock=clock, drivers=drivers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A whole service, not started yet."""

    board: Board
    guest: GuestServer
    worker: Worker
    reads: Reads
    lanes: Lanes
    services: Services
    app: ASGIApp
    health: Health
    recent: RecentRecords
    pusher: Pusher
    reaching: HostProbes
    machine_watch: MachineWatch
    operator_counts: PortCounts
    supervisor: Supervisor


def wire(opened: PreparedServer) -> Parts:
    """Make a service; called on the guest loop, on which the board lives."""
    settings, clock, loop, jobs = opened.settings, opened.clock, GuestLoop(), Jobs()
    reads = Reads(settle=jobs.follow_up.wait)
    with opened.store.read() as snapshot:
        lineage, everything, present_at = (
            snapshot.feed.lineage(),
            snapshot.feed.since(0),
            snapshot.time.present_at(),
        )
    board = _board(lineage, everything)
    drivers, webhooks = opened.drivers, _webhook_terms(settings)
    lanes = _lanes(drivers, jobs, take=lambda answers: control.engine.take_answers(answers))
    control: Control = wire_control(
        opened.context,
        store=opened.store,
        around=ControlInputs(
            guests=BoardActivity(board, clock, loop),
            endpoint=RehearsalsOnLoop(RehearsalRegistry(board), loop),
            drivers=drivers.with_hooks,
            external=drivers.external,
            calls=lanes,
            webhooks=webhooks,
            new_secret=new_secret,
            monotonic=monotonic,
            session_life=settings.operator.session,
            keep_history=settings.history.keep,
        ),
    )
    context, use_cases, engine = control.context, control.use_cases, control.engine
    guest = GuestServer(
        board,
        WorkerCommands(use_cases.guests, jobs, members=board.members),
        clock=clock,
        settings=endpoint_settings(settings),
        new_id=new_id,
    )
    recent, holds = use_cases.recent, use_cases.unsaved_holds
    feed = BoardFeed(opened.store, partial(loop.publish, guest), recent=recent, number=everything.number)
    worker = Worker(
        jobs,
        batches=control.batches,
        engine=engine,
        answering=use_cases.answering,
        feed=feed,
        time=TimeWatch(clock, engine, present_at=present_at),
    )
    reaching = _reaching(opened, context, lanes, jobs)
    worker.first = holds.save
    opened.store.saved = _telling(
        log_records,
        feed.note,
        engine.note,
        reaching.note,
        lambda saved: holds.heard(None if saved is None else records_of(saved)),
    )
    _watch_waits(jobs, opened.store.deadlines, worker)
    operator_counts, api = PortCounts(Refusals("operator")), api_settings(settings.operator)
    pusher = _pusher(use_cases, webhooks, jobs, reads, lineage=lineage)
    supervisor = _supervisor(worker, reads, lanes, pusher, opened.store.deadlines)
    health = Health(worker, opened.store.deadlines, supervisor)
    services = Services(
        ApiDependencies(
            use_cases=use_cases,
            run=jobs.run,
            run_for=jobs.run_for,
            read=reads.run,
            read_for=reads.run_for,
            read_counts=reads.counts,
            pushing=pusher,
            inventories=Listings(drivers.by_name),
            timekeeper=Timekeeper(
                clock, engine, use_cases.declarations, moved=lambda: loop.soon(guest.time_moved)
            ),
            probes=health,
            guest_counters=guest.counters,
            driver_calls=lambda: replace(lanes.counts(), crashes=drivers.crashes()),
            store_durations=opened.store.durations.seen,
            refused=lambda: {
                (each.plane, limit): count
                for each in (guest.refusals, operator_counts.refusals)
                for limit, count in each.counts.items()
            },
            hang_ups=lambda: operator_counts.hang_ups,
            background=supervisor,
        ),
        EVERYTHING,
    )
    return Parts(
        board=board,
        guest=guest,
        worker=worker,
        reads=reads,
        lanes=lanes,
        services=services,
        app=operator_app(create_app(services, api), names=api.names, origins=api.origins),
        health=health,
        recent=recent,
        pusher=pusher,
        reaching=reaching,
        machine_watch=_machine_watch(opened, context, reads, jobs),
        operator_counts=operator_counts,
        supervisor=supervisor,
    )


def _webhook_terms(settings: Settings) -> WebhookTerms:
    return WebhookTerms(
        only_public=settings.webhooks.project_targets == "public",
        new_secret=new_webhook_secret,
        changed=Signal(),
    )


def _board(lineage: str, everything: Delta) -> Board:
    board = Board(lineage=lineage)
    board.apply(everything)
    return board


class _Supervised(Protocol):
    supervisor: Supervisor


def _supervisor(*parts: _Supervised) -> Supervisor:
    """Make one supervisor of all background tasks, so that probes and metrics see them together."""
    supervisor = Supervisor()
    for each in parts:
        each.supervisor = supervisor
    return supervisor


def _telling(*listeners: Listener) -> Listener:
    """Make what tells all of these what was saved."""

    def tell(saved: Saved) -> None:
        for listener in listeners:
            try:
                listener(saved)
            except Exception:  # the commit stands, and the others must hear of it
                log.exception("a listener failed after a commit")

    return tell


def _watch_waits(jobs: Jobs, deadlines: Deadlines, worker: Worker) -> None:
    jobs.waited = lambda: deadlines.waited(worker.thread)
    jobs.waited_now = lambda: deadlines.waiting(worker.thread)


def _reaching(opened: PreparedServer, context: Context, lanes: Lanes, jobs: Jobs) -> HostProbes:
    drivers = opened.drivers
    host_reach = ReachabilitySaver(context)
    limits = {name: drivers.by_name[name].limits for name in drivers.reaching}
    reaching = HostProbes(
        {name: each.reach_every.total_seconds() for name, each in limits.items() if each is not None},
        context,
        submit=lanes.submit,
        save=lambda changed: jobs.post(lambda tx: host_reach.save(tx, changed())),
        monotonic=monotonic,
    )
    lanes.reached = reaching.heard
    plans = context.plan_prechecks
    lanes.planned = lambda answer: plans.heard(answer.call.task, move_answer(answer))
    plans.submit = lambda task: lanes.submit(precheck_call(task))
    opened.drivers.restarted_by(reaching.ask_soon)
    return reaching


def _machine_watch(opened: PreparedServer, context: Context, reads: Reads, jobs: Jobs) -> MachineWatch:
    return MachineWatch(
        Listings(opened.drivers.by_name),
        HostListings(context),
        MachineSightings(context),
        read=reads.run,
        run=jobs.run,
    )


def _lanes(drivers: Drivers, jobs: Jobs, *, take: TakeAnswers) -> Lanes:
    lanes = Lanes(
        drivers.with_hooks,
        post=lambda work: jobs.post(Alone(lambda _transact: work())),
        take=take,
        real_now=SystemClock().now,
        monotonic=monotonic,
    )
    drivers.wake_by(lanes.wake)
    return lanes


def tokens_of(store: Store, clock: Clock, settings: Settings) -> Tokens:
    """Make the use cases about tokens, on a store that perhaps no server runs on."""
    return Tokens(context_of(store, clock, settings), new_secret=new_secret)


def _pusher(use_cases: UseCases, webhooks: WebhookTerms, jobs: Jobs, reads: Reads, *, lineage: str) -> Pusher:
    wall = SystemClock()

    def delivery() -> "Delivery":
        # What it calls with is loaded when there is somebody to call.
        from forewarn.server.threads.webhook_delivery import Delivery, PublicOnly

        guard = PublicOnly() if webhooks.only_public else None
        return Delivery(lineage=lineage, wall=wall.now, new_id=new_id, guard=guard)

    return Pusher(
        use_cases.deliveries,
        use_cases.reads(EVERYTHING).records,
        changed=webhooks.changed,
        run=jobs.run_for("webhooks"),
        read=reads.run_for("webhooks"),
        delivery=delivery,
    )
