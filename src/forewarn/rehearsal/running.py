"""A running server that a scenario is played on: its clock, and what it knows of its guests.

The guests poll the server themselves, so there is no endpoint in between: what they do is what the server
has noted, and its answers are never spoiled.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import httpx

from forewarn.clock import monotonic
from forewarn.core.errors import NotFound
from forewarn.rehearsal.ledger import Ledger
from forewarn.rehearsal.operator import Operator

MANUAL = "manual"
# Real seconds. A clock that may be fast is looked at often; in real time nobody is in a hurry.
LOOK_OFTEN = 0.2
LOOK_SELDOM = 1.0
# Each turn of a manual clock is a record. It is turned once a real second, and sooner only where guests would
# find more than a third of the shortest notice gone at once.
TURN_EVERY = 1.0
LONGEST_TURN = 10.0  # of service time
# Two computers' clocks drift apart, and a server's may be corrected.
COMPARE_EVERY = 10.0


class ServerClock:
    """Service time, as the server told it last and going on at its speed since."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.kind = str(told["kind"])
        self.speed = float(told["speed"])
        self.set(told)

    def set(self, told: Mapping[str, Any]) -> None:
        """Take the server's word."""
        self._told, self.told_at = datetime.fromisoformat(told["now"]), monotonic()

    def now(self) -> datetime:
        """Return the present moment."""
        return self._told + timedelta(seconds=(monotonic() - self.told_at) * self.speed)


class RunningServer(Operator):
    """A server that others use too, and one project of it."""

    outlives = True

    def __init__(
        self, api: httpx.AsyncClient, *, scenario: str, project: str, clock: ServerClock, pace: float
    ) -> None:
        """Take the name of the scenario, and how fast to turn a clock that only moves when told."""
        super().__init__(api, terms={"rehearsal": scenario}, scope={"project": project})
        self.clock = clock
        self._pace = pace
        self._turned_at: float | None = None  # None: the scenario has not begun
        self._ledger: Ledger | None = None
        self._since = clock.now()
        self.look_every = LOOK_SELDOM if clock.speed == 1 else LOOK_OFTEN

    async def attend(self, ledger: Ledger) -> None:
        """Write down from now on what guests do."""
        self._ledger = ledger
        if self.clock.kind == MANUAL:
            # While it stands still, a poll from now on could not be told from one before.
            await self._turn(1.0)
        self._since = self.clock.now()

    def begin(self) -> None:
        """Begin to turn the clock, if it only moves when told."""
        self._turned_at = monotonic()

    async def keep_up(self) -> None:
        """Let the server's time go on, and learn who has polled."""
        if self.clock.kind == MANUAL and self._turned_at is not None:
            real = monotonic() - self._turned_at
            if real >= TURN_EVERY or real * self._pace >= LONGEST_TURN:
                self._turned_at = monotonic()
                await self._turn(real * self._pace)
        elif monotonic() - self.clock.told_at > COMPARE_EVERY:
            self.clock.set(await self.call("GET", "/v1/clock"))
        for account in self._ledger.accounts.values() if self._ledger else ():
            await self._look_at(account.machine)

    async def show(self, order: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Show an order and its events, and write down which guests were sent and approved them."""
        shown, events = await super().show(order)
        if self._ledger is not None:
            witness(self._ledger, events)
        return shown, events

    async def _turn(self, seconds: float) -> None:
        self.clock.set(await self.call("POST", "/v1/clock/advance", json={"seconds": seconds}))

    async def _look_at(self, name: str) -> None:
        try:
            seen = (await self.machine(name))["last_seen"]
        except NotFound:
            return  # it was terminated
        at = None if seen is None else datetime.fromisoformat(seen)
        if self._ledger is None or at is None or at < self._since:
            return
        if at != self._ledger.accounts[name].last_poll:
            self._ledger.polled(name, now=at)
            self._ledger.sound(name, now=at)


def witness(ledger: Ledger, events: Iterable[Mapping[str, Any]]) -> None:
    """Write down what the server says that guests were sent, and approved."""
    for event in events:
        status, names = event["status"], ", ".join(event["resources"])
        what = f"{event['type']} of {names} ({status}, event {event['id'][:8]})"
        for notice in event["notices"]:
            if notice["machine"] in ledger.accounts and notice["sent_at"] is not None:
                at = datetime.fromisoformat(notice["sent_at"])
                ledger.shown(notice["machine"], event["id"], what, at=at)
        if event["ended_at"] is not None:
            ledger.over(event["id"])
        for approval in event["approvals"]:
            if approval["kind"] == "guest" and approval["by"] in ledger.accounts:
                at = datetime.fromisoformat(approval["at"])
                ledger.approved(approval["by"], [event["id"]], now=at)
