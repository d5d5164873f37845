"""The service without its endpoints: use cases, engine and store with a manual clock."""

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from forewarn.clock import ManualClock
from forewarn.config import SimulatedTimes
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Checked,
    Driver,
    DriverTask,
    Failed,
    KnownDrivers,
    Listing,
    Running,
    Unknown,
)
from forewarn.control.engine.driver_calls import DriverCall, Verb
from forewarn.control.interfaces import LastPolls, UntakenNotices
from forewarn.control.orders.order_use_cases import Placed
from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.control.use_case import Context
from forewarn.control.webhook_use_cases import WebhookTerms
from forewarn.core.basic_types import (
    EXTERNAL,
    SIMULATED,
    Action,
    EventId,
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
    Work,
)
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.event import Event
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import Sent, Slice
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.policy import Policy
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.drivers.external import ExternalDriver
from forewarn.drivers.registry import DriversByName
from forewarn.drivers.simulated import SimulatedDriver
from forewarn.guest.board.board import Board
from forewarn.guest.rehearsal import RehearsalRegistry
from forewarn.server.control_wiring import ControlInputs, wire_control
from forewarn.server.threads.time_keeping import Timekeeper
from forewarn.signals import Signal
from forewarn.store.store import Store, open_store
from tests.helpers.database.transactions import InTransactions

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
TEST = OrderRequest(by="test")
SIMULATION = FleetDefaults(driver=SIMULATED)


class Ids:
    """Consecutive ids, so every run is the same."""

    def __init__(self, after: int = 0) -> None:
        self._last = after

    def __call__(self) -> str:
        self._last += 1
        return f"00000000-0000-4000-8000-{self._last:012X}"


class Secrets:
    """Consecutive secrets; these tests need no randomness."""

    def __init__(self, after: int = 0) -> None:
        self._last = after

    def __call__(self) -> str:
        self._last += 1
        return f"secret-{self._last}"


class Polls:
    """Polls and notices of guests, as set by the test."""

    def __init__(self) -> None:
        self.groups: dict[GroupName, datetime] = {}
        self.machines: dict[MachineId, datetime] = {}
        self.sent: dict[EventId, dict[MachineId, datetime]] = {}

    def pending(self) -> bool:
        return bool(self.groups or self.machines)

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        taken = self.groups, self.machines
        self.groups, self.machines = {}, {}
        return taken

    def has_notices(self) -> bool:
        return bool(self.sent)

    def take_notices(self) -> Sent:
        taken, self.sent = self.sent, {}
        return taken

    def untaken_notices(self) -> UntakenNotices:
        return lambda event: self.sent.get(event, {})

    def fresh(self) -> LastPolls:
        polls = self.machines
        return lambda machines: {machine: polls[machine] for machine in machines if machine in polls}


class WatchedDriver:
    """The simulated driver with failures on request. It records the steps it begins."""

    trusted_text = True
    limits = None
    fences = True

    def __init__(self) -> None:
        self._simulated = SimulatedDriver(SimulatedTimes())
        self.failing: set[str] = set()
        self.slow: set[str] = set()
        self.unknown: set[str] = set()
        self.begun: list[tuple[str, str, int]] = []

    def begin(self, task: DriverTask) -> Begun:
        self.begun.append((task.order, task.name, task.attempt))
        if task.name in self.failing:
            return Failed("told to fail")
        return self._simulated.begin(task)

    def check(self, task: DriverTask) -> Checked:
        if task.name in self.failing:
            return Failed("told to fail")
        if task.name in self.slow:
            return Running(task.now + timedelta(minutes=1))
        if task.name in self.unknown:
            return Unknown("told not to answer")
        return self._simulated.check(task)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        return self._simulated.cancel(task)


class WaitingCalls:
    """Driver calls that wait until the test makes them."""

    def __init__(self) -> None:
        self.waiting: list[DriverCall] = []
        self.withdrawn: list[AttemptId] = []  # calls whose `begin` may still be withdrawn

    def submit(self, call: DriverCall) -> None:
        self.waiting.append(call)

    def withdraw(self, attempt: AttemptId) -> None:
        self.waiting = [call for call in self.waiting if call.verb != Verb.BEGIN or call.task.id != attempt]
        self.withdrawn.append(attempt)


