"""The service that a scenario is played on, private or running, through its operator API.

Guests poll the service itself. The target sends it the faults, and reads what the guests did.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import quote

from forewarn.client.async_calls import AsyncOperatorClient
from forewarn.client.replies import NOT_FOUND, AnswerNotUnderstood, RequestRefused, ServerUnreachable
from forewarn.clock import monotonic
from forewarn.core.errors import Conflict, NotFound, Unavailable
from forewarn.core.rehearsal_ledger import FirstSighting, GuestAccount, GuestLedger
from forewarn.core.rehearsal_rules import Fault
from forewarn.rehearsal.scenario import OrderStep, Scenario
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.coding import ANSWER_CODEC
from forewarn.wire.answers.order_answers import (
    OrderAnswer,
    OrderDetailWithEventsAnswer,
    OrderOnMachineAnswer,
    OrderWithEventsAnswer,
)
from forewarn.wire.answers.rehearsal_answers import (
    EndedRehearsalAnswer,
    FaultFields,
    RehearsalAnswer,
    RehearsingGuestAnswer,
)
from forewarn.wire.answers.service_answers import ClockAnswer

A = TypeVar("A", bound=ApiAnswer)

MANUAL = "manual"
FIRST_SERVER_ERROR = 500  # from here on, a retry may succeed
# The interval between two looks, in real seconds. A fast clock needs a short one.
LOOK_OFTEN = 0.2
LOOK_SELDOM = 1.0
LOOK_PRIVATELY = 0.1
# Each advance of a manual clock leaves a record, so it happens once a real second. It happens earlier if the
# time would jump by more than a third of the shortest notice.
ADVANCE_EVERY = 1.0
LONGEST_ADVANCE = 10.0  # in service time
# The clocks of two computers drift apart, and that of the server may be corrected.
COMPARE_EVERY = 10.0
# Several times within the lease of a rehearsal.
RENEW_EVERY = 8.0


class OperatorApi:
    """A client of the operator API that raises forewarn's own errors."""

    def __init__(self, client: AsyncOperatorClient) -> None:
        self._client = client

    async def call(
        self, method: str, path: str, answer: type[A], *, body: object = None, **params: object
    ) -> A:
        """Send a request. A refusal is a Conflict or NotFound; no answer is Unavailable."""
        with _own_errors():
            return (await self._client.call(method, path, answer, body=body, params=params)).value

    async def all(self, item: type[A]) -> Sequence[A]:
        """Return a complete list."""
        with _own_errors():
            return (await self._client.all(item)).value.items


@contextlib.contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except AnswerNotUnderstood as error:
        raise Conflict(str(error)) from None
    except ServerUnreachable as error:
        message, *_ = str(error).splitlines()  # without the advice for the command line
        raise Unavailable(message[0].lower() + message[1:].rstrip(".")) from None
    except RequestRefused as refusal:
        kind = NotFound if refusal.status == NOT_FOUND else Conflict
        raise (Unavailable if (refusal.status or 0) >= FIRST_SERVER_ERROR else kind)(str(refusal)) from None


class ServerClock:
    """The service clock: the last answer of the server, extrapolated."""

    def __init__(self, answer: ClockAnswer) -> None:
        self.kind = answer.kind
        self.speed = answer.speed
        self.set(answer)

    def set(self, answer: ClockAnswer) -> None:
        """Set the time from an answer of the server."""
        self._server_now, self.set_at = answer.now, monotonic()

    def now(self) -> datetime:
        """Return the current time."""
        return self._server_now + timedelta(seconds=(monotonic() - self.set_at) * self.speed)


