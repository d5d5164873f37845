"""What control needs of the outside world, in the words of the domain; of drivers, in `driver.py`.

Adapters implement these without inheriting from them. All of it is synchronous: one worker thread runs
all of control, one use case at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from forewarn.control.ledger import Account
from forewarn.core.access import Token
from forewarn.core.model.changes import Changes
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Grace
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import Sent, Slice
from forewarn.core.model.survey import HostSurvey
from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.core.rehearsal.faults import Fault
from forewarn.core.retention import Pruning
from forewarn.core.words import (
    EventId,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    OrderState,
    ProjectName,
)


class Clock(Protocol):
    """Service time: the only time the rules know."""

    def now(self) -> datetime:
        """Return the present moment, aware and UTC."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """Which records are asked for; None means any."""

    project: ProjectName | None = None
    machine: MachineName | None = None
    event: EventId | None = None
    order: OrderId | None = None
    since: datetime | None = None
    kinds: frozenset[str] = frozenset()  # nothing means any
    below: int | None = None  # only numbers below this one: the cursor of a page
    above: int | None = None  # only numbers above this one, and the oldest first
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Which records somebody follows; None and nothing mean any."""

    project: ProjectName | None = None
    machine: MachineName | None = None
    kinds: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()  # kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The next records after some number, oldest first."""

    records: tuple[Record, ...]
    number: int  # where to go on: there is nothing else up to it
    more: bool  # whether there may be more at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """All that boards must know of what changed after some number of the feed."""

    number: int  # of the newest change in it
    groups: tuple[Group, ...] = ()
    events: Mapping[GroupName, tuple[Event, ...]]  # all listed events of each of those groups, by creation
    machines: tuple[Machine, ...] = ()
    removed_groups: tuple[GroupName, ...] = ()
    removed_machines: tuple[MachineId, ...] = ()


