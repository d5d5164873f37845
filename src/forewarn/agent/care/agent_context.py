"""The objects that all events share: the config, the journal, the endpoint and the turns of handlers.

The agent's event loop, its only thread, owns all of them.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from forewarn.agent.agent_log import AgentLog
from forewarn.agent.journal.entries import Entry
from forewarn.agent.journal.tracked_events import TrackedEvent, TrackedEvents
from forewarn.agent.metrics import AgentMetrics
from forewarn.agent.setup.agent_config import Config
from forewarn.agent.setup.config_text import COMMON_VARIABLES
from forewarn.agent.verdicts import ApprovalDecider
from forewarn.clock import monotonic
from forewarn.platform import system
from forewarn.programs.kept_program import KeptPrograms
from forewarn.sdk.documents import Event
from forewarn.sdk.guest_errors import GuestError

# Returns the seconds left. It is called when a turn is free, because NotBefore may have moved.
Urgency: TypeAlias = Callable[[], float]
# With these variables a program could notify systemd on behalf of the agent.
_AGENT_VARIABLES = frozenset(
    {"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
)
# The pause after a refusal of the endpoint, which may be repaired in the meantime.
REFUSED_SECONDS = 30.0


def whenever() -> float:
    """Return the lowest urgency, for recovery while another event is coming."""
    return float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    urgency: Urgency
    given: "asyncio.Future[None]"


class Turns:
    """A lock with priorities: a handler works on one event at a time."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[_Waiting] = []

    @asynccontextmanager
    async def turn(self, urgency: Urgency) -> AsyncIterator[None]:
        """Hold the lock."""
        await self._take(urgency)
        try:
            yield
        finally:
            self._pass_on()

    async def _take(self, urgency: Urgency) -> None:
        if not self._taken:
            self._taken = True
            return
        waiting = _Waiting(urgency, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.given
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:
                self._pass_on()  # the turn was given at the same moment
            raise

    def _pass_on(self) -> None:
        """Give the turn to the most urgent waiter; among equals, to the one that has waited longest."""
        waiting = [each for each in self._waiting if not each.given.cancelled()]
        self._taken = bool(waiting)
        if waiting:
            most_urgent = min(waiting, key=lambda each: each.urgency())
            self._waiting.remove(most_urgent)
            most_urgent.given.set_result(None)


# Called with the error when the endpoint stops answering, and with None when it answers again.
OnEndpointTrouble: TypeAlias = Callable[[GuestError | None], None]


class EventEndpoint(Protocol):
    """The metadata endpoint, as the work on an event needs it."""

    async def approve(self, *events: Event | str) -> None:
        """Approve events."""
        ...

    def seconds_left(self, event: Event) -> float | None:
        """Estimate the time until an event may start."""
        ...

    def server_now(self) -> datetime:
        """Estimate the current time at the endpoint."""
        ...


class EventJournal(Protocol):
    """The journal, as the work on an event needs it."""

    @property
    def tracked_events(self) -> TrackedEvents:
        """The tracked events, by key."""
        ...

    def write(self, entry: Entry, /) -> None:
        """Write an entry."""
        ...


@dataclass(slots=True, kw_only=True)
class AgentContext:
    """The objects that all events share."""

    config: Config  # replaced by a reload
    machine: str
    journal: EventJournal
    endpoint: EventEndpoint
    runs: KeptPrograms
    log: AgentLog
    now: Callable[[], datetime]
    monotonic: Callable[[], float] = monotonic
    speed: float = 1.0  # of the endpoint's clock; differs from 1 in rehearsals only
    inherited: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    # A handler works on one event at a time: its programs may hold locks, and its last action must win.
    turns: dict[str, Turns] = field(default_factory=lambda: defaultdict(Turns))
    up_seconds: Callable[[], float | None] = system.up_seconds  # since this machine booted
    boot_id: Callable[[], str | None] = system.boot_id
    metrics: AgentMetrics = field(default_factory=AgentMetrics)
    dry: bool = False  # log actions without taking them
    leaving: bool = False  # the agent is stopping; running programs go on

    @property
    def environment(self) -> dict[str, str]:
        """The environment of programs, without the agent's own variables and those that the config names."""
        hidden = _AGENT_VARIABLES | (self.config.variables - COMMON_VARIABLES)
        return {name: value for name, value in self.inherited.items() if name not in hidden}

    @property
    def approval_decider(self) -> ApprovalDecider:
        """The approval policy of this machine."""
        agent = self.config.agent
        return ApprovalDecider(
            approve=agent.approve,
            approver=agent.approver,
            machine=self.machine,
            approve_unknown=agent.approve_unknown,
        )

    def tracked(self, id_: str) -> TrackedEvent:
        """Return a tracked event."""
        return self.journal.tracked_events[id_]

    def urgency(self, id_: str) -> float:
        """Return the seconds left to prepare for an event; 0 if unknown."""
        event = self.tracked(id_).event
        return self.endpoint.seconds_left(event) or 0.0
