"""The driver's view of a step: the mark, the domain on both hosts, the guest's boot and background calls.

The driver stores a mark in a domain's metadata. The mark identifies the attempt and records its progress.
The driver writes the mark before each operation. So after a crash, the state of the domain and its mark are
enough to resume; the driver needs no other state.
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
    """One attempt of a step and its progress; times are real. The field names are XML attributes."""

    order: OrderId
    machine: str
    attempt: int
    work: Work
    target: HostName | None = None
    begun: datetime
    run: int | None = None  # libvirt's id of the domain's run at the beginning
    boot: str = ""  # the guest's boot id at the beginning, from the guest agent
    asked: datetime | None = None  # when the driver asked the guest or the hypervisor
    away: datetime | None = None  # since when the guest has not run
    forced: datetime | None = None  # when the driver reset or powered off the domain after a timeout
    started: datetime | None = None  # when the driver started the domain on the target
    back: str = ""  # why the move was given up: the domain returns to the source
    ended: AttemptEnd | None = None
    impact: float | None = None  # the seconds of interruption, if known
    why: str = ""  # why the attempt failed

    @property
    def id(self) -> AttemptId:
        """The id of the attempt."""
        return AttemptId(self.order, self.machine, self.attempt)


def new_mark(task: DriverTask, *, now: datetime, run: int | None = None, boot: str = "") -> DomainMark:
    """Return the mark of a new attempt."""
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
    """Write a mark as a metadata element; libvirt adds the namespace."""
    fields = {name: value for name, value in _MARKS.write(mark).items() if value not in (None, "")}
    attributes = {name: _printable(f"{value}") for name, value in fields.items()}
    return ElementTree.tostring(ElementTree.Element("step", attributes), encoding="unicode")


def read_mark(xml: str) -> DomainMark | None:
    """Read a mark from a metadata element; return None if it is no mark."""
    try:
        # libvirt has parsed the XML before.
        return _MARKS.read(DomainMark, ElementTree.fromstring(xml).attrib)  # noqa: S314
    except (ElementTree.ParseError, KeyError, ValueError):
        return None


def _printable(text: str) -> str:
    """Replace characters that XML cannot hold; messages of hypervisors may contain some."""
    return "".join(each if each.isprintable() or each in "\t\n\r" else " " for each in text)


class DomainState(StrEnum):
    """The state of a domain."""

    RUNNING = "running"
    PAUSED = "paused"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainJob:
    """A migration from this host that is in progress."""

    progress: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainView:
    """The domain on one host."""

    state: DomainState
    run: int | None = None  # libvirt's id of this run; None: the domain is off
    mark: DomainMark | None = None
    job: DomainJob | None = None
    migrating: bool = False  # a migration has paused the domain, not a person
    persistent: bool = True

    @property
    def active(self) -> bool:
        """Whether the domain runs or is paused."""
        return self.state is not DomainState.OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundCall:
    """The state of a long libvirt call in this process, such as a migration."""

    running: bool
    error: str = ""  # libvirt's error at the end; also "" if the host became unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """Everything that the driver sees of a step at one moment."""

    source: DomainView | None  # on the host that carries the machine; None: no domain there
    target: DomainView | None = None  # on the host that the machine moves to
    boot: str = ""  # the guest's boot id; "": the guest agent does not answer
    call: BackgroundCall | None = None