class Target:
    """The projects of a service in which a scenario is played: all of a private one, otherwise one."""

    def __init__(
        self,
        api: OperatorApi,
        *,
        scenario: Scenario,
        project: str | None,
        clock: ServerClock,
        pace: float,
        id_: str,
    ) -> None:
        """`project` None: a private service.

        `pace`: the speed for a manual clock. `id_`: of this rehearsal.
        """
        self.clock = clock
        self.ledger = GuestLedger()
        self.look_every = (
            LOOK_PRIVATELY if project is None else LOOK_SELDOM if clock.speed == 1 else LOOK_OFTEN
        )
        self._api = api
        self._pace = pace
        self._advanced_at: float | None = None  # None: the scenario has not begun
        self._project = project
        self._id = id_
        self._scenario = scenario.name
        self._machines: dict[str, list[str]] = {}  # by project
        for each in scenario.fleet.machines:
            self._machines.setdefault(project or each.project, []).append(each.name)
        self._faults: Sequence[Fault] = ()
        self._renewed_at = monotonic()
        for machine in scenario.machines:
            self.ledger.admit(machine)

    def begin(self) -> None:
        """Begin to advance a manual clock."""
        self._advanced_at = monotonic()

    async def set_faults(self, faults: Sequence[Fault]) -> None:
        """Replace the faults that guests meet."""
        self._faults = faults
        await self._renew()

    async def catch_up(self) -> None:
        """Advance a manual clock, and get what guests have done."""
        if self.clock.kind == MANUAL and self._advanced_at is not None:
            real = monotonic() - self._advanced_at
            if real >= ADVANCE_EVERY or real * self._pace >= LONGEST_ADVANCE:
                self._advanced_at = monotonic()
                advance = {"seconds": real * self._pace}
                self.clock.set(await self._api.call("POST", "/v1/clock/advance", ClockAnswer, body=advance))
        elif monotonic() - self.clock.set_at > COMPARE_EVERY:
            self.clock.set(await self._api.call("GET", "/v1/clock", ClockAnswer))
        if monotonic() - self._renewed_at > RENEW_EVERY:
            await self._renew()
            return
        try:
            for project in self._machines:
                self._learn(await self._api.call("GET", _path(project), RehearsalAnswer))
        except NotFound:
            await self._renew()  # the server was restarted, or the lease has expired

    async def order(self, step: OrderStep) -> str:
        """Place an order, and return its id; Conflict if it is refused."""
        # A running server must know, because it refuses rehearsals on machines that are not for them.
        terms = {"reason": "rehearsal"} if self._project is None else {"rehearsal": self._scenario}
        body = {**terms, **({"action": step.work.value} if step.work else {})}
        if step.host:
            path = f"/v1/hosts/{quote(step.host, safe='')}/{step.action}"
            return (await self._api.call("POST", path, OrderWithEventsAnswer, body=body)).order.id
        path = f"/v1/machines/{quote(step.machine or '', safe='')}/{step.action}"
        placed = await self._api.call("POST", path, OrderOnMachineAnswer, body=body, project=self._project)
        return placed.order.id

    async def cancel(self, order: str) -> None:
        """Cancel an order; Conflict if it is too late."""
        await self._api.call("POST", f"/v1/orders/{order}/cancel", OrderAnswer)

    async def show(self, order: str) -> OrderDetailWithEventsAnswer:
        """Return an order and all its events, including past ones."""
        return await self._api.call("GET", f"/v1/orders/{order}", OrderDetailWithEventsAnswer)

    async def leave(self) -> None:
        """End the rehearsal. If the server is unreachable, the lease expires."""
        with contextlib.suppress(Conflict, NotFound, Unavailable):
            for project in self._machines:
                await self._api.call("DELETE", _path(project), EndedRehearsalAnswer, id=self._id)

    async def _renew(self) -> None:
        """Send the rehearsal, which a restarted server does not know."""
        for project, machines in self._machines.items():
            faults = [ANSWER_CODEC.write(FaultFields.like(fault)) for fault in _among(self._faults, machines)]
            body = {"id": self._id, "scenario": self._scenario, "machines": machines, "faults": faults}
            self._learn(await self._api.call("PUT", _path(project), RehearsalAnswer, body=body))
        self._renewed_at = monotonic()

    def _learn(self, rehearsal: RehearsalAnswer) -> None:
        for guest in rehearsal.guests:
            self.ledger.catch_up(_account(guest))


def _path(project: str) -> str:
    return f"/v1/projects/{project}/rehearsal"


def _among(faults: Sequence[Fault], machines: Sequence[str]) -> Iterator[Fault]:
    """Return the faults for these machines. A fault without machines is for all."""
    for fault in faults:
        named = tuple(name for name in fault.machines if name in machines)
        if named or not fault.machines:
            yield replace(fault, machines=named)


def _account(guest: RehearsingGuestAnswer) -> GuestAccount:
    sent: dict[str, Any] = {each.name: getattr(guest, each.name) for each in fields(guest)}
    seen = {each.event: FirstSighting(what=each.what, at=each.at) for each in guest.seen}
    return GuestAccount(**sent | {"seen": seen, "approved": {each.event: each.at for each in guest.approved}})
