"""What was seen of a step: its domain on the two hosts, what its guest says, and what this process is at."""

from dataclasses import dataclass
from enum import StrEnum

from forewarn.drivers.libvirt.marks import Mark


class DomainState(StrEnum):
    """What a domain is doing, as far as the driver cares."""

    RUNNING = "running"
    PAUSED = "paused"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A migration of a domain that is under way."""

    progress: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A domain on one host."""

    state: DomainState
    run: int | None = None  # libvirt's number of this run; None: it is off
    mark: Mark | None = None
    job: Job | None = None
    migrating: bool = False  # it is paused by a migration, and not by a person
    persistent: bool = True

    @property
    def active(self) -> bool:
        """Whether it runs, or would if it were not paused."""
        return self.state is not DomainState.OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class LongCall:
    """A call of this process that takes its time: a migration, or what the guest agent was asked."""

    running: bool
    error: str = ""  # what libvirt said when it ended; "" also if nothing could be heard of it any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """All of it, at one moment."""

    here: Seen | None  # on the host that carries the machine; None: it does not have it
    there: Seen | None = None  # on the host that it goes to
    boot: str = ""  # what the guest agent calls this boot; "": it does not say
    call: LongCall | None = None
