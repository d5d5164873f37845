"""What happened outside the engine, on its way into the store.

Guests poll and are sent events, external work is reported of or not, and hosts can be reached or not. Each
is known in memory first.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from forewarn.control.interfaces import ExternalReports
from forewarn.control.host_reachability import Reachability, ReachState
from forewarn.control.unsaved_activity import UnsavedNotices, UnsavedPolls
from forewarn.control.use_case import Context, EngineContext, UseCase
from forewarn.core.basic_types import FOREWARN, HostName, OrderId
from forewarn.core.model.clock_slew import TimeKind
from forewarn.core.model.order import Order
from forewarn.core.orders import lost_hosts, reports
from forewarn.core.orders.reports import Presence
from forewarn.store.batch import Transaction
from forewarn.store.queries.service_time import TimeQueries


class ExternalTimeout(UseCase):
    """Fails external orders that are not reported of in time."""

    def __init__(self, context: Context, *, external: ExternalReports) -> None:
        """Go on waiting for reports of all that others are at."""
        super().__init__(context)
        self._external = external
        now = context.real_now()
        with self._store.read() as snapshot:
            presence = _presence(snapshot.time)
            for order in filter(_is_awaited, snapshot.due.orders_under_way()):
                limit = order.terms.heartbeat or self._policy.external_silence
                silent_for = reports.silence_before_start(limit, order.heard_at, presence, now=now)
                external.heard(order.id, limit, silent_for=silent_for)

    def overdue(self) -> Mapping[OrderId, str]:
        """Return the orders without a report in time, and why that is a failure."""
        return self._external.overdue()

    def fail(self, tx: Transaction, order: OrderId, now: datetime, *, why: str) -> None:
        """Fail an order; one whose work is over, or was never taken up, is only forgotten."""
        with self._saving(tx, tx.rules.around(orders=[order]), now=now) as draft:
            known = draft.orders.get(order)
            if known is not None and _is_awaited(known):
                reports.fail_silent_steps(draft, order, by=FOREWARN, why=why, policy=self._policy)
        tx.after_commit(lambda: self._external.forget(order))


def _presence(time: TimeQueries) -> Presence | None:
    """Return when a server could hear reports, if service time is the world's own; else nothing is known."""
    present_at = time.present_at()
    if present_at is None or time.kind() is not TimeKind.SYSTEM:
        return None
    return Presence(until=present_at, absences=tuple(time.absences()))


def _is_awaited(order: Order) -> bool:
    return any(map(reports.is_taken_up, order.driven))


class GuestActivitySaver(UseCase):
    """Saves which events guests were sent at once, and which machines have polled now and then."""

    def __init__(self, context: EngineContext, *, polls: UnsavedPolls, unsaved: UnsavedNotices) -> None:
        super().__init__(context)
        self._activity_store = context.store
        self._transact = context.transact
        self.polls = polls
        self._unsaved = unsaved
        self._saved_at: datetime | None = None

    def save_due(self, now: datetime) -> bool:
        """Save what is to be saved by now, but only a part of many polls; return whether more are left."""
        self.save_notices()
        if now >= self._polls_due(now):
            self.polls.collect()
            self._saved_at = now
        if self.polls.half_saved:
            self.polls.save_some(self._activity_store)
        return self.polls.half_saved

    def next_due(self, now: datetime) -> datetime | None:
        """Return when polls are saved next; None while there are none."""
        if self.polls.half_saved:
            return now
        return self._polls_due(now) if self.polls.pending() else None

    def save_notices(self) -> None:
        """Save what guests have been sent since the last time."""
        if self._unsaved.pending():
            self._transact(_only_notices)

    def save_polls(self, now: datetime) -> None:
        """Save all polls that there are."""
        self.polls.collect()
        self._saved_at = now
        while self.polls.half_saved:
            self.polls.save_some(self._activity_store)

    def _polls_due(self, now: datetime) -> datetime:
        if self._saved_at is None:
            self._saved_at = now
        return self._saved_at + self._policy.save_activity_every


def _only_notices(_: Transaction) -> None:
    """Save nothing else: each transaction begins by saving the notices that guests were sent."""


NOT_ASKED = "its driver is not asked any more"


class ReachabilitySaver(UseCase):
    """Keeps in the store since when hosts cannot be reached."""

    def save(self, tx: Transaction, hosts: Mapping[HostName, Reachability]) -> None:
        """Save what has changed of these hosts since it was last saved."""
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
