"""What all errands share: the config, the journal, the endpoint, and where programs run."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from forewarn.agent.agent_log import Voice
from forewarn.agent.approval import Rule
from forewarn.agent.care.handler_locks import Turns
from forewarn.agent.journal.entries import Entry
from forewarn.agent.journal.tracked_events import Case, Cases
from forewarn.agent.metrics import Meter
from forewarn.agent.programs.runs import Runs
from forewarn.agent.setup.agent_config import Config
from forewarn.clock import monotonic
from forewarn.sdk.documents import Event
from forewarn.sdk.errors import GuestError

# For the agent alone: a program that told systemd that it is ready would speak for the agent.
_OWN = frozenset(
    {"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
)
# Every program may need these, and nobody keeps a secret in them.
_COMMON = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "HOSTNAME"})

# Before an endpoint is asked again that has said that asking again will not help: somebody may have mended
# it.
REFUSED_SECONDS = 30.0

# Told once why the endpoint gives no document, and once, with None, that it does again.
Told: TypeAlias = Callable[[GuestError | None], None]


class Endpoint(Protocol):
    """What errands ask of the metadata endpoint."""

    async def approve(self, *events: Event | str) -> None:
        """Let events start."""
        ...

    def seconds_left(self, event: Event) -> float | None:
        """Reckon how long until an event may start."""
        ...


class Memory(Protocol):
    """Where entries are kept."""

    @property
    def cases(self) -> Cases:
        """What is known."""
        ...

    def write(self, entry: Entry, /) -> None:
        """Keep an entry."""
        ...


@dataclass(slots=True, kw_only=True)
class Desk:
    """What all errands share."""

    config: Config  # another after a reload
    machine: str
    memory: Memory
    endpoint: Endpoint
    runs: Runs
    voice: Voice
    now: Callable[[], datetime]
    monotonic: Callable[[], float] = monotonic
    speed: float = 1.0  # how fast the endpoint's time runs; another in rehearsals only
    inherited: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    turns: Turns = field(default_factory=Turns)
    meter: Meter = field(default_factory=Meter)
    dry: bool = False  # only say what would be done
    leaving: bool = False  # programs that run are left running

    @property
    def environment(self) -> dict[str, str]:
        """What all programs get: not what is for the agent alone, nor what one handler is given by name."""
        kept = _OWN | (self.config.variables - _COMMON)
        return {name: value for name, value in self.inherited.items() if name not in kept}

    @property
    def rule(self) -> Rule:
        """How this machine approves."""
        agent = self.config.agent
        return Rule(approve=agent.approve, approver=agent.approver, machine=self.machine)

    def case(self, id_: str) -> Case:
        """Return what is known of an event that was taken up."""
        return self.memory.cases[id_]
