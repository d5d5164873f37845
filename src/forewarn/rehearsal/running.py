"""A running server that a scenario is played on: its clock, and what it knows of its guests.

The guests poll the server themselves: it is told what they are to meet, and asked what they did.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import httpx

from forewarn.clock import monotonic
from forewarn.control.ledger import Account, Ledger
from forewarn.core.errors import Conflict, NotFound, Unavailable
from forewarn.core.rehearsal.faults import Fault
from forewarn.rehearsal.operator import Operator
from forewarn.rehearsal.scenario import Scenario
from forewarn.wire import operator

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
# Several times before the server takes whoever rehearses for gone.
SAY_AGAIN_EVERY = 8.0


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
        self,
        api: httpx.AsyncClient,
        *,
        scenario: Scenario,
        project: str,
        clock: ServerClock,
        pace: float,
        id_: str,
    ) -> None:
        """Take an id for this rehearsal, and how fast to turn a clock that only moves when told."""
        super().__init__(api, terms={"rehearsal": scenario.name}, scope={"project": project})
        self.clock = clock
        self.ledger = Ledger()
        self.look_every = LOOK_SELDOM if clock.speed == 1 else LOOK_OFTEN
        self._pace = pace
        self._turned_at: float | None = None  # None: the scenario has not begun
        self._path = f"/v1/projects/{project}/rehearsal"
        self._said = {"id": id_, "scenario": scenario.name, "machines": list(scenario.machines)}
        self._faults: Sequence[Fault] = ()
        self._said_at = monotonic()

    def begin(self) -> None:
        """Begin to turn the clock, if it only moves when told."""
        self._turned_at = monotonic()

    async def spoil(self, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults, and no others."""
        self._faults = faults
        await self._go_on()

    async def keep_up(self) -> None:
        """Let the server's time go on, and learn what guests have done."""
        if self.clock.kind == MANUAL and self._turned_at is not None:
            real = monotonic() - self._turned_at
            if real >= TURN_EVERY or real * self._pace >= LONGEST_TURN:
                self._turned_at = monotonic()
                await self._turn(real * self._pace)
        elif monotonic() - self.clock.told_at > COMPARE_EVERY:
            self.clock.set(await self.call("GET", "/v1/clock"))
        if monotonic() - self._said_at > SAY_AGAIN_EVERY:
            await self._go_on()
            return
        try:
            self._learn(await self.call("GET", self._path))
        except NotFound:
            await self._go_on()  # the server was restarted, or has not heard of us for too long

    async def show(self, order: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Show an order and its events, and write down which guests were sent and approved them."""
        shown, events = await super().show(order)
        witness(self.ledger, events)
        return shown, events

    async def leave(self) -> None:
        """Let all guests be answered as ever; a server that cannot be told does so by itself soon."""
        with contextlib.suppress(Conflict, NotFound, Unavailable):
            await self.call("DELETE", self._path, params={"id": self._said["id"]})

    async def _turn(self, seconds: float) -> None:
        self.clock.set(await self.call("POST", "/v1/clock/advance", json={"seconds": seconds}))

    async def _go_on(self) -> None:
        """Say what is played; also a server that was restarted knows it then."""
        said = {**self._said, "faults": [operator.fault(fault) for fault in self._faults]}
        self._learn(await self.call("PUT", self._path, json=said))
        self._said_at = monotonic()

    def _learn(self, told: Mapping[str, Any]) -> None:
        for guest in told["rehearsal"]["guests"]:
            self.ledger.catch_up(_account(guest))


def _account(guest: Mapping[str, Any]) -> Account:
    return Account(
        machine=guest["machine"],
        polls=guest["polls"],
        spoiled=guest["spoiled"],
        meets=guest["meets"],
        first_poll=_time(guest["first_poll"]),
        last_poll=_time(guest["last_poll"]),
        last_sound=_time(guest["last_sound"]),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def witness(ledger: Ledger, events: Iterable[Mapping[str, Any]]) -> None:
    """Write down what the server says that guests were sent, and approved."""
    for event in events:
        names, started = ", ".join(event["resources"]), _time(event["started_at"])
        for notice in event["notices"]:
            if notice["machine"] in ledger.accounts and notice["sent_at"] is not None:
                at = datetime.fromisoformat(notice["sent_at"])
                status = "Started" if started is not None and at >= started else "Scheduled"
                what = f"{event['type']} of {names} ({status}, event {event['id'][:8]})"
                ledger.shown(notice["machine"], event["id"], what, at=at)
        if event["ended_at"] is not None:
            ledger.over(event["id"])
        for approval in event["approvals"]:
            if approval["kind"] == "guest" and approval["by"] in ledger.accounts:
                at = datetime.fromisoformat(approval["at"])
                ledger.approved(approval["by"], [event["id"]], now=at)
