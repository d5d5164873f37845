"""Plays a scenario: waits for the guests, does each step when it is due, and detects the end."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from forewarn.core.basic_types import EventType, OrderState
from forewarn.core.errors import Conflict, NotFound, Unavailable
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.rehearsal.guest_programs import GuestProgram, GuestRecovery
from forewarn.rehearsal.probes import ProbeWatch
from forewarn.rehearsal.report import EventFacts
from forewarn.rehearsal.scenario import CancelStep, FaultStep, OrderStep, Scenario, ScenarioStep, Start
from forewarn.rehearsal.target import Target
from forewarn.rehearsal.timeline import Rank, ScenarioClock, Timeline, until
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import OrderAnswer

# Real seconds for guests to get an answer after the end, if the rehearsal did not start them.
AFTERWARDS = 3.0
# For the first poll of every guest: a person may start them by hand.
PATIENCE = timedelta(minutes=5)
OVER = frozenset({OrderState.DONE, OrderState.FAILED, OrderState.CANCELLED})
SERVICE = "service"
# Machines with such an event do not exist at the end.
_GONE = frozenset({EventType.PREEMPT, EventType.TERMINATE})


class ScenarioRunner:
    """Plays one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        target: Target,
        *,
        clock: ScenarioClock,
        programs: Mapping[str, GuestProgram],
        timeline: Timeline,
        probes: Sequence[ProbeWatch] = (),
    ) -> None:
        """Take the programs that run as guests, by machine."""
        self._programs = programs
        self._timeline = timeline
        self._probes = probes
        self._scenario = scenario
        self._target = target
        self._clock = clock
        self._ledger = target.ledger
        self._note = timeline.note
        self._orders: dict[str, OrderState] = {}
        self._waiting: dict[str, str] = {}  # the last shown reason by order
        self._first: dict[str, EventAnswer] = {}  # the first state of each event
        self._events: dict[str, EventAnswer] = {}
        self._silent = False
        self.troubles: list[str] = []

    async def run(self, *, places: Mapping[str, str], wait: timedelta = PATIENCE) -> None:
        """Play the scenario. `places`: where the guests poll; `wait`: real time until their first poll."""
        if not await self._guests_polled(places, wait) or not await self._probes_hold(wait):
            return
        self._target.begin()
        began = self._clock.begin()
        for probe in self._probes:
            probe.begin()
        await self._target.set_faults(self._scenario.faults(began))
        self._note(SERVICE, "the scenario begins", at=began)
        waiting = list(self._scenario.steps)
        while not self._over(waiting):
            while waiting and waiting[0].at <= self._clock.elapsed():
                await self._do(waiting.pop(0))
            await self._look()
            await asyncio.sleep(self._pause(waiting))
        await self._look()  # another client may have cancelled the orders
        await self._recovery()

    def _pause(self, waiting: Sequence[ScenarioStep]) -> float:
        """Return the real seconds until the next look, at most until the next step."""
        speed = self._target.clock.speed
        if not waiting or not speed:
            return self._target.look_every
        ahead = (waiting[0].at - self._clock.elapsed()).total_seconds() / speed
        return min(max(ahead, 0.0), self._target.look_every)

    async def cancel_orders(self) -> None:
        """Cancel the open orders of the scenario, which would go on unattended."""
        for order, state in self._orders.items():
            if state not in OVER:
                try:
                    await self._target.cancel(order)
                    self._note(SERVICE, f"order {order} is cancelled")
                except (Conflict, Unavailable) as refusal:
                    self._note(SERVICE, f"order {order} cannot be cancelled and goes on: {refusal}")
        await self._look_at_orders()

    def events(self) -> list[EventFacts]:
        """Return the facts about every event so far."""
        return [_facts(event, self._first[id_]) for id_, event in self._events.items()]

    async def _guests_polled(self, places: Mapping[str, str], wait: timedelta) -> bool:
        """Wait until every guest with an expectation has polled; return whether all have."""
        if self._scenario.start is Start.NOW:
            return True
        expected = [self._ledger.accounts[name] for name in self._scenario.expect.machines]
        await self._until(
            lambda: all(account.polls or self._code(account.machine) is not None for account in expected),
            within=wait.total_seconds(),
        )
        lost = [account for account in expected if not account.polls]
        self.troubles += [self._lost(account, places[account.machine], wait) for account in lost]
        return not lost

    def _lost(self, account: GuestAccount, url: str, wait: timedelta) -> str:
        name = account.machine
        if (code := self._code(name)) is not None:
            return f"{name} never polled: its program ended with {code}"
        return f"{name} did not poll within {wait.total_seconds():g} s: its guest polls {url}"

    def _code(self, machine: str) -> int | None:
        """Return the exit code of a guest program that has ended."""
        program = self._programs.get(machine)
        return None if program is None else program.exit_code

    async def _until(self, condition: Callable[[], bool], *, within: float) -> None:
        """Wait for guests, for some real seconds at most."""
        await until(condition, within=within, meanwhile=self._hear_guests, every=self._target.look_every)

    async def _hear_guests(self) -> None:
        moment = self._clock.now()
        await self.catch_up()
        self._timeline.show(moment)

    async def _probes_hold(self, wait: timedelta) -> bool:
        """Wait until the workload is healthy; return whether it is."""
        if self._scenario.start is Start.NOW:
            return True
        await self._until(lambda: all(probe.holds for probe in self._probes), within=wait.total_seconds())
        ill = [probe for probe in self._probes if not probe.holds]
        self.troubles += [
            f"probe {each.probe.name} did not hold before the scenario began: {each.why}" for each in ill
        ]
        return not ill

    async def _do(self, step: ScenarioStep) -> None:
        self._note(SERVICE, str(step.does))
        try:
            match step.does:
                case OrderStep():
                    self._orders[await self._target.order(step.does)] = OrderState.QUEUED
                case CancelStep() if self._orders:
                    await self._target.cancel(list(self._orders)[-1])
                case CancelStep():
                    self.troubles.append("there is no order to cancel")
                case FaultStep():
                    pass  # the guest endpoint starts and ends faults by itself
        except (Conflict, NotFound, Unavailable) as refusal:
            self._refused(step, str(refusal))

    def _refused(self, step: ScenarioStep, why: str) -> None:
        self._note(SERVICE, f"refused: {why}")
        if isinstance(step.does, OrderStep):
            self.troubles.append(f"{step.does} was refused: {why}")
        elif isinstance(step.does, CancelStep):
            self.troubles.append(f"nothing was cancelled, so the cancellation is not rehearsed: {why}")

    def _over(self, waiting: list[ScenarioStep]) -> bool:
        elapsed = self._clock.elapsed()
        if elapsed > self._scenario.limit:
            self.troubles.append(f"it was not over within {self._scenario.limit}")
            return True
        faults = self._scenario.fault_steps
        if waiting or any(step.lasts is not None and elapsed < at + step.lasts for at, step in faults):
            return False
        return all(state in OVER for state in self._orders.values())

    async def _look(self) -> None:
        """Show what has happened since the last look."""
        moment = self._clock.now()
        await self.catch_up()
        await self._look_at_orders()
        self._timeline.show(moment)

    async def _look_at_orders(self) -> None:
        """Show changes of the orders and their events."""
        for id_ in self._orders:
            try:
                shown = await self._target.show(id_)
            except Unavailable as error:
                self._unanswered(str(error))
                return
            self._orders[id_] = shown.order.state
            self._show_waiting(shown.order)
            for event in shown.events:
                self._show(event)

    async def catch_up(self) -> None:
        """Get what guests have done."""
        try:
            await self._target.catch_up()
            self._silent = False
        except Unavailable as error:
            self._unanswered(str(error))

    def _unanswered(self, why: str) -> None:
        """Show once that the server does not answer; it may be restarting."""
        if not self._silent:
            self._silent = True
            self._note(SERVICE, why)

    def _show_waiting(self, order: OrderAnswer) -> None:
        queued = order.waiting if order.state is OrderState.QUEUED else ()
        why = "; ".join(f"{each.what}: {each.reason}" for each in queued)
        if why and self._waiting.get(order.id) != why:
            self._note(SERVICE, f"{order.action} waits: {why}")
        self._waiting[order.id] = why

    def _show(self, event: EventAnswer) -> None:
        known = self._events.get(event.id)
        first = self._first.setdefault(event.id, event)
        self._events[event.id] = event
        what = f"{event.type} of {', '.join(first.resources)}"
        for key, suffix, rank in (
            ("announced_at", "is announced", Rank.ANNOUNCED),
            ("started_at", "is started", Rank.STARTED),
            ("ended_at", f"is over: {event.why}", Rank.ENDED),
        ):
            at = getattr(event, key)
            if at is not None and (known is None or getattr(known, key) is None):
                self._note(SERVICE, f"{what} {suffix}", at=at, rank=rank)

    async def _recovery(self) -> None:
        """Wait until every polling guest has seen the end, and has recovered if it will be stopped."""
        end = self._end()
        guests = [
            GuestRecovery(account, self._programs.get(account.machine), events=self._events, end=end)
            for account in self._ledger.accounts.values()
            if account.polls
        ]
        # Wait for answers, not polls: a poll gets no answer when the endpoints close.
        await self._until(lambda: all(guest.over() for guest in guests), within=AFTERWARDS)
        # Probe again now: the last results may be outdated.
        await asyncio.gather(*(probe.look() for probe in self._probes))
        gone, deleted = self._machines_with(_GONE), self._machines_with({EventType.TERMINATE})
        awaited = [
            guest
            for guest in guests
            if guest.machine not in deleted and guest.worth_waiting(self._scenario, gone)
        ]
        bound = self._scenario.recovery.total_seconds()
        await self._until(
            lambda: all(guest.over() for guest in awaited) and all(probe.holds for probe in self._probes),
            within=max(0.0, bound - AFTERWARDS),
        )
        for guest in awaited:
            if not guest.over() and guest.reports_status:
                self.troubles.append(f"{guest.machine} did not recover within {bound:g} s after the end")
            elif not guest.over():
                self._note(guest.machine, f"has not polled within {bound:g} s after the end, and is stopped")

    def _machines_with(self, types: Collection[EventType]) -> set[str]:
        """Return the machines that had a started event of one of these types."""
        return {
            name
            for id_, event in self._events.items()
            if event.type in types and event.started_at is not None
            for name in self._first[id_].resources
        }

    def _end(self) -> datetime:
        """Return when the last event and the last fault were over."""
        began = self._clock.began or self._clock.now()
        faults = [began + at + (step.lasts or timedelta()) for at, step in self._scenario.fault_steps]
        return max([began, *faults, *(each.ended_at for each in self._events.values() if each.ended_at)])


def _facts(event: EventAnswer, first: EventAnswer) -> EventFacts:
    approvals = {approval.by: approval.at for approval in event.approvals}
    return EventFacts(
        id=event.id,
        type=event.type,
        machines=first.resources,
        announced=event.announced_at,
        not_before=event.not_before,
        started=event.started_at,
        ended=event.ended_at,
        why=event.why,
        approved=min(approvals.values(), default=None),
        approvals=approvals,
    )
