"""What is seen of a step: its mark, its domain on the two hosts, what its guest says, and calls under way.

A mark is what the driver leaves in a domain's metadata to recognise an attempt by, and to go on with it. It
is written before what it speaks of is done. So after a crash, what a domain is and what its mark says are
enough to tell how far an attempt is; the driver keeps nothing else that matters.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from xml.etree import ElementTree

from forewarn.control.driver import DriverTask
from forewarn.core.basic_types import HostName, OrderId, Work
from forewarn.core.model.order import AttemptId
from forewarn.wire.codec import Codec

_MARKS = Codec({datetime: (datetime.isoformat, datetime.fromisoformat)})
MARK_NAMESPACE = "urn:forewarn:step:1"
MARK_PREFIX = "forewarn"


class AttemptEnd(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMark:
    """One attempt of a step, and how far the driver has got with it. Times are real."""

    order: OrderId
    machine: str
    attempt: int
    work: Work
    target: HostName | None = None
    begun: datetime
    run: int | None = None  # libvirt's number of the run of the domain in which it was begun
    boot: str = ""  # what the guest agent called the boot in which it was begun
    asked: datetime | None = None  # when the guest, or the hypervisor, was asked for it
    away: datetime | None = None  # since when the guest has not run
    forced: datetime | None = None  # when it was reset or powered off, for it had not happened in time
    started: datetime | None = None  # when it was switched on where it was to go
    back: str = ""  # why its move was given up: it goes back to where it was
    ended: AttemptEnd | None = None
    impact: float | None = None  # the seconds that it was away, once that is known
    why: str = ""  # why it failed

    @property
    def id(self) -> AttemptId:
        """What names the attempt."""
        return AttemptId(self.order, self.machine, self.attempt)

    def is_of(self, task: DriverTask) -> bool:
        """Return whether it marks the attempt of a task."""
        return self.id == task.id

    def is_later_than(self, task: DriverTask) -> bool:
        """Return whether it marks a later attempt at the same step."""
        return (self.order, self.machine) == (task.order, task.subject) and self.attempt > task.attempt


def new_mark(task: DriverTask, *, now: datetime, run: int | None = None, boot: str = "") -> DomainMark:
    """Return the mark of an attempt that begins."""
    return DomainMark(
        order=task.order,
        machine=task.subject,
        attempt=task.attempt,
        work=task.work,
        target=None if task.target is None else task.target.name,
        begun=now,
        run=run,
        boot=boot,
    )


def mark_as_xml(mark: DomainMark) -> str:
    """Write a mark as the element that libvirt keeps; libvirt adds the namespace."""
    said = {name: value for name, value in _MARKS.write(mark).items() if value not in (None, "")}
    words = {name: _printable(f"{value}") for name, value in said.items()}
    return ElementTree.tostring(ElementTree.Element("step", words), encoding="unicode")


def read_mark(xml: str) -> DomainMark | None:
    """Read a mark as libvirt gives it back; None for what is no mark of this driver."""
    try:
        # libvirt has parsed it before.
        return _MARKS.read(DomainMark, ElementTree.fromstring(xml).attrib)  # noqa: S314
    except (ElementTree.ParseError, KeyError, ValueError):
        return None


def _printable(text: str) -> str:
    """Replace characters that XML lacks: a hypervisor's message may hold some, and libvirt refuses them."""
    return "".join(each if each.isprintable() or each in "\t\n\r" else " " for each in text)


class DomainState(StrEnum):
    """What a domain is doing, as far as the driver cares."""

    RUNNING = "running"
    PAUSED = "paused"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainJob:
    """A migration of a domain that is under way."""

    progress: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A domain on one host."""

    state: DomainState
    run: int | None = None  # libvirt's number of this run; None: it is off
    mark: DomainMark | None = None
    job: DomainJob | None = None
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
class DomainSight:
    """All of it, at one moment."""

    here: Seen | None  # on the host that carries the machine; None: it does not have it
    there: Seen | None = None  # on the host that it goes to
    boot: str = ""  # what the guest agent calls this boot; "": it does not say
    call: LongCall | None = None