class Snapshot(Protocol):
    """What can be read in one transaction.

    One that was opened for a project finds and lists that project alone, and its machines, groups, orders,
    events, records and own webhooks only; what the rules load (`around`, `everything`, `since`) is whole all
    the same.
    """

    def around(
        self,
        *,
        orders: Sequence[OrderId] = (),
        machines: Sequence[MachineId] = (),
        hosts: Sequence[HostName] = (),
        groups: Sequence[GroupName] = (),
    ) -> Slice:
        """Load the part of the fleet that a decision about these needs; unknown ones are left out.

        The hosts are those named, those of the orders named and those of the machines named; beside
        them stand the hosts that steps of the named orders move machines to. The machines are those
        named, those of the orders named (their `machine` and their steps'), and all that named hosts
        and the hosts of named orders carry. The groups are those named, and those of the loaded
        machines and events. The orders are those named, and every open one that touches a loaded
        machine (as its `machine`, or in a step of a stage that is not done) or whose host is a loaded
        host. The events are the listed ones of the loaded orders. `listed` counts all listed
        events of the loaded groups; `room` has the emptiest sound hosts, as many
        as its machines could be moved to and some more, and where these carry too much of a group the
        emptiest that do not; `sent` has the saved notices of the events. Both can be asked while the
        snapshot is open.
        """
        ...

    def everything(self) -> Slice:
        """Load the whole fleet, every open order and every listed event."""
        ...

    def machine(self, name: str, *, project: ProjectName | None) -> Machine:
        """Find a machine by its name, any case; NotFound, or Conflict if several projects have it."""
        ...

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        ...

    def machines(
        self,
        *,
        after: str | None,
        limit: int,
        group: GroupName | None = None,
        host: HostName | None = None,
    ) -> tuple[Sequence[Machine], str | None]:
        """List machines by project and name: all, or those of a group, on a host, or both.

        Returns the cursor of the next page, None at the end.
        """
        ...

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups by name, standalone machines left out."""
        ...

    def hosts(self, *, after: str | None, limit: int) -> tuple[Sequence[Host], str | None]:
        """List hosts by name."""
        ...

    def projects(self) -> Sequence[Project]:
        """List all projects by name."""
        ...

    def page_of_projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects by name, and give the cursor of the next page."""
        ...

    def group(self, name: GroupName) -> Group | None:
        """Find a group, a standalone machine's own included."""
        ...

    def host(self, name: HostName) -> Host | None:
        """Find a host."""
        ...

    def order(self, order: OrderId) -> Order | None:
        """Find an order, open or over; ids in any case."""
        ...

    def orders(
        self, *, state: OrderState | None, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first, open or over."""
        ...

    def open_orders(self, among: Iterable[OrderId]) -> frozenset[OrderId]:
        """Find which of these orders are open."""
        ...

    def event(self, event: EventId) -> Event | None:
        """Find an event, listed or over; ids in any case."""
        ...

    def events(self, *, after: str | None, limit: int) -> tuple[Sequence[Event], str | None]:
        """List the listed events of the whole fleet, by creation."""
        ...

    def events_of_order(self, order: OrderId) -> Sequence[Event]:
        """List all events of an order, over ones too, by creation."""
        ...

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ...

    def listed_events(self) -> Sequence[Event]:
        """List all listed events, by creation."""
        ...

    def put_off(self, events: Sequence[EventId]) -> Mapping[EventId, Sequence[datetime]]:
        """Say when those of these events that were put off were, first to last."""
        ...

    def history(self, wanted: HistoryFilter) -> Sequence[Record]:
        """List records, newest first; those above a number oldest first."""
        ...

    def newest(self) -> int:
        """Return the number of the newest change."""
        ...

    def following(self, number: int, wanted: RecordFilter, *, limit: int) -> Following:
        """Read records after a number, oldest first."""
        ...

    def count_following(self, number: int, wanted: RecordFilter) -> int:
        """Count the records after a number."""
        ...

    def pruning(self) -> Pruning:
        """Say how far old records have been removed."""
        ...

    def webhook(self, webhook: WebhookId) -> Webhook | None:
        """Find a webhook; ids in any case."""
        ...

    def webhooks(
        self, *, project: ProjectName | None, after: str | None, limit: int
    ) -> tuple[Sequence[Webhook], str | None]:
        """List webhooks, oldest first; None lists those of all projects and of none."""
        ...

    def count_webhooks(self, *, owner: ProjectName | None = None) -> int:
        """Count a project's own webhooks; None counts all there are, whoever asks."""
        ...

    def tokens(self, *, after: str | None, limit: int) -> tuple[Sequence[Token], str | None]:
        """List tokens, the oldest first, revoked ones too."""
        ...

    def tokens_in_force(self) -> Sequence[Token]:
        """List the tokens that were not revoked, the oldest first; some may have expired."""
        ...

    def has_tokens(self) -> bool:
        """Say whether a token was ever made."""
        ...

    def scheduled_user_orders(self, project: ProjectName) -> int:
        """Count a project's user-initiated orders that are not started yet."""
        ...

    def last_seen(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Say when each of these machines was last seen, as far as that is saved."""
        ...

    def notices(self, events: Sequence[EventId]) -> Sent:
        """Say when machines were first sent these events, as far as that is saved."""
        ...

    def tallies(self) -> Mapping[str, int]:
        """Say how many machines the records of a kind have told of, for the kinds that are counted."""
        ...

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, orders and listed events by state, for the metrics."""
        ...

    def since(self, number: int) -> Delta:
        """Read what changed after a number of the feed; 0 reads everything."""
        ...

    def driven_orders(self, *, driver: str) -> Sequence[Order]:
        """List open orders whose work a driver does, oldest first."""
        ...

    def due_orders(self, now: datetime, *, limit: int) -> Sequence[OrderId]:
        """List open orders that want to be looked at by now, the longest due first."""
        ...

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, the longest idle first."""
        ...

    def next_order_due(self) -> datetime | None:
        """Say when the next open order wants to be looked at."""
        ...

    def next_group_ready(self, *, after: datetime) -> datetime | None:
        """Say when the next group becomes ready, of those that become so after a moment."""
        ...

    def oldest_activity(self) -> datetime | None:
        """Say when the enabled group that has been silent for longest was last active."""
        ...

    def rollout(self, rollout: str) -> Rollout | None:
        """Find a rollout, open or over; ids in any case."""
        ...

    def rollouts(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts, newest first."""
        ...

    def page_of_open_rollouts(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts that are not over, newest first, and give the cursor of the next page."""
        ...

    def open_rollouts(self) -> Sequence[Rollout]:
        """List rollouts that are not over, the oldest first."""
        ...

    def due_rollouts(self, now: datetime, *, limit: int) -> Sequence[str]:
        """List open rollouts that want to be looked at by now, the longest due first.

        Saving an order makes its rollout due, and any change to the fleet makes those due that are blocked.
        """
        ...

    def next_rollout_due(self) -> datetime | None:
        """Say when the next open rollout wants to be looked at."""
        ...

    def orders_by_id(self, orders: Iterable[OrderId]) -> Mapping[OrderId, Order]:
        """Find orders, open or over."""
        ...

    def silent_machines(self, hosts: Sequence[HostName]) -> Mapping[MachineId, MachineName]:
        """Find the machines on these hosts that were never seen, as far as that is saved."""
        ...

    def survey(self, hosts: Sequence[HostName]) -> HostSurvey:
        """Load what a decision about work on these hosts needs; unknown ones are left out."""
        ...

    def reached(self) -> datetime | None:
        """Say what service time has been reached; None in a new store."""
        ...

    def grace(self) -> Grace | None:
        """Say whether unapproved starts are put off."""
        ...

    def applied_fleet(self) -> str | None:
        """Return the digest of the fleet file last applied."""
        ...

    def lineage(self) -> str:
        """Return a text that is this store's alone: a copy restored from a backup has another."""
        ...


class Transaction(Snapshot, Protocol):
    """A snapshot that can be written to; writes of all transactions come one after another."""

    def save(self, changes: Changes) -> None:
        """Save what was decided; Unavailable if it cannot be, Conflict if somebody else changed a group."""
        ...

    def remove_records(self, numbers: Sequence[int]) -> None:
        """Forget records."""
        ...

    def set_pruning(self, pruning: Pruning) -> None:
        """Keep how far old records have been removed."""
        ...

    def save_activity(self, seen: Mapping[GroupName, datetime]) -> None:
        """Save when groups were last active; an older time than the one known changes nothing."""
        ...

    def save_last_seen(self, seen: Mapping[MachineId, datetime]) -> None:
        """Save when machines were last seen."""
        ...

    def save_webhook(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        ...

    def remove_webhook(self, webhook: WebhookId) -> None:
        """Forget a webhook."""
        ...

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; what is saved already stays as it is."""
        ...

    def save_token(self, token: Token) -> None:
        """Save a token; one with the same digest is replaced."""
        ...

    def set_reached(self, now: datetime) -> None:
        """Keep the service time reached."""
        ...

    def set_grace(self, grace: Grace | None) -> None:
        """Keep or clear the hold on unapproved starts."""
        ...

    def set_applied_fleet(self, digest: str) -> None:
        """Keep the digest of the fleet file that is being applied."""
        ...


class Store(Protocol):
    """Where everything is kept."""

    def read(self, *, project: ProjectName | None = None) -> AbstractContextManager[Snapshot]:
        """Open a consistent snapshot, of the whole fleet or as one project sees it."""
        ...

    def write(self, *, project: ProjectName | None = None) -> AbstractContextManager[Transaction]:
        """Open a transaction: saved whole when the block ends, undone whole when it raises."""
        ...


class Activity(Protocol):
    """Who has polled: known in memory first, saved now and then."""

    def pending(self) -> bool:
        """Say whether there is anything to hand over."""
        ...

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Hand over what is new since the last call: groups' and machines' newest polls."""
        ...

    def fresh(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Say when these machines were last seen, as far as that is not handed over yet."""
        ...


class Playhouse(Protocol):
    """The guest endpoint, as far as it takes part in rehearsals: one in a project at a time."""

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Give machines a part, and each an account under its name."""
        ...

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        ...

    def accounts(self, project: ProjectName) -> Sequence[Account]:
        """Say what guests have done so far."""
        ...

    def close(self, project: ProjectName) -> None:
        """Let everybody be answered as ever."""
        ...


class Post(Protocol):
    """What guests are sent: known in memory first, handed over before anything is decided by it."""

    def has_sent(self) -> bool:
        """Say whether there is anything to hand over."""
        ...

    def take_sent(self) -> Sent:
        """Hand over which events machines have been sent since the last call, and when first."""
        ...
