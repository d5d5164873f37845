"""Decide the next operation of a step from the view of its domains: pure functions.

Each kind of work has a function. It takes the attempt's mark, the view and the real time. It returns the next
operation, or the answer of the driver. The driver looks, decides, acts and repeats until it has an answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from forewarn.control.driver import Failed, Running, Unknown
from forewarn.core.basic_types import Work
from forewarn.core.time_formats import format_span
from forewarn.drivers.libvirt.domain_view import (
    BackgroundCall,
    DomainMark,
    DomainState,
    DomainView,
    StepView,
)
from forewarn.drivers.libvirt.options import LibvirtOptions

# The interval of checks; libvirt's events make the driver look earlier.
CHECK_AGAIN = timedelta(seconds=2)
# How long the end of a migration, or a start, may keep a domain paused.
SETTLING = timedelta(seconds=60)

_ABSENT = "its host does not have it any more"
_PAUSED = "it is paused, and not by forewarn: resume it (virsh resume), then retry"
_ON_BOTH = "it runs on both hosts: power it off on one of them (virsh destroy), then retry"
_ON_NEITHER = "neither host has it: find out what happened, and declare where it is"
_HELD_BY_TARGET = "its target keeps it paused: find out why, then resume it (virsh resume)"


class Operation(StrEnum):
    """An operation of the driver; the source carries the machine, and the machine moves to the target."""

    SUSPEND = "suspend"
    RESUME = "resume"
    SHUT_DOWN = "shut-down"
    POWER_OFF = "power-off"
    REBOOT = "reboot"
    RESET = "reset"
    START_ON_SOURCE = "start-on-source"
    START_ON_TARGET = "start-on-target"
    DEFINE_ON_TARGET = "define-on-target"
    DEFINE_ON_SOURCE = "define-on-source"
    UNDEFINE_ON_SOURCE = "undefine-on-source"
    UNDEFINE_ON_TARGET = "undefine-on-target"
    MIGRATE = "migrate"
    ABORT_MIGRATION = "abort-migration"
    RESUME_ON_SOURCE = "resume-on-source"  # a migration has left the domain paused


@dataclass(frozen=True, slots=True)
class Finished:
    """The step is done."""

    on_target: bool = False  # the machine is on the target
    since: datetime | None = None  # the start of the interruption, which ends now; None: unknown


Decision: TypeAlias = Operation | Finished | Failed | Running | Unknown
Decide: TypeAlias = Callable[..., Decision]


def decider_for(work: Work, *, moves: bool) -> Decide:
    """Return the function that decides about a kind of work."""
    if work is Work.FREEZE:
        return migrating if moves else freezing
    return _DECIDERS[work]


def freezing(mark: DomainMark, view: StepView, *, now: datetime, options: LibvirtOptions) -> Decision:
    """Suspend the domain and resume it after `freeze_for`."""
    match view.source:
        case None:
            return Failed(_ABSENT)
        case DomainView(state=DomainState.OFF):
            return Failed("it is off: a machine that does not run cannot be frozen")
        case DomainView(state=DomainState.PAUSED) if mark.asked is None:
            return Failed(_PAUSED)
        case DomainView(state=DomainState.PAUSED):
            over = (mark.away or mark.asked or now) + options.freeze_for
            return Operation.RESUME if now >= over else Running(over)
        case DomainView():
            # If a person has resumed the domain, the length of the interruption is unknown.
            return Operation.SUSPEND if mark.away is None else Finished()


def migrating(mark: DomainMark, view: StepView, *, now: datetime, options: LibvirtOptions) -> Decision:
    """Migrate the running domain. Both hosts have the domain during the migration."""
    source, target = view.source, view.target
    late = mark.asked is not None and now >= mark.asked + options.migrate_for
    if source is not None and source.job is not None:
        if late:
            return Operation.ABORT_MIGRATION
        return Running(now + CHECK_AGAIN, progress=source.job.progress)
    if view.call is not None and view.call.running:
        return Running(now + CHECK_AGAIN)
    if target is not None and target.state is DomainState.RUNNING:
        return _arrived(source)
    if source is None or not source.active:
        return _left_source(mark, source, target, now=now)
    if target is not None and target.active:
        return Unknown("both hosts have it, and no migration is in progress: libvirt is cleaning up")
    if source.state is DomainState.PAUSED:
        return Operation.RESUME_ON_SOURCE if mark.asked is not None and source.migrating else Failed(_PAUSED)
    return _on_source(view.call, late=late, options=options)


def _on_source(call: BackgroundCall | None, *, late: bool, options: LibvirtOptions) -> Decision:
    """Decide for a domain that runs on the source, without a migration in progress."""
    # Without a background call, no migration has survived a crash.
    error = call.error if call is not None else ""
    unreachable = call is not None and not error
    if late and not unreachable:  # the driver aborted the migration, and libvirt's error says no more
        error = f"its migration did not finish within {format_span(options.migrate_for)}"
    return Failed(error) if error else Operation.MIGRATE


def _arrived(source: DomainView | None) -> Decision:
    """Decide for a domain that runs on the target."""
    if source is None:
        return Finished(on_target=True)
    if source.state is DomainState.RUNNING:
        return Failed(_ON_BOTH)
    return Operation.UNDEFINE_ON_SOURCE  # the migration should have removed it


def _left_source(
    mark: DomainMark, source: DomainView | None, target: DomainView | None, *, now: datetime
) -> Decision:
    """Decide for a domain that does not run on the source any more, and not yet on the target."""
    if target is not None and target.active:
        if now < (mark.asked or now) + SETTLING or target.job is not None:
            return Running(now + CHECK_AGAIN)
        return Unknown(_HELD_BY_TARGET)
    if source is None and target is None:
        return Failed(_ON_NEITHER)
    return Failed("it was shut down during its migration")


def stopping(mark: DomainMark, view: StepView, *, now: datetime, options: LibvirtOptions) -> Decision:
    """Shut the guest down; power it off after the timeout. An evicted domain stays defined."""
    match view.source:
        case None if mark.work is Work.TERMINATE:
            return Finished()
        case None:
            return Failed(_ABSENT)
        case DomainView(state=DomainState.OFF) if mark.work is Work.TERMINATE and options.destroy:
            return Operation.UNDEFINE_ON_SOURCE
        case DomainView(state=DomainState.OFF):
            return Finished()
        case DomainView():
            return _shutting_down(mark, now=now, options=options)


def _shutting_down(mark: DomainMark, *, now: datetime, options: LibvirtOptions) -> Decision:
    if mark.asked is None:
        return Operation.SHUT_DOWN
    late = mark.asked + options.shutdown_for
    return Operation.POWER_OFF if now >= late else Running(min(late, now + CHECK_AGAIN))


def rebooting(mark: DomainMark, view: StepView, *, now: datetime, options: LibvirtOptions) -> Decision:
    """Reboot the guest. Proof is a new boot id, or without an agent, a new run of the domain."""
    source = view.source
    if source is None:
        return Failed(_ABSENT)
    if not source.active:
        return Operation.START_ON_SOURCE
    new_run = mark.run is not None and source.run != mark.run
    new_boot = mark.boot and view.boot not in ("", mark.boot)
    if new_run or new_boot:
        return Finished(since=mark.asked)
    if not mark.boot:
        return _shutting_down(mark, now=now, options=options)
    if mark.asked is None:
        return Operation.REBOOT
    late = (mark.forced or mark.asked) + options.reboot_for
    if now < late:
        return Running(min(late, now + CHECK_AGAIN))
    if mark.forced is None:
        return Operation.RESET
    span = format_span(options.reboot_for)
    return Failed(f"it was reset, and its guest agent has not answered within {span}: see its console")


def moving(mark: DomainMark, view: StepView, *, now: datetime, options: LibvirtOptions) -> Decision:
    """Shut down, define on the target, undefine on the source, and only then start on the target."""
    source, target = view.source, view.target
    if mark.back:
        return _going_back(mark, source, target)
    if target is not None and (target.mark is None or target.mark.id != mark.id):
        return Failed("its target has another domain with its UUID: undefine that domain (virsh undefine)")
    if target is not None and target.active:
        return _moved(mark, view, target, now=now, options=options)
    if source is not None and source.active:
        return _shutting_down(mark, now=now, options=options)
    if target is None:
        return Failed(_ON_NEITHER) if source is None else Operation.DEFINE_ON_TARGET
    return Operation.START_ON_TARGET if source is None else Operation.UNDEFINE_ON_SOURCE


def _moved(
    mark: DomainMark, view: StepView, target: DomainView, *, now: datetime, options: LibvirtOptions
) -> Decision:
    """Decide for a domain that the target runs; the interruption lasts until the guest agent answers."""
    if view.source is not None:
        return Failed(_ON_BOTH) if view.source.active else Operation.UNDEFINE_ON_SOURCE
    if target.state is DomainState.PAUSED:
        return Unknown(_HELD_BY_TARGET)
    up_by = (mark.started or now) + options.reboot_for
    if mark.boot and not view.boot and now < up_by:
        return Running(min(up_by, now + CHECK_AGAIN))
    return Finished(on_target=True, since=mark.asked)


def _going_back(mark: DomainMark, source: DomainView | None, target: DomainView | None) -> Decision:
    """Return the machine to the source, because the target has refused it."""
    if target is not None and target.active:
        return Failed(f"{mark.back}; it runs there nevertheless: declare where it is")
    if source is None:
        return Operation.DEFINE_ON_SOURCE
    if target is not None and target.mark is not None and target.mark.id == mark.id:
        return Operation.UNDEFINE_ON_TARGET
    return Failed(f"{mark.back}; it runs on its source again") if source.active else Operation.START_ON_SOURCE


def starting(mark: DomainMark, view: StepView, *, now: datetime, options: LibvirtOptions) -> Decision:
    """Start the domain on the target."""
    match view.target:
        case None:
            return Operation.DEFINE_ON_TARGET if mark.work is Work.RECOVER else Failed(_ABSENT)
        case DomainView(state=DomainState.PAUSED) if now < mark.begun + SETTLING:
            return Running(now + CHECK_AGAIN)  # the host may be starting it or restoring its memory
        case DomainView(state=DomainState.PAUSED):
            return Failed(_PAUSED)
        case DomainView(state=DomainState.RUNNING):
            return Finished(on_target=True)
        case DomainView():
            return Operation.START_ON_TARGET


def recovering(mark: DomainMark, view: StepView, *, now: datetime, options: LibvirtOptions) -> Decision:
    """Start the domain on the target, because its host has failed and is fenced."""
    source, target = view.source, view.target
    if source is not None and source.active:
        return Failed("its failed host still runs it although it is marked as fenced: fence it, then retry")
    if source is not None and target is not None and not target.active:
        # A host that comes back may start its domains, and then the machine would run twice.
        return Operation.UNDEFINE_ON_SOURCE
    return starting(mark, view, now=now, options=options)


_DECIDERS: dict[Work, Decide] = {
    Work.REBOOT: rebooting,
    Work.REDEPLOY: moving,
    Work.EVICT: stopping,
    Work.TERMINATE: stopping,
    Work.START: starting,
    Work.RECOVER: recovering,
}
