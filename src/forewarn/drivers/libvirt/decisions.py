"""What is next for a step, from what was seen of it: pure, so that every case can be tried.

Each work has a function that takes the mark of the attempt, what was seen and the real time, and returns what
the driver does next, or its answer. It looks, decides, acts, and looks again until there is an answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from forewarn.control.driver import Running, Unknown
from forewarn.core.basic_types import Work
from forewarn.core.time_formats import format_span
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.sights import DomainMark, DomainSight, DomainState, Seen

# How often the driver looks; libvirt's events make it look earlier.
LOOK_AGAIN = timedelta(seconds=2)
# How long a machine that has been moved may be held by the end of its migration, or one by its start.
SETTLING = timedelta(seconds=60)


class Act(StrEnum):
    """What the driver does: here is where the machine was, there is where it goes."""

    SUSPEND = "suspend"
    RESUME = "resume"
    SHUT_DOWN = "shut-down"
    POWER_OFF = "power-off"
    REBOOT = "reboot"
    RESET = "reset"
    START_HERE = "start-here"
    START_THERE = "start-there"
    DEFINE_THERE = "define-there"
    DEFINE_HERE = "define-here"
    UNDEFINE_HERE = "undefine-here"
    UNDEFINE_THERE = "undefine-there"
    MIGRATE = "migrate"
    ABORT = "abort"
    TAKE_BACK = "take-back"  # let it run on where it was: its migration has left it paused


@dataclass(frozen=True, slots=True)
class Finished:
    """The step is done."""

    there: bool = False  # the machine is where it was to go
    since: datetime | None = None  # since when it was away until now; None: that is not known so


@dataclass(frozen=True, slots=True)
class Broken:
    """The step has failed."""

    why: str


Next: TypeAlias = Act | Finished | Broken | Running | Unknown


def next_of(work: Work, *, moves: bool) -> "Decide":
    """Return what decides about a work."""
    if work is Work.FREEZE:
        return migrating if moves else freezing
    return _DECIDING[work]


def freezing(mark: DomainMark, sight: DomainSight, *, now: datetime, options: LibvirtOptions) -> Next:
    """Suspend it, and let it run again after a while."""
    match sight.here:
        case None:
            return Broken("its host does not have it any more")
        case Seen(state=DomainState.OFF):
            return Broken("it is off: a machine that does not run cannot be frozen")
        case Seen(state=DomainState.PAUSED) if mark.asked is None:
            return Broken("it was paused already, by other hands: resume it (virsh resume), then retry")
        case Seen(state=DomainState.PAUSED):
            over = (mark.away or mark.asked or now) + options.freeze_for
            return Act.RESUME if now >= over else Running(over)
        case Seen():
            # One that runs again is done; if other hands let it run, how long it was away is not known.
            return Act.SUSPEND if mark.away is None else Finished()


def migrating(mark: DomainMark, sight: DomainSight, *, now: datetime, options: LibvirtOptions) -> Next:
    """Have it migrate while it runs. While it does, both hosts have it."""
    here, there = sight.here, sight.there
    late = mark.asked is not None and now >= mark.asked + options.migrate_for
    if here is not None and here.job is not None:
        return Act.ABORT if late else Running(now + LOOK_AGAIN, progress=here.job.progress)
    if sight.call is not None and sight.call.running:
        return Running(now + LOOK_AGAIN)
    if there is not None and there.state is DomainState.RUNNING:
        return _arrived(here)
    if here is None or not here.active:
        return _gone(mark, here, there, now=now)
    if there is not None and there.active:
        return Unknown("both hosts hold it, and no migration is under way: its target is being cleaned up")
    if here.state is DomainState.PAUSED:
        return _held(mark, here)
    # Where no call is known, nothing of it has outlived a crash.
    error = sight.call.error if sight.call is not None else ""
    unheard = sight.call is not None and not error  # it ended for a host could not be reached
    if late and not unheard:  # then it was broken off here, and libvirt says no more than that
        error = f"its migration was not through within {format_span(options.migrate_for)}"
    return Broken(error) if error else Act.MIGRATE


def _held(mark: DomainMark, here: Seen) -> Next:
    """Return what is next for a machine that is paused where it was, and not where it goes."""
    if mark.asked is not None and here.migrating:
        return Act.TAKE_BACK
    return Broken("it is paused, by other hands: resume it (virsh resume), then retry")


def _arrived(here: Seen | None) -> Next:
    """Return what is next for a machine that runs where it was to go."""
    if here is None:
        return Finished(there=True)
    if here.state is DomainState.RUNNING:
        return Broken("it runs on both hosts: power it off on one of them (virsh destroy), then retry")
    return Act.UNDEFINE_HERE  # what is left of it was to go with the migration


def _gone(mark: DomainMark, here: Seen | None, there: Seen | None, *, now: datetime) -> Next:
    """Return what is next for a machine that its host does not run any more, and its target not yet."""
    if there is not None and there.active:
        if now < (mark.asked or now) + SETTLING or there.job is not None:
            return Running(now + LOOK_AGAIN)
        return Unknown("its target holds it paused: see why there, then resume it (virsh resume)")
    if here is None and there is None:
        return Broken("neither host has it: see what became of it, and declare where it is")
    return Broken("it was shut down in the middle of its migration")


def stopping(mark: DomainMark, sight: DomainSight, *, now: datetime, options: LibvirtOptions) -> Next:
    """Have it shut down, and power it off if it does not in time. An evicted domain stays defined."""
    match sight.here:
        case None if mark.work is Work.TERMINATE:
            return Finished()
        case None:
            return Broken("its host does not have it any more")
        case Seen(state=DomainState.OFF) if mark.work is Work.TERMINATE and options.destroy:
            return Act.UNDEFINE_HERE
        case Seen(state=DomainState.OFF):
            return Finished()
        case Seen():
            return _going_down(mark, now=now, options=options)


def _going_down(mark: DomainMark, *, now: datetime, options: LibvirtOptions) -> Next:
    if mark.asked is None:
        return Act.SHUT_DOWN
    late = mark.asked + options.shutdown_for
    return Act.POWER_OFF if now >= late else Running(min(late, now + LOOK_AGAIN))


def rebooting(mark: DomainMark, sight: DomainSight, *, now: datetime, options: LibvirtOptions) -> Next:
    """Reboot it. Its agent's word is the proof; without one, that libvirt has run it anew from being off."""
    here = sight.here
    if here is None:
        return Broken("its host does not have it any more")
    if not here.active:
        return Act.START_HERE
    run_anew = mark.run is not None and here.run != mark.run
    booted = sight.boot not in ("", mark.boot)
    if run_anew or (mark.boot and booted):
        return Finished(since=mark.asked)
    return (
        _booting(mark, now=now, options=options) if mark.boot else _going_down(mark, now=now, options=options)
    )


