"""What the care for all events shares: the config, the journal, the endpoint, the turns of handlers.

All of it belongs to the agent's loop, its one thread.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
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

# Seconds until it is too late, asked when a turn is given: NotBefore may have moved since.
Urgency: TypeAlias = Callable[[], float]
# For the agent alone: a program that notified systemd would do so in the agent's name.
_OWN = frozenset(
    {"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
)
# Before an endpoint is asked again that has refused: it may have been repaired.
REFUSED_SECONDS = 30.0


def whenever() -> float:
    """Return the urgency of what can wait: to come back from an event, while another is coming."""
    return float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    urgency: Urgency
    given: "asyncio.Future[None]"


class Turns:
    """The turns of one handler, among all events."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[_Waiting] = []

    @asynccontextmanager
    async def turn(self, urgency: Urgency) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
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
                self._pass_on()  # it was given in the same moment
            raise

    def _pass_on(self) -> None:
        """Give the turn to the most urgent; of equals, to the one that has waited longest."""
        waiting = [each for each in self._waiting if not each.given.cancelled()]
        self._taken = bool(waiting)
        if waiting:
            following = min(waiting, key=lambda each: each.urgency())
            self._waiting.remove(following)
            following.given.set_result(None)


# Called once with why the endpoint gives no document, and once, with None, when it does again.
OnEndpointTrouble: TypeAlias = Callable[[GuestError | None], None]


class EventEndpoint(Protocol):
    """What the care for an event needs of the metadata endpoint."""

    async def approve(self, *events: Event | str) -> None:
        """Let events start."""
        ...

    def seconds_left(self, event: Event) -> float | None:
        """Reckon how long until an event may start."""
        ...

    def server_now(self) -> datetime:
        """Reckon what time it is at the endpoint."""
        ...


class EventJournal(Protocol):
    """Where entries are kept."""

    @property
    def tracked_events(self) -> TrackedEvents:
        """What is known."""
        ...

    def write(self, entry: Entry, /) -> None:
        """Keep an entry."""
        ...


@dataclass(slots=True, kw_only=True)
class AgentContext:
    """What the care for all events shares."""

    config: Config  # another after a reload
    machine: str
    journal: EventJournal
    endpoint: EventEndpoint
    runs: KeptPrograms
    log: AgentLog
    now: Callable[[], datetime]
    monotonic: Callable[[], float] = monotonic
    speed: float = 1.0  # how fast the endpoint's time runs; another in rehearsals only
    inherited: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    # A handler does one thing at a time, for whichever event: its programs may hold a lock of their own, and
    # what it did last must be what holds.
    turns: dict[str, Turns] = field(default_factory=lambda: defaultdict(Turns))
    up_seconds: Callable[[], float | None] = system.up_seconds  # since this machine was started
    boot_id: Callable[[], str | None] = system.boot_id
    metrics: AgentMetrics = field(default_factory=AgentMetrics)
    dry: bool = False  # only log what would be done
    leaving: bool = False  # programs that run are left running

    @property
    def environment(self) -> dict[str, str]:
        """What all programs get: not what is for the agent alone, nor what one handler is given by name."""
        kept = _OWN | (self.config.variables - COMMON_VARIABLES)
        return {name: value for name, value in self.inherited.items() if name not in kept}

    @property
    def approval_decider(self) -> ApprovalDecider:
        """How this machine approves."""
        agent = self.config.agent
        return ApprovalDecider(
            approve=agent.approve,
            approver=agent.approver,
            machine=self.machine,
            approve_unknown=agent.approve_unknown,
        )

    def tracked(self, id_: str) -> TrackedEvent:
        """Return an event that was taken up."""
        return self.journal.tracked_events[id_]

    def urgency(self, id_: str) -> float:
        """Return how many seconds there are to get ready for an event; none if that is not known."""
        event = self.tracked(id_).event
        return self.endpoint.seconds_left(event) or 0.0

    def booted(self) -> datetime | None:
        """Return when this machine was started, if that is known."""
        seconds = self.up_seconds()
        return None if seconds is None else self.now() - timedelta(seconds=seconds)
