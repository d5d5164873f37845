"""The engine: each tick does the work that is due, and calls the drivers.

The cost of a tick grows with the work that is due, not with the fleet.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from forewarn.control.engine.driver_calls import CallAnswer
from forewarn.control.engine.incoming_changes import ExternalTimeout, GuestActivitySaver
from forewarn.control.engine.next_due import NOTHING_DUE, NextDue
from forewarn.control.engine.order_work import OrderWork
from forewarn.control.engine.pruning import RecordPruning
from forewarn.control.rehearsals.open_rehearsals import OpenRehearsals
from forewarn.control.rollouts.rollout_engine import RolloutEngine
from forewarn.control.use_case import EngineContext, UseCase
from forewarn.core.basic_types import Kind, OrderId
from forewarn.core.errors import Unavailable
from forewarn.core.guests import enablement
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.constraints import Grace
from forewarn.core.time_formats import format_span_briefly
from forewarn.store.batch import Transaction
from forewarn.store.saved import Saved

log = logging.getLogger(__name__)

# The most orders, rollouts or groups that one tick loads.
BATCH = 100
NOTHING = timedelta()
# A larger deviation from the expected distance to service time means that the system clock was changed.
TURNED = timedelta(seconds=1)


class Stuck(Unavailable):
    """Some orders or rollouts cannot continue because of a fault in forewarn. The others were handled."""


class Engine(UseCase):
    """Does the work that is due."""

    def __init__(
        self,
        context: EngineContext,
        *,
        orders: OrderWork,
        rollouts: RolloutEngine,
        guests: GuestActivitySaver,
        external: ExternalTimeout,
        rehearsals: OpenRehearsals,
    ) -> None:
        super().__init__(context)
        self._transact = context.transact
        self._orders = orders
        self.rollouts = rollouts
        self._guests = guests
        self._external = external
        self._rehearsals = rehearsals
        # Owner of all values of the engine and its components: the worker.
        self.pruning = RecordPruning(context, keep=context.keep_history)
        self.due = NextDue(context.store, policy=context.policy)
        self._failed_last = OrderId("")  # the last overdue external order that was failed
        self._only_news = False  # whether the last tick only called drivers

    def note(self, saved: Saved) -> None:
        """Note committed changes, on the thread that committed them."""
        self.due.note(saved)
        self.rollouts.cache.note(saved)

    def tick(
        self, now: datetime, *, should_yield: Callable[[], bool] = lambda: False, few: bool = False
    ) -> bool:
        """Do one piece of the work that is due; return whether more may be left.

        Other callers get their turn between two pieces. Each piece gets the current time, so that the last
        announcement has as much notice as the first. A piece is a batch, or less if `should_yield` returns
        true. With `few`, the engine asks `should_yield` more often.
        """
        self._rehearsals.review(self._transact)
        more_polls = self._guests.save_due(now)
        faults, more_overdue = self._fail_overdue(now, should_yield=should_yield)
        # Steps that have just started come first. They are not due afterwards.
        has_news = self._orders.has_news
        faults += _named(self._orders.tell_drivers(now))
        # This is a piece by itself, but not twice in a row: due work must not starve while jobs start steps.
        self._only_news = has_news and not self._only_news and should_yield()
        if self._only_news:
            _report(faults)
            return True
        # Commits are noted, so before the known due time nothing is due, and the store is not read.
        found = self.due.look(now) if self.due.is_reached(now) else NOTHING_DUE
        # If unsaved polls are left, they may include the newest poll of a group that seems idle.
        silent = not more_polls and _is_past(found.silent, now)
        if silent:
            self._disable_some(now)
        due: Sequence[OrderId] = ()
        if _is_past(found.order, now):
            with self._store.read() as snapshot:
                due = snapshot.due.orders(now, limit=BATCH)
        faults += _named(self._orders.work_on(due, now, should_yield=should_yield, few=few))
        # The due orders of a wave come before its rollout.
        left = len(due) == BATCH or (due and should_yield())
        rollouts: Sequence[str] = ()
        if not left and (due or _is_past(found.rollout, now)):
            with self._store.read() as snapshot:
                rollouts = snapshot.rollouts.due(now, limit=BATCH)
        faults += self._advance_rollouts(rollouts, now, should_yield=should_yield, few=few)
        if not more_overdue:  # otherwise the next tick handles the remaining orders first
            _report(faults)
        if due or rollouts or more_polls or silent or more_overdue:
            return True  # this work may have made other work due
        return self._prune(now)  # only when nothing else is due

    def may_be_due(self, now: datetime) -> bool:
        """Return whether work may be due, without reading the store."""
        return self.due.is_reached(now) or self._orders.has_news

    def _advance_rollouts(
        self, rollouts: Sequence[str], now: datetime, *, should_yield: Callable[[], bool], few: bool
    ) -> list[str]:
        """Advance rollouts, at least one; return those that cannot continue."""
        faults = []
        for id_ in rollouts:
            faults += self._try(f"rollout {id_}", partial(self.rollouts.look, id_=id_, now=now, few=few))
            if should_yield():
                break
        return faults

    def _try(self, what: str, work: Callable[[Transaction], object]) -> list[str]:
        """Run a transaction. Log and return its fault, which must not stop the others."""
        try:
            self._transact(work)
        except Unavailable:
            raise
        except Exception:
            log.exception("%s cannot go on", what)
            return [what]
        return []

    def next_due(self, now: datetime) -> datetime | None:
        """Return when work is due next."""
        self.due.look(now)
        return self.known_due(now)

    def known_due(self, now: datetime) -> datetime | None:
        """Return when work is due next, as far as is known without reading the store."""
        moments = [self.due.at, self._guests.next_due(now), self.pruning.due_at(now)]
        return min((max(moment, now) for moment in moments if moment is not None), default=None)

    def run_until(self, target: datetime, now: datetime, *, reach: Callable[[datetime], None]) -> None:
        """Do all work that falls due up to a time, in order, each at its own time."""
        self._finish(now)
        while (due := self.next_due(now)) is not None and due <= target:
            now = due
            self._finish(now)
            self.save_time(now)
            reach(now)
        self.save_time(target)
        reach(target)

    def _finish(self, now: datetime) -> None:
        while self.tick(now):
            pass

    def save_time(self, now: datetime) -> None:
        """Save the reached time before it is shown, so that it does not go back after a crash."""
        with self._store.read() as snapshot:
            reached = snapshot.time.reached()
        if reached is None or reached < now:
            self._transact(lambda tx: tx.time.set_reached(now))

    def save_presence(self, now: datetime, *, ahead: timedelta = NOTHING) -> int:
        """Save that the server is running, and how far service time is ahead of system time.

        Unavailable if nothing can be saved. If the system clock was changed, windows open at other times, so
        all orders are checked again. Return the number of the newest change, which may come from another
        process. The next tick therefore reads the due times.
        """
        return self._transact(lambda tx: self._prove_present(tx, now, ahead=ahead))

    def _prove_present(self, tx: Transaction, now: datetime, *, ahead: timedelta) -> int:
        known = tx.time.slew()
        expected = NOTHING if known is None else now - known.to_system(now)
        if abs(ahead - expected) > TURNED:
            with self._saving(tx, now=now) as draft:
                draft.wake_all()
        tx.time.set_present(now, ahead=ahead)
        self.due.note(None)
        return tx.records.newest()

    def save_absence(self, absence: Absence) -> None:
        """Save a period without a server: it counts neither as notice nor as silence of guests (rule 12).

        A brief absence leaves no record, because each restart would leave one.
        """

        def note(tx: Transaction) -> None:
            with self._saving(tx, now=absence.until) as draft:
                if not absence.brief:
                    away = format_span_briefly((absence.until - absence.since).total_seconds())
                    reason = f"for {away}; this does not count as silence of guests"
                    draft.record(Kind.SERVICE_AWAY, None, reason=reason)
                absences = enablement.add_absence(tx.time.absences(), absence, policy=self._policy)
                tx.time.set_absences(absences)

        self._transact(note)

    def grant_grace(self, jump: timedelta, now: datetime) -> None:
        """Delay unapproved starts by the length of a clock jump, because guests lost that much notice."""

        def grant(tx: Transaction) -> None:
            with self._saving(tx, now=now) as draft:
                reason = f"forward by {jump}; unapproved starts are delayed by as much"
                draft.record(Kind.CLOCK_JUMPED, None, reason=reason)
                draft.wake_all()
                granted = tx.time.grace()
                # Add to the rest of an earlier grace period.
                owed_until = now if granted is None else max(now, granted.until)
                tx.time.set_grace(Grace(until=owed_until + jump, announced_before=now))

        self._transact(grant)

    def _fail_overdue(self, now: datetime, *, should_yield: Callable[[], bool]) -> tuple[list[str], bool]:
        """Fail orders whose reports timed out, at least one; return the faults, and whether orders are left.

        Each call continues after the order that the last call tried, so that no order blocks the others.
        """
        faults, late = list[str](), self._external.overdue()
        orders = [*late]
        if self._failed_last in late:
            turn = orders.index(self._failed_last) + 1
            orders = orders[turn:] + orders[:turn]
        for number, order in enumerate(orders, start=1):
            self._failed_last = order
            fail = partial(self._external.fail, order=order, now=now, why=late[order])
            faults += self._try(f"order {order}", fail)
            if should_yield():
                return faults, number < len(late)
        return faults, False

    def _prune(self, now: datetime) -> bool:
        try:
            return self.pruning.prune(now)
        except Unavailable:
            raise
        except Exception:  # pruning is not urgent
            log.exception("old records cannot be removed")
            return False

    def take_answers(self, answers: Sequence[CallAnswer]) -> None:
        """Save the answers to calls in lanes."""
        self._orders.take_answers(answers)

    def save_all(self, now: datetime, *, ahead: timedelta = NOTHING) -> None:
        """Save everything that is only in memory, and the reached time."""
        self._guests.save_notices()
        self._guests.save_polls(now)
        self.save_presence(now, ahead=ahead)

    def _disable_some(self, now: datetime) -> None:
        """Disable a batch of groups that have become idle."""
        with self._store.read() as snapshot:
            since = enablement.idle_cutoff(now, snapshot.time.absences(), policy=self._policy)
            names = [group.name for group in snapshot.due.idle_groups(since=since, limit=BATCH)]
        if not names:
            return

        def disable(tx: Transaction) -> None:
            with self._saving(tx, tx.rules.around(groups=names), now=now) as draft:
                for name in names:
                    enablement.disable(draft, draft.groups[name], policy=self._policy)

        self._transact(disable)


def _is_past(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


def _named(orders: Iterable[OrderId]) -> list[str]:
    return [f"order {order}" for order in orders]


def _report(faults: Sequence[str]) -> None:
    if faults:
        raise Stuck(f"{faults[0]} cannot go on ({len(faults)} in all); the log says why")