def _booting(mark: DomainMark, *, now: datetime, options: LibvirtOptions) -> Next:
    if mark.asked is None:
        return Act.REBOOT
    late = (mark.forced or mark.asked) + options.reboot_for
    if now < late:
        return Running(min(late, now + LOOK_AGAIN))
    if mark.forced is None:
        return Act.RESET
    span = format_span(options.reboot_for)
    return Broken(f"it was reset, and its agent has not said within {span} that it is up: see its console")


def moving(mark: DomainMark, sight: DomainSight, *, now: datetime, options: LibvirtOptions) -> Next:
    """Shut it down, define it there, undefine it here, and only then start it there."""
    here, there = sight.here, sight.there
    if mark.back:
        return _going_back(mark, here, there)
    if there is not None and (there.mark is None or there.mark.id != mark.id):
        return Broken("its target has a domain with its UUID already: undefine that (virsh undefine)")
    if there is not None and there.active:
        up_by = (mark.started or now) + options.reboot_for
        awaited = bool(mark.boot) and not sight.boot and now < up_by
        return _settled(mark, here, there, look_at=min(up_by, now + LOOK_AGAIN) if awaited else None)
    if here is not None and here.active:
        return _going_down(mark, now=now, options=options)
    if there is None:
        if here is None:
            return Broken("neither host has it: see what became of it, and declare where it is")
        return Act.DEFINE_THERE
    return Act.START_THERE if here is None else Act.UNDEFINE_HERE


def _settled(mark: DomainMark, here: Seen | None, there: Seen, *, look_at: datetime | None) -> Next:
    """Return what is next for a machine that runs where it was to go; until its agent answers it is away."""
    if here is not None and here.active:
        return Broken("it runs on both hosts: power it off on one of them (virsh destroy), then retry")
    if here is not None:
        return Act.UNDEFINE_HERE
    if there.state is DomainState.PAUSED:
        return Unknown("its target holds it paused: see why there, then resume it (virsh resume)")
    return Running(look_at) if look_at is not None else Finished(there=True, since=mark.asked)


def _going_back(mark: DomainMark, here: Seen | None, there: Seen | None) -> Next:
    """Bring it back to where it was: its target does not take it."""
    if there is not None and there.active:
        return Broken(f"{mark.back}; it runs there all the same: declare where it is")
    if here is None:
        return Act.DEFINE_HERE
    if there is not None and there.mark is not None and there.mark.id == mark.id:
        return Act.UNDEFINE_THERE
    return Broken(f"{mark.back}; it runs where it was") if here.active else Act.START_HERE


def starting(mark: DomainMark, sight: DomainSight, *, now: datetime, options: LibvirtOptions) -> Next:
    """Run it where it is to be."""
    match sight.there:
        case None:
            return Act.DEFINE_THERE if mark.work is Work.RECOVER else Broken("its host does not have it")
        case Seen(state=DomainState.PAUSED) if now < mark.begun + SETTLING:
            return Running(now + LOOK_AGAIN)  # its host may just be starting it, or restoring its memory
        case Seen(state=DomainState.PAUSED):
            return Broken("it is paused, by other hands: resume it (virsh resume), then retry")
        case Seen(state=DomainState.RUNNING):
            return Finished(there=True)
        case Seen():
            return Act.START_THERE


def recovering(mark: DomainMark, sight: DomainSight, *, now: datetime, options: LibvirtOptions) -> Next:
    """Run it elsewhere: its host has failed, and is fenced."""
    if sight.here is not None and sight.here.active:
        return Broken("its host still runs it, though that is said to be fenced: fence it, then retry")
    if sight.here is not None and sight.there is not None and not sight.there.active:
        return Act.UNDEFINE_HERE  # a host that is back may start what it knows, and it would run on both
    return starting(mark, sight, now=now, options=options)


Decide: TypeAlias = Callable[..., Next]

_DECIDING: dict[Work, Decide] = {
    Work.REBOOT: rebooting,
    Work.REDEPLOY: moving,
    Work.EVICT: stopping,
    Work.TERMINATE: stopping,
    Work.START: starting,
    Work.RECOVER: recovering,
}
