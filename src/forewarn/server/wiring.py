"""How the objects of a server fit together: the only place that names concrete adapters."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from forewarn.api.app import create_app
from forewarn.api.limits import CallerLimits
from forewarn.api.services import ApiDependencies, ApiSettings, Services
from forewarn.clock import SystemClock, monotonic
from forewarn.config import OperatorSettings
from forewarn.control.board_feed import BoardFeed
from forewarn.control.engine.driver_calls import CallAnswer, move_answer, precheck_call
from forewarn.control.engine.incoming_changes import ReachabilitySaver
from forewarn.control.rollouts.host_listings import HostListings, MachineSightings
from forewarn.control.use_case import Context, ExclusiveJob
from forewarn.control.webhook_use_cases import SECRET_PREFIX, WebhookTerms
from forewarn.core.scope import EVERYTHING
from forewarn.drivers.registry import Drivers
from forewarn.guest.board.board import Board
from forewarn.guest.http.refusals import Refusals
from forewarn.guest.rehearsal import RehearsalRegistry
from forewarn.guest.server import GuestServer
from forewarn.guest.settings import EndpointSettings
from forewarn.server.addresses import public_origin
from forewarn.server.control_wiring import ControlInputs, wire_control
from forewarn.server.preparation import PreparedServer, new_id, new_secret
from forewarn.server.threads.bridge import BoardActivity, GuestLoop, RehearsalsOnLoop, WorkerCommands
from forewarn.server.threads.host_probes import HostProbes
from forewarn.server.threads.inventories import DriverInventories, MachineWatch
from forewarn.server.threads.jobs import Jobs
from forewarn.server.threads.lanes import Lanes
from forewarn.server.threads.operator_connection import PortCounts
from forewarn.server.threads.operator_server import operator_app
from forewarn.server.threads.pusher import Pusher
from forewarn.server.threads.reads import Reads
from forewarn.server.threads.time_keeping import Timekeeper, TimeWatch
from forewarn.server.threads.worker import Health, Worker
from forewarn.signals import Signal
from forewarn.store.saved import records_of
from forewarn.supervision import Supervisor

if TYPE_CHECKING:
    from forewarn.server.threads.webhook_delivery import Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredServer:
    """A whole server that has not started yet."""

    board: Board
    guest: GuestServer
    worker: Worker
    reads: Reads
    lanes: Lanes
    services: Services
    app: ASGIApp
    health: Health
    pusher: Pusher
    host_probes: HostProbes
    machine_watch: MachineWatch
    operator_counts: PortCounts
    supervisor: Supervisor


def wire(prepared: PreparedServer) -> WiredServer:
    """Make a server. Call this on the guest loop, which owns the board."""
    settings, clock, store, drivers = prepared.settings, prepared.clock, prepared.store, prepared.drivers
    loop, supervisor = GuestLoop(), Supervisor()
    store.deadlines.supervisor = supervisor
    jobs = Jobs(waited=store.deadlines.waited, waiting=store.deadlines.waiting)
    reads = Reads(settle=jobs.follow_up.wait, supervisor=supervisor)
    with store.read() as snapshot:
        lineage, everything, present_at = (
            snapshot.feed.lineage(),
            snapshot.feed.since(0),
            snapshot.time.present_at(),
        )
    board = Board(lineage=lineage)
    board.apply(everything)
    webhooks = WebhookTerms(
        only_public=settings.webhooks.project_targets == "public",
        new_secret=_new_webhook_secret,
        changed=Signal(),
    )
    lanes = Lanes(
        drivers.with_hooks,
        post=lambda work: jobs.post(ExclusiveJob(lambda _transact: work())),
        real_now=SystemClock().now,
        monotonic=monotonic,
        supervisor=supervisor,
    )
    drivers.wake_by(lanes.wake)
    control = wire_control(
        prepared.context,
        store=store,
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
        settings=EndpointSettings.of(settings.guest),
        new_id=new_id,
    )
    holds = use_cases.unsaved_holds
    feed = BoardFeed(store, partial(loop.publish, guest), recent=use_cases.recent, number=everything.number)
    worker = Worker(
        jobs,
        batches=control.batches,
        engine=engine,
        answering=use_cases.answering,
        feed=feed,
        time=TimeWatch(clock, engine, present_at=present_at),
        save_first=holds.save,
    )
    host_probes = _host_probes(drivers, context, lanes, jobs)
    _connect_lanes(lanes, context, take=engine.take_answers, reached=host_probes.take_answer)
    prepared.listeners.add(
        feed.note,
        engine.note,
        host_probes.note,
        lambda saved: holds.heard(None if saved is None else records_of(saved)),
    )
    inventories = DriverInventories(drivers.by_name)
    machine_watch = MachineWatch(
        inventories, HostListings(context), MachineSightings(context), read=reads.run_own, run=jobs.run_own
    )
    pusher = Pusher(
        use_cases.deliveries,
        use_cases.reads(EVERYTHING).records,
        changed=webhooks.changed,
        run=jobs.run_for("webhooks"),
        read=reads.run_for("webhooks"),
        delivery=_delivery_factory(lineage, only_public=webhooks.only_public),
    )
    operator_counts, api = PortCounts(Refusals("operator")), _api_settings(settings.operator)
    health = Health(worker, store.deadlines, supervisor)
    services = Services(
        ApiDependencies(
            use_cases=use_cases,
            run=jobs.run_own,
            run_for=jobs.run_for,
            read=reads.run_own,
            read_for=reads.run_for,
            read_counts=reads.counts,
            pushing=pusher,
            inventories=inventories,
            timekeeper=Timekeeper(
                clock, engine, use_cases.declarations, moved=lambda: loop.soon(guest.time_moved)
            ),
            probes=health,
            guest_counters=guest.counters,
            driver_calls=lambda: replace(lanes.counts(), crashes=drivers.crashes()),
            store_durations=store.durations.seen,
            refused=lambda: {
                (each.port, limit): count
                for each in (guest.connections.refusals, operator_counts.refusals)
                for limit, count in each.counts.items()
            },
            hang_ups=lambda: operator_counts.hang_ups,
            background=supervisor,
        ),
        EVERYTHING,
    )
    return WiredServer(
        board=board,
        guest=guest,
        worker=worker,
        reads=reads,
        lanes=lanes,
        services=services,
        app=operator_app(create_app(services, api), names=api.names, origins=api.origins),
        health=health,
        pusher=pusher,
        host_probes=host_probes,
        machine_watch=machine_watch,
        operator_counts=operator_counts,
        supervisor=supervisor,
    )


def _api_settings(settings: OperatorSettings) -> ApiSettings:
    limits = CallerLimits(rate=settings.rate, calls=settings.calls, streams=settings.streams)
    origins = tuple(public_origin(text) for text in settings.origins)
    return ApiSettings(names=settings.names, origins=origins, limits=limits)


def _host_probes(drivers: Drivers, context: Context, lanes: Lanes, jobs: Jobs) -> HostProbes:
    host_reach = ReachabilitySaver(context)
    limits = {name: drivers.by_name[name].limits for name in drivers.reaching}
    probes = HostProbes(
        {name: each.reach_every.total_seconds() for name, each in limits.items() if each is not None},
        context,
        submit=lanes.submit,
        save=lambda changed: jobs.post(lambda tx: host_reach.save(tx, changed())),
        monotonic=monotonic,
    )
    drivers.restarted_by(probes.ask_soon)
    return probes


def _connect_lanes(
    lanes: Lanes,
    context: Context,
    *,
    take: Callable[[list[CallAnswer]], None],
    reached: Callable[[CallAnswer], None],
) -> None:
    plans = context.plan_prechecks
    plans.submit = lambda task: lanes.submit(precheck_call(task))
    lanes.deliver_to(
        take=take,
        reached=reached,
        planned=lambda answer: plans.heard(answer.call.task, move_answer(answer)),
    )


def _new_webhook_secret() -> str:
    """Make a secret in the format of Standard Webhooks."""
    return SECRET_PREFIX + b64encode(token_bytes(32)).decode()


def _delivery_factory(lineage: str, *, only_public: bool) -> "Callable[[], Delivery]":
    def delivery() -> "Delivery":
        # Import the HTTP client only when there is a webhook to call: the import takes time.
        from forewarn.server.threads.webhook_delivery import Delivery, PublicOnly

        guard = PublicOnly() if only_public else None
        return Delivery(lineage=lineage, wall=SystemClock().now, new_id=new_id, guard=guard)

    return delivery
