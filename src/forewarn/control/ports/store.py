"""The store: what is read and saved in one transaction.

Adapters implement this without inheriting from it. All of it is synchronous: one worker thread runs all use
cases that may write, one at a time; those that only read have a `ReadStore`, on threads of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from forewarn.control.ports.answers import AnswerQueries, SavedAnswer
from forewarn.control.ports.fleet import FleetQueries
from forewarn.control.ports.records import RecordQueries
from forewarn.control.ports.rehearsals import RehearsalChanges, RehearsalQueries
from forewarn.control.ports.scope import Scope
from forewarn.control.ports.sessions import SessionQueries
from forewarn.control.ports.unscoped import DueQueries, RolloutQueries, TokenQueries
from forewarn.control.ports.webhooks import WebhookQueries
from forewarn.control.ports.work import OrderQueries
from forewarn.core.access import Token
from forewarn.core.browser_sessions import BrowserSession
from forewarn.core.model.absence import Absence
from forewarn.core.model.changes import Changes
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Grace
from forewarn.core.model.machine import Machine
from forewarn.core.model.service_time import TimeKind
from forewarn.core.model.slice import Sent, Slice
from forewarn.core.model.webhook import Webhook, WebhookId
from forewarn.core.rehearsal.kept_rehearsal import KeptRehearsal
from forewarn.core.retention import Pruning
from forewarn.core.words import (
    EventId,
    GroupName,
    HostName,
    MachineId,
    OrderId,
)

Act: TypeAlias = Callable[[], None]

# What metrics tell holds and open rollouts apart by.
HOLD_REACHES = ("fleet", "project", "host")
ROLLOUT_STATES = ("running", "paused", "aborting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """All that boards must know of what changed after some number of the feed."""

    number: int  # of the newest change in it
    groups: tuple[Group, ...] = ()
    # All listed events of a group, by creation; a group that is not here keeps those it has.
    events: Mapping[GroupName, tuple[Event, ...]]
    changed_events: tuple[Event, ...] = ()  # that take the place of what they were, listed or not
    machines: tuple[Machine, ...] = ()
    removed_groups: tuple[GroupName, ...] = ()
    removed_machines: tuple[MachineId, ...] = ()
    whole: bool = False  # it has all that there is: what is not in it is gone


class ScopedSnapshot(FleetQueries, OrderQueries, RecordQueries, WebhookQueries, Protocol):
    """What a scope sees, read in one transaction; what the rules load is whole all the same."""

    def around(
        self,
        *,
        orders: Sequence[OrderId] = (),
        machines: Sequence[MachineId] = (),
        hosts: Sequence[HostName] = (),
        groups: Sequence[GroupName] = (),
        room: bool = False,
    ) -> Slice:
        """Load the part of the fleet that a decision about these needs; unknown ones are left out.

        The hosts are those named, those of the orders named and those of the machines named; beside
        them stand the hosts that steps of the named orders move machines to. The machines are those
        named, those of the orders named (their `machine` and their steps'), and all that named hosts
        and the hosts of named orders carry. The groups are those named, and those of the loaded
        machines and events. The orders are those named, and every open one that touches a loaded
        machine (as its `machine`, or in a step of a stage that is not done) or whose host is a loaded
        host. The events are the listed ones of the loaded orders. `listed` counts all listed
        events of the loaded groups; `sent` has the saved notices of the events. `room` has the emptiest
        sound hosts, as many as its machines could be moved to and some more, and where these carry too
        much of a group the emptiest that do not; it is loaded where one of the named orders may move
        machines, or where `room` is asked for.
        """
        ...


class ScopedTransaction(ScopedSnapshot, Protocol):
    """A snapshot that can be written to; writes of all transactions come one after another."""

    def save(self, changes: Changes) -> Changes:
        """Save what was decided, and return it with the numbers that it was given.

        Unavailable if it cannot be saved, Conflict if it was decided on what is saved no longer.
        """
        ...

    def save_webhook(self, webhook: Webhook) -> None:
        """Save a webhook, new or known."""
        ...

    def remove_webhook(self, webhook: WebhookId) -> None:
        """Forget a webhook."""
        ...

    def save_rehearsal(self, rehearsal: KeptRehearsal) -> None:
        """Save a rehearsal, new or known."""
        ...

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; what is saved already stays as it is."""
        ...


class Snapshot(
    ScopedSnapshot,
    DueQueries,
    RolloutQueries,
    TokenQueries,
    SessionQueries,
    AnswerQueries,
    RehearsalQueries,
    Protocol,
):
    """All that is kept, read in one transaction."""

    def everything(self) -> Slice:
        """Load the whole fleet, every open order and every listed event."""
        ...

    def since(self, number: int) -> Delta:
        """Read what changed after a number of the feed.

        Everything for 0, and for a number so old that it is not known any more what was removed since.
        """
        ...

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        ...

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ...

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, open orders, listed events and open rollouts by state, for the metrics."""
        ...

    def holds_by_reach(self) -> Mapping[str, int]:
        """Count holds by what they reach, for the metrics."""
        ...

    def oldest_awaited(self) -> datetime | None:
        """Return the first NotBefore of all events that have not started."""
        ...

    def hosts_by_driver(self) -> Mapping[str, int]:
        """Count hosts by who does the work on them."""
        ...

    def host_drivers(self) -> HostDrivers:
        """Return who does the work on which host."""
        ...

    def tallies(self) -> Mapping[str, int]:
        """Count the machines that records of a kind name, for the kinds that are counted."""
        ...

    def applied_fleet(self) -> str | None:
        """Return the digest of the fleet file last applied."""
        ...

    def lineage(self) -> str:
        """Return a text that is this store's alone: a copy restored from a backup has another."""
        ...


class Transaction(ScopedTransaction, Snapshot, RehearsalChanges, Protocol):
    """A snapshot of everything that can be written to."""

    def remove_records(self, numbers: Sequence[int]) -> None:
        """Forget records."""
        ...

    def set_pruning(self, pruning: Pruning) -> None:
        """Keep how far old records have been removed."""
        ...

    def save_token(self, token: Token) -> None:
        """Save a token; one with the same digest is replaced."""
        ...

    def save_session(self, session: BrowserSession) -> None:
        """Save a session of a browser."""
        ...

    def remove_sessions(self, digests: Sequence[str]) -> None:
        """Forget sessions of browsers, by their digests."""
        ...

    def remove_ended_sessions(self, real_now: datetime) -> None:
        """Forget sessions that are over by a real time, and those of tokens that were revoked."""
        ...

    def save_answer(self, answer: SavedAnswer) -> None:
        """Save what a call was answered; an older answer to the same key is replaced."""
        ...

    def remove_answers(self, answers: Sequence[tuple[str, str]]) -> None:
        """Forget answers, by caller and key."""
        ...

    def set_reached(self, now: datetime) -> None:
        """Keep the service time reached."""
        ...

    def set_time_kind(self, kind: TimeKind) -> None:
        """Keep whose time the store lives in."""
        ...

    def set_served(self) -> None:
        """Keep that this is no backup any more."""
        ...

    def set_present(self, now: datetime) -> None:
        """Keep that the service runs now; time reached with it."""
        ...

    def set_absences(self, absences: Sequence[Absence]) -> None:
        """Keep in which stretches guests could not be heard."""
        ...

    def set_grace(self, grace: Grace | None) -> None:
        """Keep or clear the hold on unapproved starts."""
        ...

    def set_applied_fleet(self, digest: str) -> None:
        """Keep the digest of the fleet file that is being applied."""
        ...


class Together(Protocol):
    """What is saved together."""

    def part(self) -> AbstractContextManager[None]:
        """Undo alone what is done within the block if it raises."""
        ...


class ScopedReadStore(Protocol):
    """Where everything is kept, as a scope sees it: to be read alone."""

    def read(self) -> AbstractContextManager[ScopedSnapshot]:
        """Open a consistent snapshot."""
        ...


class ReadStore(Protocol):
    """Where everything is kept: to be read alone."""

    def read(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent snapshot, in which everything is seen that was answered before."""
        ...

    def scoped(self, scope: Scope) -> ScopedReadStore:
        """Return the same store as a scope sees it."""
        ...


class ScopedStore(ScopedReadStore, Protocol):
    """Where everything is kept, as a scope sees it."""

    def write(self) -> AbstractContextManager[ScopedTransaction]:
        """Open a transaction: saved whole when the block ends, undone whole when it raises."""
        ...

    def after_saving(self, saved: Act, *, undone: Act = ...) -> None:
        """Do something once what this thread is saving is saved, or something else once it is undone."""
        ...


class Store(ReadStore, Protocol):
    """Where everything is kept."""

    def write(self) -> AbstractContextManager[Transaction]:
        """Open a transaction: saved whole when the block ends, undone whole when it raises.

        All that this thread opens within the block are part of it, and see what it has written. A part that
        raises is undone alone, unless what it raises undoes the whole.
        """
        ...

    def together(self) -> AbstractContextManager[Together]:
        """Save what this thread saves within the block together; no transaction if that is nothing."""
        ...

    def after_saving(self, saved: Act, *, undone: Act = ...) -> None:
        """Do something once what this thread is saving is saved, or something else once it is undone.

        At once if it is saving nothing: what a use case does besides saving must not be done for nothing.
        """
        ...

    def save_activity(
        self, groups: Mapping[GroupName, datetime], machines: Mapping[MachineId, datetime]
    ) -> None:
        """Save when groups and machines last polled, in a transaction that other writers need not wait for.

        Groups that are not enabled and machines that are gone are passed over, and an older time than the one
        known changes nothing.
        """
        ...

    def scoped(self, scope: Scope) -> ScopedStore:
        """Return the same store as a scope sees it."""
        ...
