"""Marks: what the driver leaves in a domain's metadata to recognise an attempt by, and to go on with it.

A mark is written before what it speaks of is done. So after a crash, what a domain is and what its mark says
are enough to tell how far an attempt is; the driver keeps nothing else that matters.
"""

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree

from forewarn.control.driver import DriverTask
from forewarn.core.model.order import AttemptId
from forewarn.core.words import HostName, OrderId, Work

NAMESPACE = "urn:forewarn:step:1"
PREFIX = "forewarn"


class Ended(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
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
    ended: Ended | None = None
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


def new(task: DriverTask, *, now: datetime, run: int | None = None, boot: str = "") -> Mark:
    """Return the mark of an attempt that begins."""
    return Mark(
        order=task.order,
        machine=task.subject,
        attempt=task.attempt,
        work=task.work,
        target=None if task.target is None else task.target.name,
        begun=now,
        run=run,
        boot=boot,
    )


def as_xml(mark: Mark) -> str:
    """Write a mark as the element that libvirt keeps; libvirt adds the namespace."""
    said = {each.name: getattr(mark, each.name) for each in fields(mark)}
    words = {name: _word(value) for name, value in said.items() if value not in (None, "")}
    return ElementTree.tostring(ElementTree.Element("step", words), encoding="unicode")


def read(xml: str) -> Mark | None:
    """Read a mark as libvirt gives it back; None for what is no mark of this driver."""
    try:
        said = dict(ElementTree.fromstring(xml).attrib)  # noqa: S314 - libvirt has parsed it before
        return Mark(
            order=OrderId(said["order"]),
            machine=said["machine"],
            attempt=int(said["attempt"]),
            work=Work(said["work"]),
            target=HostName(said["target"]) if "target" in said else None,
            begun=datetime.fromisoformat(said["begun"]),
            run=int(said["run"]) if "run" in said else None,
            boot=said.get("boot", ""),
            asked=_moment(said, "asked"),
            away=_moment(said, "away"),
            forced=_moment(said, "forced"),
            started=_moment(said, "started"),
            back=said.get("back", ""),
            ended=Ended(said["ended"]) if "ended" in said else None,
            impact=float(said["impact"]) if "impact" in said else None,
            why=said.get("why", ""),
        )
    except (ElementTree.ParseError, KeyError, ValueError):
        return None


def _word(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    # libvirt takes no mark with characters that XML does not have, as what a hypervisor says may hold.
    return "".join(each if each.isprintable() or each in "\t\n\r" else " " for each in f"{value}")


def _moment(said: dict[str, str], name: str) -> datetime | None:
    return datetime.fromisoformat(said[name]) if name in said else None
