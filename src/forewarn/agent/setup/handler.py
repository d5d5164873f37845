"""A handler, as the config declares it."""

from dataclasses import dataclass, field
from enum import StrEnum

from forewarn.agent.handlers.kinds import QUIET
from forewarn.agent.handling import Handling
from forewarn.agent.verdicts import EventFilter
from forewarn.core.basic_types import EventType

# What is tried for long is tried after pauses that double up to this.
LONGEST_PAUSE = 60.0
MOST_DOUBLINGS = 16
# A machine without it does not do its work, and the people who can repair it may be asleep.
PATIENCE = 24 * 3600.0
# Events that restart the machine once. A Freeze restarts nothing, and the other types end the machine.
RESTARTING = frozenset({EventType.REBOOT, EventType.REDEPLOY})


class OnFailure(StrEnum):
    """What a handler's failure means for the approval."""

    HOLD = "hold"  # the event is not approved: it keeps its whole notice
    CONTINUE = "continue"


class OnRestart(StrEnum):
    """What becomes of a program that a former agent has started."""

    WAIT = "wait"
    AGAIN = "again"  # end it, and run it again


class RecoverAt(StrEnum):
    """When a handler undoes what it has prepared."""

    BOOT = "boot"  # after the restart of a Reboot or Redeploy; for other types when the event ends
    EVENT_END = "event-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One step of getting ready, and of coming back."""

    name: str
    kind: str
    does: Handling
    when: EventFilter = field(default_factory=EventFilter)
    timeout: float = 300.0  # seconds: to prepare, for all attempts together; to recover, for each
    retry: float = 5.0  # seconds before another attempt, where a handler does not say
    on_failure: OnFailure = OnFailure.HOLD
    on_restart: OnRestart = OnRestart.WAIT
    recover_at: RecoverAt = RecoverAt.BOOT
    drains: bool = True  # from when it has begun this machine should get no work

    @property
    def patience(self) -> float:
        """How long a recovery is tried again: what only notifies is not worth more than its timeout."""
        return self.timeout if self.only_notifies else PATIENCE

    @property
    def only_notifies(self) -> bool:
        """Whether it changes nothing in this machine."""
        return self.kind in QUIET

    def pause(self, wanted: float | None, *, tries: int = 1) -> float:
        """Return how long to wait before another attempt: as the handler wants, else longer each time."""
        if wanted is not None:
            return wanted
        return max(self.retry, min(LONGEST_PAUSE, self.retry * 2.0 ** min(tries - 1, MOST_DOUBLINGS)))
