"""A copy of the watched part of the fleet, updated by records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import TypeVar

from forewarn.cli import formatting
from forewarn.cli.options import path_of
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import FORBIDDEN, NOT_FOUND, Reply, RequestRefused
from forewarn.clock import monotonic
from forewarn.core.basic_types import SIMULATED, HostState, MachineState, OrderState
from forewarn.core.topics import Topic
from forewarn.wire.answers.answer import ApiAnswer, Page
from forewarn.wire.answers.event_answers import ListedEventAnswer
from forewarn.wire.answers.fleet_answers import GroupAnswer, HostAnswer, MachineAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.record_answers import RecordAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.answers.service_answers import ClockAnswer, HoldAnswer, StatusAnswer

A = TypeVar("A", bound=ApiAnswer)

# More changed machines than this are read in one list rather than one by one.
ONE_BY_ONE = 20
# Seconds between two readings of a clock that runs by itself.
READ_TIME_EVERY = 60.0
# Seconds between two readings of reasons that should have ended. A stopped server keeps them longer.
READ_REASONS_EVERY = 2.0
# As often as a server checks that it can save changes.
READ_HEALTH_EVERY = 5.0

Key = tuple[str, str]  # the project and the casefolded name of a machine


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFilter:
    """The watched part of the fleet; None means any."""

    project: str | None = None
    group: str | None = None
    host: str | None = None

    @property
    def all(self) -> bool:
        """Whether the whole fleet is watched."""
        return self.project is None and self.group is None and self.host is None

    @property
    def filters(self) -> dict[str, str | None]:
        """The query parameters for a list of machines."""
        return {"project": self.project, "group": self.group, "host": self.host}

    def has(self, thing: MachineAnswer | RecordAnswer) -> bool:
        """Return whether a machine or the subject of a record is watched."""
        return all(wanted in (None, getattr(thing, name)) for name, wanted in self.filters.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMachine:
    """The few shown fields of a machine, because a fleet may be large."""

    name: str
    project: str
    group: str | None
    host: str | None
    update_domain: int
    state: MachineState


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTime:
    """A reading of service time, and an estimate of the time since."""

    now: datetime
    kind: str
    speed: float
    read_at: float

    @classmethod
    def read(cls, client: OperatorClient) -> "ServiceTime":
        """Read the time of a server."""
        clock = client.get("/v1/clock", ClockAnswer).value
        return cls(now=clock.now, kind=clock.kind, speed=clock.speed, read_at=monotonic())

    @property
    def is_stale(self) -> bool:
        """Whether to read the time again: always for a manual clock, otherwise now and then."""
        return not self.speed or monotonic() - self.read_at > READ_TIME_EVERY

    def estimate(self) -> datetime:
        """Return the service time now."""
        return self.now + timedelta(seconds=(monotonic() - self.read_at) * self.speed)


class ReasonExpiry:
    """When to read waiting reasons again: no record says that a gap or a window has passed."""

    def __init__(self) -> None:
        self._read_at: float | None = None

    def is_due(self, ends: Iterable[datetime | None], *, now: datetime) -> bool:
        """Return whether a reason has ended at one of these times, by the server's clock."""
        if all(end is None or end > now for end in ends):
            self._read_at = None
            return False
        if self._read_at is not None and monotonic() - self._read_at < READ_REASONS_EVERY:
            return False
        self._read_at = monotonic()
        return True