class CachedSlice:
    """A cached slice of a store, read again only after a change."""

    def __init__(self, url: str) -> None:
        self._file = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else None
        self._watching: sqlite3.Connection | None = None
        self._version: int | None = None
        self._slice: Slice | None = None

    def slice_of(self, store: Store) -> Slice:
        version = self._load_version()
        if self._slice is None or version is None or version != self._version:
            with store.read() as snapshot:
                self._slice = snapshot.rules.everything()
            self._version = version
        return self._slice

    def close(self) -> None:
        if self._watching is not None:
            self._watching.close()
            self._watching = None

    def _load_version(self) -> int | None:
        """Return a number that changes with each commit, if the database has one."""
        if self._file is None:
            return None
        if self._watching is None:
            self._watching = sqlite3.connect(self._file, check_same_thread=False)
        version: int = self._watching.execute("PRAGMA data_version").fetchone()[0]
        return version


class Service:
    """A service on a database that a test runs step by step."""

    def __init__(
        self,
        url: str,
        *,
        policy: Policy | None = None,
        start: datetime = START,
        ids: Ids | None = None,
        secrets: Secrets | None = None,
        preview: bool = False,
    ) -> None:
        self.url = url
        self.preview = preview
        self.policy = policy or Policy()
        self.ids = ids or Ids()
        self.secrets = secrets or Secrets()
        self.polls = Polls()
        self.driver = WatchedDriver()
        self.more_drivers: dict[str, Driver] = {}  # by name; kept across restarts
        self.clock = ManualClock(start)
        self.real = 0.0  # real time in seconds; the test advances it too
        self.begun = start
        self.open()

    def open(self) -> None:
        """Start on the contents of the database, like a server."""
        self.store: Store = open_store(self.url, new_id=self.ids)
        self._seen = CachedSlice(self.url)
        with self.store.read() as snapshot:
            reached = snapshot.time.reached()
        if reached is not None:
            self.clock.start_from(reached)
        self.wire(self.store)
        self.store.saved = lambda saved: self.engine.note(saved)

    def wire(self, store: Store) -> None:
        external = ExternalDriver(self.policy.external_silence, monotonic=lambda: self.real)
        drivers = self.drivers = DriversByName(
            {SIMULATED: self.driver, EXTERNAL: external, **self.more_drivers}
        )
        board = self.board = Board(lineage=self.url)
        with store.read() as snapshot:
            board.apply(snapshot.feed.since(0))
        self.calls, self.webhooks_changed = WaitingCalls(), Signal()
        control = wire_control(
            Context(
                store=store,
                clock=self.clock,
                policy=self.policy,
                new_id=self.ids,
                real_now=self.real_now,
                drivers=KnownDrivers(
                    names=frozenset(drivers),
                    kinds={name: name for name in drivers},
                    listing=frozenset(name for name, each in drivers.items() if isinstance(each, Listing)),
                ),
                preview=self.preview,
            ),
            store=store,
            around=ControlInputs(
                guests=self.polls,
                endpoint=RehearsalRegistry(board),
                drivers=drivers,
                external=external,
                calls=self.calls,
                webhooks=WebhookTerms(new_secret=lambda: f"whsec_{'A' * 32}", changed=self.webhooks_changed),
                new_secret=self.secrets,
                monotonic=lambda: self.real,
            ),
        )
        self.context, self.use_cases, self.engine = control.context, control.use_cases, control.engine
        self.batches, self.transact, self.order_work = (
            control.batches,
            control.batches.transact,
            control.order_work,
        )
        self.recent = self.use_cases.recent
        self.answering = self._each(self.use_cases.answering)
        self.sessions = self._each(self.use_cases.sessions)
        self.deliveries = self._each(self.use_cases.deliveries)
        self.fleet = FleetInTransactions(self)
        self.rollouts, self.tokens = self.fleet.rollouts, self.fleet.tokens
        self.time = Timekeeper(self.clock, self.engine, self.use_cases.declarations)
        everything = self.within(None)
        self.orders, self.views, self.records = everything.orders, everything.views, everything.records
        self.webhooks, self.rehearsals = everything.webhooks, everything.rehearsals

    def real_now(self) -> datetime:
        """Return the real time."""
        return self.begun + timedelta(seconds=self.real)

    def keep_history(self, keep: timedelta | None) -> None:
        """Keep records for this long from now on; None: permanently."""
        self.engine.pruning.keep = keep

    def _each(self, use_cases: Any) -> Any:
        """Call use cases one by one, each in its own transaction."""
        return InTransactions(use_cases, self.transact)

    def within(self, project: ProjectName | None) -> "CallerInTransactions":
        """Return the use cases for users of a project; None: for operators."""
        return CallerInTransactions(self, Scope(caller=project))

    def close(self) -> None:
        self.store.close()
        self._seen.close()

    def restart(self) -> None:
        """Stop like a killed process, and start again on the same file."""
        self.close()
        self.polls.take()
        self.polls.take_notices()
        self.open()
        self.tick()

    # Requests of operators and guests

    def apply(self, spec: FleetSpec) -> tuple[str, ...]:
        changes: tuple[str, ...] = self.fleet.declarations.apply_fleet(spec, by="test")
        return changes

    def poll(self, name: str) -> None:
        """Poll as a guest of this machine's group."""
        machine = self.machine(name)
        self.fleet.guests.enable(machine.group)
        self.polls.groups[machine.group] = self.clock.now()
        self.polls.machines[machine.id] = self.clock.now()

    def fetch(self, *names: str) -> None:
        """Poll as guests of these machines, and receive all their events."""
        for name in names:
            self.poll(name)
            for event in self.events(name):
                for resource in event.resources:
                    if resource.name == name:
                        sent = self.polls.sent.setdefault(event.id, {})
                        sent.setdefault(resource.machine, self.clock.now())

    def order(self, name: str, action: Action) -> Placed:
        placed: Placed = self.orders.order_machine(name, action, TEST)
        self.tick()
        return placed

    def host_order(self, name: str, action: Action, work: Work | None = None) -> Placed:
        placed: Placed = self.fleet.hosts.order_host(name, action, TEST, work=work)
        self.tick()
        return placed

    def roll(self, *hosts: str, **more: Any) -> Rollout:
        """Begin a rollout over these hosts, or over all."""
        names = tuple(HostName(host) for host in hosts) or None
        begun = self.rollouts.begin(
            RolloutRequest(**{"hosts": names, "work": Work.FREEZE, "by": "test", **more})
        )
        self.tick()
        return self.rollout(begun.rollout)

    def rollout(self, rollout: Rollout) -> Rollout:
        found: Rollout = self.rollouts.rollout(rollout.id).rollout
        return found

    def look_at(self, rollout: Rollout) -> None:
        """Look at a rollout like the engine, whether or not it is due."""
        now = self.clock.now()
        self.transact(lambda tx: self.engine.rollouts.look(tx, rollout.id, now))

    def approve(self, name: str, *events: Event | EventId) -> None:
        """Approve as a guest."""
        ids = [event if isinstance(event, str) else event.id for event in events]
        self.fleet.guests.approve(self.machine(name).id, ids, address="127.0.0.1")
        self.tick()

    def defer(self, name: str, *, seconds: int) -> None:
        """Defer each visible event as a guest."""
        self.fleet.guests.defer(self.machine(name).id, {event.id: seconds for event in self.events(name)})
        self.tick()

    def put(self, name: str, /, **changes: object) -> Machine:
        def change(known: MachineSpec | None) -> MachineSpec:
            from dataclasses import replace

            return replace(known or MachineSpec(name=MachineName(name)), **changes)  # type: ignore[arg-type]

        machine: Machine = self.fleet.declarations.put_machine(name, project=None, change=change, by="test")
        self.tick()
        return machine

    def delete(self, name: str) -> None:
        self.fleet.declarations.delete_machine(name, project=None, by="test")
        self.tick()

    def work_on(self, order: OrderId) -> None:
        """Advance an order as far as possible, whether or not it is due."""
        assert self.order_work.work_on([order], self.clock.now()) == []

    def tick(self) -> None:
        while self.engine.tick(self.clock.now()):
            pass

    def advance(self, **span: float) -> None:
        """Advance time without a record of a clock change."""
        now = self.clock.now()
        self.engine.run_until(now + timedelta(**span), now, reach=self.clock.set)

    # The current state

    def machine(self, name: str) -> Machine:
        return self.views.machine(name).machine

    def events(self, name: str) -> list[Event]:
        """Return the events that a guest of this machine sees."""
        group = self.machine(name).group
        return sorted(
            (event for event in self.everything().events.values() if event.group == group),
            key=lambda event: event.number,
        )

    def incarnation(self, name: str) -> int:
        return self.everything().groups[self.machine(name).group].incarnation

    def reload(self, order: Order | Placed) -> Order:
        wanted = order.order if isinstance(order, Placed) else order
        return self.views.order(wanted.id).order

    def everything(self) -> Slice:
        return self._seen.slice_of(self.store)

    def history(self, **wanted: object) -> list[Record]:
        """Return all records, oldest first."""
        return list(reversed(self.views.history(HistoryFilter(limit=100_000, **wanted))))  # type: ignore[arg-type]


