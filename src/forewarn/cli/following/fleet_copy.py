"""A copy of the part of the fleet that is watched, updated by records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import TypeVar
from urllib.parse import quote

from forewarn.cli import formatting
from forewarn.cli.following.ended_reasons import EndedReasons
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

# More machines than this are read in one list rather than one by one.
ONE_BY_ONE = 20
# A clock that runs by itself is set right so often, in seconds.
READ_TIME_EVERY = 60.0
# As often as a server tries whether something can be saved.
READ_HEALTH_EVERY = 5.0

Key = tuple[str, str]  # a machine's project and its name without case


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFilter:
    """Which part of the fleet; None means any."""

    project: str | None = None
    group: str | None = None
    host: str | None = None

    @property
    def all(self) -> bool:
        """Whether it is the whole fleet."""
        return self.project is None and self.group is None and self.host is None

    @property
    def filters(self) -> dict[str, str | None]:
        """What a server is asked for its machines with."""
        return {"project": self.project, "group": self.group, "host": self.host}

    def has(self, thing: MachineAnswer | RecordAnswer) -> bool:
        """Return whether a machine, or what a record names, is in it."""
        return all(wanted in (None, getattr(thing, name)) for name, wanted in self.filters.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMachine:
    """What is shown of a machine: a fleet may be large."""

    name: str
    project: str
    group: str | None
    host: str | None
    update_domain: int
    state: MachineState


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTime:
    """Service time: read now and then, and reckoned from there at its speed."""

    now: datetime
    kind: str
    speed: float
    read_at: float

    @classmethod
    def read(cls, client: OperatorClient) -> "ServiceTime":
        """Ask a server what time it is."""
        clock = client.get("/v1/clock", ClockAnswer).value
        return cls(now=clock.now, kind=clock.kind, speed=clock.speed, read_at=monotonic())

    @property
    def old(self) -> bool:
        """Whether to ask again: always, if it is turned by hand; else now and then."""
        return not self.speed or monotonic() - self.read_at > READ_TIME_EVERY

    def at_present(self) -> datetime:
        """Return the service time now."""
        return self.now + timedelta(seconds=(monotonic() - self.read_at) * self.speed)


@dataclass(slots=True)
class FleetCopy:
    """The watched part of a fleet; None is what the caller may not see."""

    client: OperatorClient
    watched: WatchFilter
    version: int = 0  # grows with each change
    time: ServiceTime = field(init=False)  # read with everything else
    machines: dict[Key, WatchedMachine] = field(default_factory=dict)
    groups: dict[str, GroupAnswer] = field(default_factory=dict)
    events: list[ListedEventAnswer] = field(default_factory=list)
    hosts: dict[str, HostState] | None = None
    unreachable: Mapping[str, str] = field(default_factory=dict)  # hosts that are not reached, and why
    simulated: frozenset[str] = frozenset()  # hosts on which nothing is really done
    holds: list[HoldAnswer] | None = None
    rollouts: list[RolloutAnswer] | None = None
    orders: list[OrderAnswer] = field(default_factory=list)  # on hosts, or waiting for a person
    trouble: str = ""  # why the server takes no requests, as that nothing can be saved
    _health_read_at: float = field(init=False)
    _reasons: EndedReasons = field(default_factory=EndedReasons)

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
        self._load_what_waits()

    def check(self) -> None:
        """Ask for what is watched; RequestRefused if there is no such thing."""
        self.client.page(MachineAnswer, limit=1, **self.watched.filters)

    def take(self, records: Sequence[RecordAnswer]) -> None:
        """Read again what these records concern."""
        self.version += 1
        topics = {topic for record in records for topic in record.topics}
        self.read_time()
        if topics & {Topic.GROUPS, Topic.PROJECTS}:
            self._load_groups()
        if Topic.MACHINES in topics:
            self._take_machines(records)
        if topics & {Topic.EVENTS, Topic.MACHINES}:
            self._load_events()  # those of the machines that are watched now
        if Topic.HOSTS in topics:
            self._load_hosts()
        if Topic.HOLDS in topics:
            self._load_holds()
        if topics & {Topic.ORDERS, Topic.ROLLOUTS}:
            self._load_what_waits()
        else:
            self._read_ended_reasons()

    def read_time(self) -> None:
        """Read what time it is."""
        self.time = ServiceTime.read(self.client)

    def rest(self) -> None:
        """Mind the time while nothing happens: what has ended by it is read again."""
        if self.time.old:
            self.read_time()
        if monotonic() - self._health_read_at > READ_HEALTH_EVERY:
            self._read_health()
        self._read_ended_reasons()

    def _read_health(self) -> None:
        """Ask whether the server takes requests: it answers reads while nothing can be saved."""
        self._health_read_at = monotonic()
        try:
            self.client.get("/readyz", StatusAnswer)
            self.trouble = ""
        except RequestRefused as refusal:
            self.trouble = str(refusal)

    def concerns(self, record: RecordAnswer) -> bool:
        """Return whether a record is about what is watched."""
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
        groups = self._left(GroupAnswer, project=self.watched.project)
        self.groups = {group.name: group for group in groups}

    def _load_machines(self) -> None:
        every = self._left(MachineAnswer, **self.watched.filters)
        self.machines = {(each.project, each.name.casefold()): _small(each) for each in every}

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
        if len(named) > ONE_BY_ONE or any(map(_names_nothing, changed)):
            self._load_machines()
            return
        for project, name in named:
            self._take_machine(project, name)

    def _take_machine(self, project: str, name: str) -> None:
        try:
            machine = self.client.get(
                f"/v1/machines/{quote(name, safe='')}", MachineAnswer, project=project
            ).value
        except RequestRefused as refusal:
            if refusal.status != NOT_FOUND:
                raise
            self.machines.pop((project, name), None)
            return
        if self.watched.has(machine):
            self.machines[project, name] = _small(machine)
        else:
            self.machines.pop((project, name), None)

    def _load_events(self) -> None:
        every = self._left(ListedEventAnswer, project=self.watched.project)
        if not self.watched.all:
            mine = {machine.name for machine in self.machines.values()}
            every = [event for event in every if not mine.isdisjoint(event.resources)]
        self.events = every

    def _load_hosts(self) -> None:
        found = self._if_allowed(lambda: self.client.all(HostAnswer))
        self.hosts = (
            None
            if found is None
            else {host.name: host.state for host in found if self.watched.host in (None, host.name)}
        )
        self.unreachable = {
            host.name: _unreachable(host)
            for host in found or ()
            if host.reachable is False and host.name in (self.hosts or {})
        }
        simulated = (host.name for host in found or () if host.driver == SIMULATED)
        self.simulated = frozenset(simulated) & (self.hosts or {}).keys()

    def _load_holds(self) -> None:
        self.holds = self._if_allowed(lambda: self.client.page(HoldAnswer))

    def _load_what_waits(self) -> None:
        self.rollouts = self._if_allowed(lambda: self.client.all(RolloutAnswer, open=True))
        # Who may not see hosts is not shown what is done to them.
        every = [] if self.hosts is None else self._left(OrderAnswer, open="true")
        self.orders = [order for order in every if order.machine is None or _needs_attention(order)]

    def _read_ended_reasons(self) -> None:
        ends = (each.waiting_until for each in (*self.orders, *(self.rollouts or ())))
        if self._reasons.any(ends, now=self.time.at_present()):
            self.version += 1
            self._load_what_waits()

    def _left(self, kind: type[A], **filters: str | None) -> list[A]:
        """Read a list of what is watched; nothing, if that is gone by now."""
        try:
            return list(self.client.all(kind, **filters).value.items)
        except RequestRefused as refusal:
            if refusal.status != NOT_FOUND:
                raise
            return []

    def _if_allowed(self, read: Callable[[], Reply[Page[A]]]) -> list[A] | None:
        """Read a list; None if the token's role does not allow it."""
        try:
            return list(read().value.items)
        except RequestRefused as refusal:
            if refusal.status != FORBIDDEN:
                raise
            return None


def _small(machine: MachineAnswer) -> WatchedMachine:
    return WatchedMachine(**{each.name: getattr(machine, each.name) for each in fields(WatchedMachine)})


def _names_nothing(record: RecordAnswer) -> bool:
    """Return whether a record concerns all machines."""
    return not (record.project or record.group or record.host or record.machine)


def _needs_attention(order: OrderAnswer) -> bool:
    """Return whether an operator must do something about the work on one machine."""
    return order.stuck or (order.state is OrderState.STARTED and bool(order.waiting))


def _unreachable(host: HostAnswer) -> str:
    since = f" since {formatting.utc(host.unreachable_since)}" if host.unreachable_since else ""
    return f"cannot be reached{since}: {host.unreachable_because or 'its driver has not said why yet'}"
