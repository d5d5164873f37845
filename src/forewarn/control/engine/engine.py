"""What happens by itself: each tick does what is due, and lets the drivers act.

The cost of a tick grows with what is due, never with the fleet.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from forewarn.control.engine.driver_calls import CallAnswer
from forewarn.control.engine.next_due import NOTHING_DUE, NextDue
from forewarn.control.engine.order_work import OrderWork
from forewarn.control.engine.incoming_changes import ExternalTimeout, GuestActivitySaver
from forewarn.control.engine.pruning import RecordPruning
from forewarn.control.rehearsals.open_rehearsals import OpenRehearsals
from forewarn.control.rollouts.rollout_engine import RolloutEngine
from forewarn.control.use_case import EngineContext, UseCase
from forewarn.core.basic_types import Kind, OrderId
from forewarn.core.errors import Unavailable
from forewarn.core.guests import listening
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.constraints import Grace
from forewarn.core.model.group import Group
from forewarn.core.time_formats import format_span_briefly
from forewarn.store.batch import Transaction
from forewarn.store.saved import Saved

log = logging.getLogger(__name__)

# How many orders, rollouts or groups a tick fetches at most; the next one goes on.
BATCH = 100
NOTHING = timedelta()
# The system's clock was turned if service time is further from it than it was to be by now.
TURNED = timedelta(seconds=1)


class Stuck(Unavailable):
    """Some orders cannot go on, for a reason that is not theirs; all others have been looked after."""


Id = TypeVar("Id", bound=str)


class Engine(UseCase):
    """Carries out what falls due."""

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
        # Owner of all values of the engine and its parts: the worker.
        self.pruning = RecordPruning(context, keep=context.keep_history)
        self.due = NextDue(context.store, policy=context.policy)
        self._failed_last = OrderId("")  # of the external orders that are overdue
        self._only_told = False  # whether the last tick has only told drivers what was started

    def note(self, saved: Saved) -> None:
        """Take what was saved, on the thread that saved it."""
        self.due.note(saved)
        self.rollouts.cache.note(saved)

    def tick(self, now: datetime, *, should_yield: Callable[[], bool] = lambda: False, few: bool = False) -> bool:
        """Do what is due by now, but no more than a piece of it; return whether more may be left.

        Between two pieces others get their turn, and time goes on: what is announced last must not have
        lost notice to what was announced first. A piece is a batch, or less once it should give way;
        it can do so more often if it works on few things at a time.
        """
        self._rehearsals.review(self._transact)
        more_polls = self._guests.save_due(now)
        faults, more_overdue = self._fail_overdue(now, should_yield=should_yield)
        # What was just started comes first, and is not due any more then.
        told = self._orders.has_news
        faults += _named(self._orders.tell_drivers(now))
        # A piece of its own, but not twice: what is due must not wait for jobs that start something.
        self._only_told = told and not self._only_told and should_yield()
        if self._only_told:
            _report(faults)
            return True
        # What is saved is noted: before the first moment that is known, nothing is due, and nothing is read.
        found = self.due.look(now) if self.due.is_reached(now) else NOTHING_DUE
        # If more polls are left, the newest of a group may be one of those.
        silent = not more_polls and _is_past(found.silent, now)
        if silent:
            self._disable_some(now)
        due = self._due_orders(now) if _is_past(found.order, now) else ()
        faults += _named(self._orders.work_on(due, now, should_yield=should_yield, few=few))
        # All orders of a wave that fall due together are seen to before its rollout is looked at.
        left = len(due) == BATCH or (due and should_yield())
        rollouts = self._due_rollouts(now) if not left and (due or _is_past(found.rollout, now)) else ()
        faults += self._look_at(rollouts, now, should_yield=should_yield, few=few)
        if not more_overdue:  # else the others come first
            _report(faults)
        if due or rollouts or more_polls or silent or more_overdue:
            return True  # what was done may have made something else due
        return self._prune(now)  # it can wait until there is nothing better to do

    def may_be_due(self, now: datetime) -> bool:
        """Return whether there may be something to do by now, without asking the store."""
        return self.due.is_reached(now) or self._orders.has_news

    def _look_at(
        self, rollouts: Sequence[str], now: datetime, *, should_yield: Callable[[], bool], few: bool
    ) -> list[str]:
        """Carry rollouts on, at least one; return those that cannot go on."""
        faults = []

        def look(id_: str, now: datetime) -> None:
            self._transact(lambda tx: self.rollouts.look(tx, id_, now, few=few))

        for id_ in rollouts:
            if not self._try("rollout", look, id_, now):
                faults.append(f"rollout {id_}")
            if should_yield():
                break
        return faults

    def _try(self, what: str, work: Callable[[Id, datetime], None], id_: Id, now: datetime) -> bool:
        """Work on something; its fault must not keep the others waiting."""
        try:
            work(id_, now)
        except Unavailable:
            raise
        except Exception:
            log.exception("%s %s cannot go on", what, id_)
            return False
        return True

    def next_due(self, now: datetime) -> datetime | None:
        """Return when something falls due next."""
        self.due.look(now)
        return self.known_due(now)

    def known_due(self, now: datetime) -> datetime | None:
        """Return when something falls due next, as far as it is known without asking the store."""
        moments = [self.due.at, self._guests.next_due(now), self.pruning.due_at(now)]
        return min((max(moment, now) for moment in moments if moment is not None), default=None)

    def run_until(self, target: datetime, now: datetime, *, reach: Callable[[datetime], None]) -> None:
        """Do everything that falls due up to a moment, each thing at its own time, in order."""
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
        """Save the time reached before it is shown, so that it does not go back over a crash."""
        with self._store.read() as snapshot:
            reached = snapshot.time.reached()
        if reached is None or reached < now:
            self._transact(lambda tx: tx.time.set_reached(now))

    def save_presence(self, now: datetime, *, ahead: timedelta = NOTHING) -> int:
        """Save that the service runs, so far ahead of the system's time: Unavailable if nothing can be saved.

        If the system's clock was turned since, windows open at other moments of service time: all orders
        are looked at again.
        Return the number of the newest change, which may be another process's. So the next tick reads what
        is due, whatever is known of it.
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
        """Save that guests could not be heard: that time is neither notice nor silence of theirs (rule 12).

        A brief absence leaves no record: each restart would.
        """

        def note(tx: Transaction) -> None:
            with self._saving(tx, now=absence.until) as draft:
                if not absence.brief:
                    away = format_span_briefly((absence.until - absence.since).total_seconds())
                    reason = f"for {away}; that is not the guests' silence"
                    draft.record(Kind.SERVICE_AWAY, None, reason=reason)
                absences = listening.add_absence(tx.time.absences(), absence, policy=self._policy)
                tx.time.set_absences(absences)

        self._transact(note)

    def grant_grace(self, jump: timedelta, now: datetime) -> None:
        """Hold unapproved starts for as long as the clock has jumped: guests lost that much notice."""

        def grant(tx: Transaction) -> None:
            with self._saving(tx, now=now) as draft:
                reason = f"forward by {jump}; unapproved starts wait as long"
                draft.record(Kind.CLOCK_JUMPED, None, reason=reason)
                draft.wake_all()
                granted = tx.time.grace()
                # What an earlier jump took is still owed.
                owed_until = now if granted is None else max(now, granted.until)
                tx.time.set_grace(Grace(until=owed_until + jump, announced_before=now))

        self._transact(grant)

    # Orders

    def _due_orders(self, now: datetime) -> Sequence[OrderId]:
        with self._store.read() as snapshot:
            return snapshot.due.orders(now, limit=BATCH)

    def _due_rollouts(self, now: datetime) -> Sequence[str]:
        with self._store.read() as snapshot:
            return snapshot.rollouts.due(now, limit=BATCH)

    def _fail_overdue(self, now: datetime, *, should_yield: Callable[[], bool]) -> tuple[list[str], bool]:
        """Fail orders of which nothing is heard, at least one; return which cannot be, and whether more wait.

        The next time begins behind the last one tried, so that none keeps the others from their turn.
        """
        faults, late = list[str](), self._external.overdue()
        orders = [*late]
        if self._failed_last in late:
            turn = orders.index(self._failed_last) + 1
            orders = orders[turn:] + orders[:turn]
        for number, order in enumerate(orders, start=1):
            self._failed_last = order
            if not self._try("order", partial(self._fail, why=late[order]), order, now):
                faults.append(f"order {order}")
            if should_yield():
                return faults, number < len(late)
        return faults, False

    def _fail(self, order: OrderId, now: datetime, *, why: str) -> None:
        self._transact(lambda tx: self._external.fail(tx, order, now, why=why))

    def _prune(self, now: datetime) -> bool:
        try:
            return self.pruning.prune(now)
        except Unavailable:
            raise
        except Exception:  # old records can wait
            log.exception("old records cannot be removed")
            return False

    def take_answers(self, answers: Sequence[CallAnswer]) -> None:
        """Save what drivers that take their time have said."""
        self._orders.take_answers(answers)

    # Groups

    def save_all(self, now: datetime, *, ahead: timedelta = NOTHING) -> None:
        """Save what is only in memory, and the time reached."""
        self._guests.save_notices()
        self._guests.save_polls(now)
        self.save_presence(now, ahead=ahead)

    def _disable_some(self, now: datetime) -> None:
        """Disable groups that have fallen silent, but no more than a batch of them."""
        names = [group.name for group in self._silent(now)]
        if not names:
            return

        def disable(tx: Transaction) -> None:
            with self._saving(tx, tx.rules.around(groups=names), now=now) as draft:
                for name in names:
                    listening.disable(draft, draft.groups[name], policy=self._policy)

        self._transact(disable)

    def _silent(self, now: datetime) -> Sequence[Group]:
        with self._store.read() as snapshot:
            since = listening.idle_cutoff(now, snapshot.time.absences(), policy=self._policy)
            return snapshot.due.idle_groups(since=since, limit=BATCH)


def _is_past(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


def _named(orders: Iterable[OrderId]) -> list[str]:
    return [f"order {order}" for order in orders]


def _report(faults: Sequence[str]) -> None:
    if faults:
        raise Stuck(f"{faults[0]} cannot go on ({len(faults)} in all); the log says why")