class CallerInTransactions:
    """The use cases of a caller, each in its own transaction."""

    def __init__(self, service: Service, scope: Scope) -> None:
        reads = service.use_cases.reads(scope)
        self.views, self.records = reads.views, reads.records
        self.webhooks_seen, self.rehearsals_seen = reads.webhooks, reads.rehearsals
        self.orders: Any = InTransactions(service.use_cases.orders, service.transact, scope)
        self.webhooks: Any = InTransactions(service.use_cases.webhooks, service.transact, scope)
        self.rehearsals: Any = InTransactions(service.use_cases.rehearsals, service.transact, scope)


class FleetInTransactions:
    """The use cases of operators, each in its own transaction."""

    def __init__(self, service: Service) -> None:
        use_cases = service.use_cases
        self.declarations: Any = InTransactions(use_cases.declarations, service.transact)
        self.puts: Any = InTransactions(use_cases.puts, service.transact)
        self.hosts: Any = InTransactions(use_cases.hosts, service.transact)
        self.rollouts: Any = InTransactions(use_cases.rollouts, service.transact)
        self.tokens: Any = InTransactions(use_cases.tokens, service.transact)
        self.guests: Any = InTransactions(use_cases.guests, service.transact)
        self.unsaved_holds = use_cases.unsaved_holds
        self.views = use_cases.reads(EVERYTHING).fleet.views


def group(name: str, *, domains: int = 3, kind: GroupKind = GroupKind.AVAILABILITY_SET) -> GroupSpec:
    return GroupSpec(name=GroupName(name), kind=kind, update_domains=domains)


def machine(
    name: str, host: str, *, group: str | None = None, domain: int = 0, **more: object
) -> MachineSpec:
    return MachineSpec(
        name=MachineName(name),
        host=HostName(host),
        group=None if group is None else GroupName(group),
        update_domain=domain,
        **more,  # type: ignore[arg-type]
    )


def fleet(*parts: GroupSpec | MachineSpec, hosts: int = 3) -> FleetSpec:
    """Declare a fleet on `host-1` to `host-N`."""
    return FleetSpec(
        defaults=SIMULATION,
        hosts=tuple(HostSpec(name=HostName(f"host-{number}")) for number in range(1, hosts + 1)),
        groups=tuple(part for part in parts if isinstance(part, GroupSpec)),
        machines=tuple(part for part in parts if isinstance(part, MachineSpec)),
    )
