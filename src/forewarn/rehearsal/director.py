"""Carries a scenario out: waits for the guests, does each step when it is due, and sees when it is over."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from forewarn.core.errors import Conflict
from forewarn.rehearsal.ledger import Ledger, Note
from forewarn.rehearsal.report import EventFacts
from forewarn.rehearsal.scenario import CancelStep, Fault, OrderStep, Scenario, Start, Step
from forewarn.rehearsal.service import PrivateService
from forewarn.rehearsal.stage import LOOK_EVERY, Stage, until

# For every guest to poll once more when all is over; real seconds.
AFTERWARDS = 3.0
OVER = frozenset({"done", "failed", "cancelled"})
SERVICE = "service"

WORDS = {
    "event-scheduled": "is announced",
    "event-started": "is started",
    "event-finished": "is over",
    "event-cancelled": "is cancelled",
    "event-withdrawn": "is withdrawn",
}


class Director:
    """Runs one scenario on a private service."""

    def __init__(
        self, scenario: Scenario, service: PrivateService, *, stage: Stage, ledger: Ledger, note: Note
    ) -> None:
        self._scenario = scenario
        self._service = service
        self._stage = stage
        self._ledger = ledger
        self._note = note
        self._orders: list[str] = []
        self._events: dict[str, dict[str, Any]] = {}
        self._read = 0
        self.troubles: list[str] = []

    async def run(self) -> None:
        """Carry the scenario out."""
        if not await self._audience():
            return
        self._stage.begin()
        self._note(SERVICE, "the scenario begins")
        waiting = list(self._scenario.steps)
        while not await self._over(waiting):
            while waiting and waiting[0].at <= self._stage.elapsed():
                await self._do(waiting.pop(0))
            await self._look()
            await asyncio.sleep(LOOK_EVERY)
        await self._look()
        await self._epilogue()

    async def events(self) -> list[EventFacts]:
        """Return what is known of every event there was."""
        return [_facts(await self._service.event(id_), first) for id_, first in self._events.items()]

    async def _audience(self) -> bool:
        """Wait until every guest that something is expected of has polled; False if one never will."""
        if self._scenario.start is Start.NOW:
            return True
        expected = [self._ledger.accounts[name] for name in self._scenario.expect.machines]
        await until(lambda: all(account.polls or account.exit_code is not None for account in expected))
        lost = [account for account in expected if not account.polls]
        self.troubles += [
            f"{account.machine} never polled: its program ended with {account.exit_code}" for account in lost
        ]
        return not lost

    async def _do(self, step: Step) -> None:
        self._note(SERVICE, str(step.does))
        try:
            match step.does:
                case OrderStep():
                    self._orders.append(await self._service.order(step.does))
                case CancelStep() if self._orders:
                    await self._service.cancel(self._orders[-1])
                case CancelStep():
                    self.troubles.append("there is no order that could be cancelled")
                case Fault():
                    pass  # the endpoints look at the time themselves
        except Conflict as refusal:
            self._refused(step, str(refusal))

    def _refused(self, step: Step, why: str) -> None:
        self._note(SERVICE, f"refused: {why}")
        if isinstance(step.does, OrderStep):
            self.troubles.append(f"{step.does} was refused: {why}")

    async def _over(self, waiting: list[Step]) -> bool:
        elapsed = self._stage.elapsed()
        if elapsed > self._scenario.limit:
            self.troubles.append(f"it was not over within {self._scenario.limit}")
            return True
        if waiting or any(_is_on(step, elapsed) for step in self._scenario.faults):
            return False
        return all([await self._service.state(order) in OVER for order in self._orders])

    async def _look(self) -> None:
        """Tell what has become of the events since the last look."""
        for record in await self._service.records():
            if record["number"] <= self._read or record["kind"] not in WORDS:
                continue
            self._read = record["number"]
            event = await self._service.event(record["event"])
            self._events.setdefault(record["event"], event)
            names = ", ".join(self._events[record["event"]]["resources"])
            self._note(SERVICE, f"{event['type']} of {names} {WORDS[record['kind']]}")

    async def _epilogue(self) -> None:
        """Let every guest that polls see the end."""
        polls = {name: account.polls for name, account in self._ledger.accounts.items() if account.polls}
        accounts = self._ledger.accounts
        await until(
            lambda: all(accounts[name].polls > count for name, count in polls.items()), within=AFTERWARDS
        )


def _is_on(step: Step, elapsed: timedelta) -> bool:
    fault = step.does
    return isinstance(fault, Fault) and fault.lasts is not None and elapsed < step.at + fault.lasts


def _facts(event: dict[str, Any], first: dict[str, Any]) -> EventFacts:
    approvals = [_time(approval["at"]) for approval in event["approvals"]]
    return EventFacts(
        id=event["id"],
        type=event["type"],
        machines=tuple(first["resources"]),
        announced=_moment(event["announced_at"]),
        not_before=_moment(event["not_before"]),
        started=_time(event["started_at"]),
        ended=_time(event["ended_at"]),
        why=event["why"],
        approved=min((each for each in approvals if each), default=None),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else _moment(text)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
