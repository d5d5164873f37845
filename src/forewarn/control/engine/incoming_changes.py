"""Changes from outside the engine: polls and notices of guests, external reports, reachability of hosts.

Each is in memory first, and saved here.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from forewarn.control.host_reachability import Reachability, ReachState
from forewarn.control.interfaces import ExternalReports
from forewarn.control.unsaved_activity import UnsavedNotices, UnsavedPolls
from forewarn.control.use_case import Context, EngineContext, UseCase
from forewarn.core.basic_types import FOREWARN, HostName, OrderId
from forewarn.core.model.clock_slew import TimeKind
from forewarn.core.model.order import Order
from forewarn.core.orders import lost_hosts, reports
from forewarn.core.orders.reports import Presence
from forewarn.store.batch import Transaction


class ExternalTimeout(UseCase):
    """Fails external orders whose reports time out."""

    def __init__(self, context: Context, *, external: ExternalReports) -> None:
        """Restart the timeouts of all external orders under way."""
        super().__init__(context)
        self._external = external
        now = context.real_now()
        with self._store.read() as snapshot:
            # If service time is not real time, it is unknown when a server could receive reports.
            present_at, presence = snapshot.time.present_at(), None
            if present_at is not None and snapshot.time.kind() is TimeKind.SYSTEM:
                presence = Presence(until=present_at, absences=tuple(snapshot.time.absences()))
            for order in filter(_is_awaited, snapshot.due.orders_under_way()):
                limit = order.terms.heartbeat or self._policy.external_silence
                silent_for = reports.silence_before_start(limit, order.heard_at, presence, now=now)
                external.heard(order.id, limit, silent_for=silent_for)

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders whose report timed out, each with the reason to fail it with."""
        return self._external.overdue()

    def fail(self, tx: Transaction, order: OrderId, now: datetime, *, why: str) -> None:
        """Fail an order whose report timed out. Only stop its timeout if no external work is under way."""
        with self._saving(tx, tx.rules.around(orders=[order]), now=now) as draft:
            known = draft.orders.get(order)
            if known is not None and _is_awaited(known):
                reports.fail_silent_steps(draft, order, by=FOREWARN, why=why, policy=self._policy)
        tx.after_commit(lambda: self._external.forget(order))


def _is_awaited(order: Order) -> bool:
    return any(map(reports.is_taken_up, order.driven))


class GuestActivitySaver(UseCase):
    """Saves notices immediately, and polls from time to time."""

    def __init__(self, context: EngineContext, *, polls: UnsavedPolls, unsaved: UnsavedNotices) -> None:
        super().__init__(context)
        self._activity_store = context.store
        self._transact = context.transact
        self.polls = polls
        self._unsaved = unsaved
        self._saved_at: datetime | None = None

    def save_due(self, now: datetime) -> bool:
        """Save notices, and polls that are due, in chunks; return whether more polls are left."""
        self.save_notices()
        if now >= self._polls_due(now):
            self.polls.collect()
            self._saved_at = now
        if self.polls.has_unsaved:
            self.polls.save_some(self._activity_store)
        return self.polls.has_unsaved

    def next_due(self, now: datetime) -> datetime | None:
        """Return when to save polls next; None if there are none."""
        if self.polls.has_unsaved:
            return now
        return self._polls_due(now) if self.polls.pending() else None

    def save_notices(self) -> None:
        """Save new notices."""
        if self._unsaved.pending():
            self._transact(_only_notices)

    def save_polls(self, now: datetime) -> None:
        """Save all polls."""
        self.polls.collect()
        self._saved_at = now
        while self.polls.has_unsaved:
            self.polls.save_some(self._activity_store)

    def _polls_due(self, now: datetime) -> datetime:
        if self._saved_at is None:
            self._saved_at = now
        return self._saved_at + self._policy.save_activity_every


def _only_notices(_: Transaction) -> None:
    """Do nothing else: every transaction begins by saving the new notices."""


NOT_ASKED = "its driver no longer tests the connection"


class ReachabilitySaver(UseCase):
    """Saves since when hosts are unreachable."""

    def save(self, tx: Transaction, hosts: Mapping[HostName, Reachability]) -> None:
        """Save changes of the reachability of these hosts."""
        found = {name: host for name in sorted(hosts) if (host := tx.fleet.host(name)) is not None}
        with self._saving(tx, replace(tx.rules.around(), hosts=found)) as draft:
            for name in found:
                match hosts[name].state:
                    case ReachState.UNREACHABLE:
                        lost_hosts.note_unreachable(draft, name, why=hosts[name].why)
                    case ReachState.REACHABLE:
                        lost_hosts.note_reachable(draft, name)
                    case ReachState.UNKNOWN:
                        lost_hosts.note_reachable(draft, name, why=NOT_ASKED)
