"""Advancing orders: call the drivers outside any transaction, then save all their answers in one."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from forewarn.control.driver import Cancelled, Done, Driver, Failed, NotBegun, Running, TooLate, Unknown
from forewarn.control.driver_outbox import RunningStep, running_steps
from forewarn.control.engine.driver_attempts import DriverAttempts
from forewarn.control.engine.driver_calls import (
    CallAnswer,
    DriverCalls,
    HostRefused,
    Possible,
    Prechecks,
    Reached,
    Verb,
    move_answer,
)
from forewarn.control.paging import chunks
from forewarn.control.use_case import EngineContext, UseCase
from forewarn.core.basic_types import EXTERNAL, HostName, OrderId
from forewarn.core.draft import Draft, RoomNotLoaded
from forewarn.core.errors import Unavailable
from forewarn.core.model.host import Host
from forewarn.core.model.order import AttemptId, HostStep, Order, Step
from forewarn.core.orders import lifecycle, move_prechecks, reports
from forewarn.store.batch import Transaction

log = logging.getLogger(__name__)

# Orders per transaction: the size of a usual wave.
TOGETHER = 20
# The same while callers wait, who get their turn between two transactions.
FEW = 3
# A driver that asks to be called again immediately would starve all other work.
SHORTEST_WAIT = timedelta(seconds=1)
# When to call a driver again after `Unknown`, in service time.
ASK_AGAIN = timedelta(seconds=30)


class OrderWork(UseCase):
    """Advances orders as far as possible, and calls the drivers."""

    def __init__(self, context: EngineContext, *, drivers: Mapping[str, Driver], calls: DriverCalls) -> None:
        super().__init__(context)
        self._transact = context.transact
        self._attempts = DriverAttempts(
            drivers, calls=calls, real_now=context.real_now, find_host=self._find_host
        )
        self._started = False  # whether the attempts from before the start are known
        self._wanted: dict[AttemptId, None] = {}  # the attempts whose drivers must be called
        self._prechecks = Prechecks(drivers, calls=calls, find_host=self._find_host)
        self._outbox.mark_incomplete()

    @property
    def has_news(self) -> bool:
        """Whether there are committed changes that drivers do not know yet."""
        return bool(self._outbox) or bool(self._wanted)

    def work_on(
        self,
        orders: Sequence[OrderId],
        now: datetime,
        *,
        should_yield: Callable[[], bool] = lambda: False,
        few: bool = False,
    ) -> list[OrderId]:
        """Advance orders according to the answers of their drivers; return those that cannot continue.

        Once `should_yield` returns true, the rest is left for the next tick. With `few`, fewer orders share a
        transaction, so that other callers get their turn more often.
        """
        faults = self.tell_drivers(now)
        for some in chunks(orders, FEW if few else TOGETHER):
            self._attempts.take_over(self._load(self._attempts.unloaded(some), now))
            answers = self._believed(self._attempts.ask(self._attempts.due(some, now), now))
            faults += self._decide_each(some, answers, now)
            if should_yield():
                break  # the next piece calls the drivers
            faults += self.tell_drivers(now)
        return faults

    def tell_drivers(self, now: datetime) -> list[OrderId]:
        """Call drivers for all committed changes of steps; return the orders that cannot continue."""
        faults: list[OrderId] = []
        while True:
            self._wanted.update(dict.fromkeys(self._attempts.take_over(*self._outbox.take())))
            if self._outbox.incomplete:
                self._wanted.update(dict.fromkeys(self._find_running(now)))
            answers = self._believed(
                self._attempts.ask(list(filter(self._attempts.knows, self._wanted)), now)
            )
            answers += self._prechecks.ask(self._outbox.take_prechecks(), now)
            for some in chunks(_orders_of(answers), TOGETHER):
                # A step that begins or continues gives no machine a new host.
                faults += self._decide_each(some, answers, now, room=False)
            self._wanted.clear()  # not earlier: if saving fails, these calls are repeated
            if not answers:
                return faults

    def take_answers(self, answers: Sequence[CallAnswer]) -> None:
        """Save the answers to calls in lanes, and submit the calls that follow.

        If it raises, nothing was submitted, and the same answers may come again. If an order cannot continue,
        its drivers are called again later.
        """
        now, believed = self._clock.now(), self._believed(answers)
        for some in chunks(_orders_of(believed), TOGETHER):
            self._decide_each(some, believed, now)
        self.tell_drivers(now)
        for each in answers:
            self._attempts.go_on(each)

    def _believed(self, answers: Iterable[CallAnswer]) -> list[CallAnswer]:
        heard = (
            self._prechecks.hear(each) if each.call.verb is Verb.PRECHECK else self._attempts.hear(each)
            for each in answers
        )
        return [each for each in heard if each is not None]

    # Deciding

    def _decide_each(
        self,
        orders: Sequence[OrderId],
        answers: Sequence[CallAnswer],
        now: datetime,
        *,
        room: bool | None = None,
    ) -> list[OrderId]:
        """Decide on orders in one transaction, or one by one if that fails; return the faulty ones.

        `room`: whether machines may need new hosts. None: according to the orders.
        """
        try:
            self._transact(lambda tx: self._decide(tx, orders, answers, now, room=room))
        except Unavailable:
            raise
        except RoomNotLoaded:
            return self._decide_each(orders, answers, now, room=True)
        except Exception:
            if len(orders) == 1:
                log.exception("order %s cannot go on", orders[0])
                return [*orders]
            return [bad for order in orders for bad in self._decide_each([order], answers, now)]
        return []

    def _decide(
        self,
        tx: Transaction,
        orders: Collection[OrderId],
        answers: Sequence[CallAnswer],
        now: datetime,
        *,
        room: bool | None = None,
    ) -> None:
        own_answers = [each for each in answers if each.call.task.order in orders]
        if any(
            isinstance(each.answer, HostRefused) or each.call.verb is Verb.PRECHECK for each in own_answers
        ):
            room = True
        around = tx.rules.around(orders=list(orders), hosts=_hosts_named(own_answers), room=room)
        with self._saving(tx, around, now=now) as draft:
            for each in own_answers:
                if each.call.task.order not in draft.orders:
                    continue
                if each.call.verb is Verb.PRECHECK:
                    _take_precheck(draft, each)
                else:
                    _take(draft, each, laned=self._attempts.is_laned(each.call.task.driver))
            for order in orders:
                if order in draft.orders and draft.orders[order].open:
                    lifecycle.advance(draft, order, policy=self._policy)

    # Running steps

    def _find_running(self, now: datetime) -> list[AttemptId]:
        """Load the running steps that the outbox has missed, and forget the ended ones.

        After a start they may have begun; later they have not. Return the attempts whose drivers must be
        called now. The others fall due.
        """
        orders = self._transact(_orders_under_way)
        steps = {
            AttemptId(order.id, step.subject, step.attempt): self._is_unasked(order, step)
            for order in orders
            for step in order.driven
        }
        if not self._started:
            self._attempts.suppose_begun(steps)
            self._started = True
        self._attempts.keep(steps)
        missing = [
            id_
            for id_, is_unasked in steps.items()
            if not self._attempts.knows(id_) or (is_unasked and not self._attempts.is_loaded(id_))
        ]
        for some in chunks(dict.fromkeys(id_.order for id_ in missing), TOGETHER):
            self._attempts.take_over(self._load(some, now))
        self._outbox.incomplete = False
        return [id_ for id_ in missing if self._attempts.is_loaded(id_)]

    def _is_unasked(self, order: Order, step: Step | HostStep) -> bool:
        """Return whether only a driver call brings news of a step. External programs report by themselves."""
        driver = order.driver_of(step)
        falls_due = step.look_at is not None or driver == EXTERNAL
        return self._attempts.is_laned(driver) or not falls_due

    def _load(self, orders: Sequence[OrderId], now: datetime) -> dict[AttemptId, RunningStep]:
        """Load the running steps of orders."""
        if not orders:
            return {}
        with self._store.read() as snapshot:
            draft = self._draft(snapshot.rules.around(orders=orders, room=False), now=now)
        loaded = (draft.orders[order] for order in orders if order in draft.orders)
        steps = (step for order in loaded for step in running_steps(draft, order, order.driven))
        return {step.task.id: step for step in steps}

    def _find_host(self, name: HostName) -> Host | None:
        with self._store.read() as snapshot:
            return snapshot.fleet.host(name)


def _take(draft: Draft, answer: CallAnswer, *, laned: bool) -> None:
    """Apply a driver's answer to a step. Times in the answer of a driver with limits are not service time."""
    id_, soonest = answer.call.task.id, draft.now + SHORTEST_WAIT
    match answer.answer:
        case Done(host=host, impact=impact, note=note):
            reports.step_done(draft, id_, host=host, impact=impact, note=note)
        case Running(look_at=look_at, mark=mark, progress=progress):
            later = None if laned or look_at is None else max(look_at, soonest)
            reports.step_running(draft, id_, look_at=later, mark=mark, progress=progress)
        case Unknown(why=why, look_at=look_at):
            later = None if laned else max(look_at or draft.now + ASK_AGAIN, soonest)
            reports.step_unknown(draft, id_, why=why, look_at=later)
        case Failed(why=why, again=again):
            reports.step_failed(draft, id_, why=why, again=again)
        case HostRefused(why=why, unreached=unreached):
            turned_down = reports.step_target_unreachable if unreached else reports.step_refused
            turned_down(draft, id_, why=why)
        case Cancelled() | TooLate() as cancel:
            report = reports.step_cancelled if isinstance(cancel, Cancelled) else reports.step_too_late
            report(draft, id_)
        case NotBegun() | Possible() | Reached():
            pass


def _take_precheck(draft: Draft, answer: CallAnswer) -> None:
    task, move = answer.call.task, move_answer(answer)
    if task.target is not None:
        target = task.target.name
        move_prechecks.answered(draft, task.id, task.work, target, refused=move.refused, unknown=move.unknown)


def _hosts_named(answers: Iterable[CallAnswer]) -> list[HostName]:
    """Return the hosts that drivers name in Done, except the current host and the target of the machine."""
    named = []
    for each in answers:
        task, host = each.call.task, each.answer.host if isinstance(each.answer, Done) else None
        known = (None, task.target and task.target.name, task.machine and task.machine.host)
        named += [host] if host is not None and host not in known else []
    return named


def _orders_of(answers: Iterable[CallAnswer]) -> Iterable[OrderId]:
    return dict.fromkeys(each.call.task.order for each in answers)


def _orders_under_way(tx: Transaction) -> Sequence[Order]:
    tx.lock()  # waits until an uncertain commit has succeeded or failed
    return tx.due.orders_under_way()
