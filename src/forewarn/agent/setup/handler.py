"""A handler of the config."""

from dataclasses import dataclass, field
from enum import StrEnum

from forewarn.agent.handlers.kinds import QUIET
from forewarn.agent.handling import Handling
from forewarn.agent.verdicts import HandlerFilter
from forewarn.core.basic_types import EventType

# The pauses between tries double up to this limit.
LONGEST_PAUSE = 60.0
MOST_DOUBLINGS = 16
# The limit of tries to recover. A person must repair a machine that cannot recover, perhaps the next day.
PATIENCE = 24 * 3600.0
# Events that restart the machine. A Freeze restarts nothing, and the other types stop the machine.
RESTARTING = frozenset({EventType.REBOOT, EventType.REDEPLOY})


class OnFailure(StrEnum):
    """The effect of a handler's failure on the approval."""

    HOLD = "hold"  # the agent does not approve the event, which keeps its full notice
    CONTINUE = "continue"


class OnRestart(StrEnum):
    """How an agent treats a program that an earlier agent has started."""

    WAIT = "wait"
    AGAIN = "again"  # stop it and run it again


class RecoverAt(StrEnum):
    """When a handler recovers."""

    BOOT = "boot"  # after the restart of a Reboot or Redeploy; for other types when the event ends
    EVENT_END = "event-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A handler with its settings."""

    name: str
    kind: str
    does: Handling
    when: HandlerFilter = field(default_factory=HandlerFilter)
    timeout: float = 300.0  # seconds, for all attempts to prepare together, and for each to recover
    retry: float = 5.0  # seconds before another attempt, unless the handler sets them
    on_failure: OnFailure = OnFailure.HOLD
    on_restart: OnRestart = OnRestart.WAIT
    recover_at: RecoverAt = RecoverAt.BOOT
    drains: bool = True  # the machine should get no work from the beginning of the preparation

    @property
    def patience(self) -> float:
        """The limit of tries to recover, in seconds."""
        return self.timeout if self.only_notifies else PATIENCE

    @property
    def only_notifies(self) -> bool:
        """Whether the handler changes nothing in this machine."""
        return self.kind in QUIET

    def pause(self, wanted: float | None, *, tries: int = 1) -> float:
        """Return the seconds before another attempt: as the handler asks, or increasing ones."""
        if wanted is not None:
            return wanted
        return max(self.retry, min(LONGEST_PAUSE, self.retry * 2.0 ** min(tries - 1, MOST_DOUBLINGS)))
