"""Whether this machine approves an event: by its policy, and by which machine of the event approves."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from forewarn.agent.verdict import Later, Now, Skip, Verdict
from forewarn.core.words import HINTS, EventStatus, Source
from forewarn.sdk.documents import Event

# How long the first machine of an event may be silent before the next approves for all of them.
SUCCESSION_SECONDS = 30.0


class ApprovePolicy(StrEnum):
    """Which events are approved, once this machine is ready for them."""

    NEVER = "never"
    WHEN_READY = "when-ready"
    USER_EVENTS = "user-events"


class Approver(StrEnum):
    """Which of the machines that an event names approves it."""

    SELF = "self"  # only events that name this machine alone
    FIRST = "first"  # the first; each next one 30 s later
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecider:
    """How a machine approves."""

    approve: ApprovePolicy
    approver: Approver
    machine: str
    approve_unknown: bool = False

    def decide(self, event: Event, *, ready_for: float) -> Verdict:
        """Decide about an event that this machine has been ready for so many seconds."""
        if event.status != EventStatus.SCHEDULED:
            return Skip(f"it is {event.status}")
        if event.type in HINTS:
            return Skip(f"a {event.type} only recommends something")
        if self.approve is ApprovePolicy.NEVER:
            return Skip("the config says never")
        if self.approve is ApprovePolicy.USER_EVENTS and event.source != Source.USER:
            return Skip(f"its source is {event.source or 'unknown'}, not User")
        if not event.type_is_known and not self.approve_unknown:
            return Skip(f"nobody knows what a {event.type} is; `approve-unknown = true` approves it")
        return self._whose(event.resources, ready_for=ready_for)

    def _whose(self, resources: Sequence[str], *, ready_for: float) -> Verdict:
        index = _index(self.machine, resources)
        if index is None:
            return Skip("it does not name this machine")
        match self.approver:
            case Approver.SELF if len(resources) > 1:
                return Skip(f"it names {len(resources)} machines, not this one alone")
            case Approver.FIRST if ready_for < (turn := index * SUCCESSION_SECONDS):
                return Later(turn - ready_for, f"{resources[0]} is first")
            case _:
                return Now()


def _index(machine: str, resources: Sequence[str]) -> int | None:
    names = [name.casefold() for name in resources]
    return names.index(machine.casefold()) if machine.casefold() in names else None