@dataclass(slots=True)
class FleetCopy:
    """The watched part of a fleet; None where the caller lacks the right."""

    client: OperatorClient
    watched: WatchFilter
    version: int = 0  # increases with each change
    time: ServiceTime = field(init=False)  # read with everything else
    machines: dict[Key, WatchedMachine] = field(default_factory=dict)
    groups: dict[str, GroupAnswer] = field(default_factory=dict)
    events: list[ListedEventAnswer] = field(default_factory=list)
    hosts: dict[str, HostState] | None = None
    unreachable: Mapping[str, str] = field(default_factory=dict)  # unreachable hosts, with the reasons
    simulated: frozenset[str] = frozenset()  # hosts with the simulated driver
    holds: list[HoldAnswer] | None = None
    rollouts: list[RolloutAnswer] | None = None
    orders: list[OrderAnswer] = field(default_factory=list)  # on hosts, or waiting for an operator
    trouble: str = ""  # why the server accepts no orders
    _health_read_at: float = field(init=False)
    _reasons: ReasonExpiry = field(default_factory=ReasonExpiry)

    def load(self) -> None:
        """Read everything."""
        self.version += 1
        self.read_time()
        self._read_health()
        self._load_groups()
        self._load_machines()
        self._load_events()
        self._load_hosts()
        self._load_holds()
        self._load_work()

    def check(self) -> None:
        """Raise RequestRefused if the watched group or host does not exist."""
        self.client.page(MachineAnswer, limit=1, **self.watched.filters)

    def take(self, records: Sequence[RecordAnswer]) -> None:
        """Read the changed parts."""
        self.version += 1
        topics = {topic for record in records for topic in record.topics}
        self.read_time()
        if topics & {Topic.GROUPS, Topic.PROJECTS}:
            self._load_groups()
        if Topic.MACHINES in topics:
            self._take_machines(records)
        if topics & {Topic.EVENTS, Topic.MACHINES}:
            self._load_events()  # of the machines that are watched now
        if Topic.HOSTS in topics:
            self._load_hosts()
        if Topic.HOLDS in topics:
            self._load_holds()
        if topics & {Topic.ORDERS, Topic.ROLLOUTS}:
            self._load_work()
        else:
            self._reload_expired()

    def read_time(self) -> None:
        """Read the service time."""
        self.time = ServiceTime.read(self.client)

    def on_idle(self) -> None:
        """Read the parts that change without a record."""
        if self.time.is_stale:
            self.read_time()
        if monotonic() - self._health_read_at > READ_HEALTH_EVERY:
            self._read_health()
        self._reload_expired()

    def _read_health(self) -> None:
        """Check whether the server accepts orders; it answers reads even if it does not."""
        self._health_read_at = monotonic()
        try:
            self.client.get("/readyz", StatusAnswer)
            self.trouble = ""
        except RequestRefused as refusal:
            self.trouble = str(refusal)

    def concerns(self, record: RecordAnswer) -> bool:
        """Return whether a record is about the watched part."""
        watched = self.watched
        if watched.all or (watched.project and not (watched.group or watched.host)):
            return watched.project in (None, record.project)
        if record.group is not None and record.group == watched.group:
            return True
        if record.host is not None and record.host == watched.host:
            return True
        named = {record.machine} | {
            name for event in self.events if event.id == record.event for name in event.resources
        }
        mine = {machine.name for machine in self.machines.values()}
        return not named.isdisjoint(mine)

    def _load_groups(self) -> None:
        groups = self._list(GroupAnswer, project=self.watched.project)
        self.groups = {group.name: group for group in groups}

    def _load_machines(self) -> None:
        every = self._list(MachineAnswer, **self.watched.filters)
        self.machines = {(each.project, each.name.casefold()): _watched(each) for each in every}

    def _take_machines(self, records: Iterable[RecordAnswer]) -> None:
        changed = [record for record in records if Topic.MACHINES in record.topics]
        named, hosts = set(), set()
        for record in changed:
            if record.machine:
                key = record.project or "", record.machine.casefold()
                if key in self.machines or self.watched.has(record):
                    named.add(key)
            elif record.host:
                hosts.add(record.host)
        named |= {key for key, machine in self.machines.items() if machine.host in hosts}
        if len(named) > ONE_BY_ONE or any(map(_concerns_all, changed)):
            self._load_machines()
            return
        for project, name in named:
            self._take_machine(project, name)

    def _take_machine(self, project: str, name: str) -> None:
        machine: MachineAnswer | None = None
        try:
            machine = self.client.get(path_of("machine", name), MachineAnswer, project=project).value
        except RequestRefused as refusal:
            if refusal.status != NOT_FOUND:
                raise
        if machine is not None and self.watched.has(machine):
            self.machines[project, name] = _watched(machine)
        else:
            self.machines.pop((project, name), None)

    def _load_events(self) -> None:
        every = self._list(ListedEventAnswer, project=self.watched.project)
        if not self.watched.all:
            mine = {machine.name for machine in self.machines.values()}
            every = [event for event in every if not mine.isdisjoint(event.resources)]
        self.events = every

    def _load_hosts(self) -> None:
        found = self._if_allowed(lambda: self.client.all(HostAnswer))
        watched = [host for host in found or () if self.watched.host in (None, host.name)]
        self.hosts = None if found is None else {host.name: host.state for host in watched}
        self.unreachable = {host.name: _unreachable(host) for host in watched if host.reachable is False}
        self.simulated = frozenset(host.name for host in watched if host.driver == SIMULATED)

    def _load_holds(self) -> None:
        self.holds = self._if_allowed(lambda: self.client.page(HoldAnswer))

    def _load_work(self) -> None:
        self.rollouts = self._if_allowed(lambda: self.client.all(RolloutAnswer, open=True))
        # A caller who cannot see hosts sees no orders on them.
        every = [] if self.hosts is None else self._list(OrderAnswer, open="true")
        self.orders = [order for order in every if order.machine is None or _needs_attention(order)]

    def _reload_expired(self) -> None:
        ends = (each.waiting_until for each in (*self.orders, *(self.rollouts or ())))
        if self._reasons.is_due(ends, now=self.time.estimate()):
            self.version += 1
            self._load_work()

    def _list(self, kind: type[A], **filters: str | None) -> list[A]:
        """Read a list; empty if the watched group or host was removed."""
        try:
            return list(self.client.all(kind, **filters).value.items)
        except RequestRefused as refusal:
            if refusal.status != NOT_FOUND:
                raise
            return []

    def _if_allowed(self, read: Callable[[], Reply[Page[A]]]) -> list[A] | None:
        """Read a list; None if the caller lacks the right."""
        try:
            return list(read().value.items)
        except RequestRefused as refusal:
            if refusal.status != FORBIDDEN:
                raise
            return None


def _watched(machine: MachineAnswer) -> WatchedMachine:
    return WatchedMachine(**{each.name: getattr(machine, each.name) for each in fields(WatchedMachine)})


def _concerns_all(record: RecordAnswer) -> bool:
    """Return whether a record concerns all machines."""
    return not (record.project or record.group or record.host or record.machine)


def _needs_attention(order: OrderAnswer) -> bool:
    """Return whether an operator must act on the work on one machine."""
    return order.stuck or (order.state is OrderState.STARTED and bool(order.waiting))


def _unreachable(host: HostAnswer) -> str:
    since = f" since {formatting.utc(host.unreachable_since)}" if host.unreachable_since else ""
    return f"cannot be reached{since}: {host.unreachable_because or 'reason unknown'}"
