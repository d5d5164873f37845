"""One attempt of a step: refuse it, or look at its domains, decide what is next, do it, and look again."""

import logging
from dataclasses import replace
from datetime import timedelta

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import Work
from forewarn.core.model.machine import Machine
from forewarn.drivers.libvirt import decisions, disks
from forewarn.drivers.libvirt.acts import Acts
from forewarn.drivers.libvirt.decisions import Act, Broken, Finished, Next
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import Declined
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.places import Places, Tools
from forewarn.drivers.libvirt.sights import AttemptEnd, DomainMark, DomainSight, DomainState, new_mark

log = logging.getLogger(__name__)

# No step takes so many acts in one call; what would go on for ever is looked at again later.
MOST_ACTS = 12
# What forewarn itself keeps of a Terminate that was begun, before anything is done: the domain's own mark may
# go with the domain.
SAVED = "begun"
# A migration that is being broken off is looked at again after so long.
BREAKING_OFF = timedelta(seconds=1)
_TRANSIENT = "its domain is transient, and would be gone once it is off: define it (virsh define)"


class DomainAttempt:
    """An attempt of a step of a machine."""

    def __init__(self, task: DriverTask, machine: Machine, tools: Tools) -> None:
        """Reach the hosts that it has to do with; NoAnswer if one cannot be reached."""
        self._task = task
        self._machine = machine
        self._tools = tools
        self._places = Places(task, machine, tools)
        self._acts = Acts(self._places, tools)
        self._decide = decisions.next_of(task.work, moves=self._places.moves)

    # What it is asked

    def precheck(self) -> str | None:
        """Return why it could not be begun; None if it could, or has been."""
        sight = self._places.look()
        if self._places.mark_in(sight) is not None:
            return None
        return refusal_of(self._places, sight, options=self._tools.options)

    def begin(self) -> Begun:
        """Mark the domain, and begin."""
        sight = self._places.look()
        if (known := self._known(sight)) is not None:
            return known
        mark = self._places.mark_in(sight)
        if mark is None:
            why = refusal_of(self._places, sight, options=self._tools.options)
            if why is not None:
                return Failed(why)
            mark = self._places.write(self._new_mark(sight))
            self._places.keep_copy(self._places.first)
        return self._go_on(mark)

    def check(self) -> Checked:
        """Find out how far it is, and go on with it."""
        sight = self._places.look()
        if (known := self._known(sight)) is not None:
            return known
        mark = self._places.mark_in(sight)
        if mark is not None:
            return self._go_on(mark)
        # A domain that is gone tells nothing, and one that never was neither: what was saved does.
        ended = self._task.work is Work.TERMINATE and sight.here is None and self._task.mark == SAVED
        return Done() if ended else NotBegun()

    def cancel(self) -> CancelAnswer:
        """Call it off, if nothing has been done that cannot be undone."""
        sight = self._places.look()
        mark = self._places.mark_in(sight)
        if self._places.later_attempt(sight) is not None:
            return Cancelled()  # an older one is refused, whenever it comes
        if mark is None:
            return self._called_off(self._new_mark(sight))
        if mark.ended is not None:
            return TooLate() if mark.ended is AttemptEnd.DONE else Cancelled()
        if mark.asked is None:
            return self._called_off(mark)
        if self._task.work is not Work.FREEZE:
            return TooLate()
        return self._migration_off(mark, sight) if self._places.moves else self._freeze_off(mark, sight)

    def _called_off(self, mark: DomainMark) -> Cancelled:
        self._end(mark, AttemptEnd.CANCELLED)
        return Cancelled()

    def _freeze_off(self, mark: DomainMark, sight: DomainSight) -> CancelAnswer:
        if sight.here is not None and sight.here.state is DomainState.PAUSED:
            mark = self._acts.resume(mark)
        return self._called_off(mark)

    def _migration_off(self, mark: DomainMark, sight: DomainSight) -> CancelAnswer:
        at_work = sight.call is not None and sight.call.running
        if at_work or (sight.here is not None and sight.here.job is not None):
            self._acts.abort(mark)
            return Unknown("its migration is being broken off", self._tools.now() + BREAKING_OFF)
        runs_here = sight.here is not None and sight.here.state is DomainState.RUNNING
        return self._called_off(mark) if runs_here and sight.there is None else TooLate()

    def _known(self, sight: DomainSight) -> Done | Failed | None:
        """Return what is known without looking further: it has ended, or another attempt has begun."""
        later = self._places.later_attempt(sight)
        if later is not None:
            return Failed(f"attempt {later} at it has been begun since")
        mark = self._places.mark_in(sight)
        if mark is None or mark.ended is None:
            return None
        match mark.ended:
            case AttemptEnd.DONE:
                return self._done(mark)
            case AttemptEnd.FAILED:
                return Failed(mark.why)
            case AttemptEnd.CANCELLED:
                return Failed("it was called off")

    # Marks

    def _new_mark(self, sight: DomainSight) -> DomainMark:
        """Return the mark of an attempt that begins, with what a boot is told from the next one by."""
        here, run, boot = sight.here, None, ""
        if self._task.work in (Work.REBOOT, Work.REDEPLOY) and here is not None:
            run = -1 if here.run is None else here.run
            domain = self._places.here.domain
            boot = domain.boot() if here.active and domain.definition().has_agent else ""
        return new_mark(self._task, now=self._tools.now(), run=run, boot=boot)

    def _end(
        self, mark: DomainMark, ended: AttemptEnd, *, why: str = "", impact: float | None = None
    ) -> DomainMark:
        """Write how an attempt ended."""
        over = replace(mark, ended=ended, why=why, impact=impact)
        self._tools.calls.forget(self._task.id)
        try:
            return self._places.write(over)
        except Declined as error:
            log.info("%s: how its step ended is not written: %s", self._machine.name, error)
            return over

    # Going on

    def _go_on(self, mark: DomainMark) -> Begun:
        """Do what can be done now, once all is saved that a crash must not lose."""
        if self._task.work is Work.TERMINATE and self._task.mark != SAVED:
            return Running(self._tools.now(), mark=SAVED)
        return self._advance(mark)

    def _advance(self, mark: DomainMark) -> Begun:
        """Look, decide and act until there is an answer."""
        declined: tuple[Act, str] | None = None
        for _ in range(MOST_ACTS):
            mark, following = self._looked_at(mark)
            match following:
                case Running() | Unknown() as answer:
                    return answer
                case Finished() as finished:
                    return self._finish(mark, finished)
                case Broken(why=why):
                    return self._fail(mark, why)
                case Act.ABORT:
                    self._acts.abort(mark)
                    return Running(self._tools.now() + BREAKING_OFF)
                case Act() as act if declined is not None and declined[0] is act:
                    return self._fail(mark, declined[1])
                case Act() as act:
                    mark, declined = self._tried(act, mark)
        return Running(self._tools.now() + decisions.LOOK_AGAIN)

    def _looked_at(self, mark: DomainMark, *, again: bool = True) -> tuple[DomainMark, Next]:
        """Look, and decide; return the mark then, and what is next.

        Two hosts are not looked at in one moment, and a migration may end in between: so what seems broken is
        looked at once more.
        """
        sight = self._places.look(mark)
        mark = self._places.mark_in(sight) or mark
        following = self._decide(mark, sight, now=self._tools.now(), options=self._tools.options)
        if again and isinstance(following, Broken):
            return self._looked_at(mark, again=False)
        return mark, following

    def _tried(self, act: Act, mark: DomainMark) -> tuple[DomainMark, tuple[Act, str] | None]:
        """Try an act; return the mark then, and what libvirt has declined to do.

        Things may have changed since they were looked at, so it is looked again. A machine that its target
        does not take goes back.
        """
        try:
            return self._acts.do(act, mark), None
        except Declined as error:
            log.info("%s: libvirt declines to %s: %s", self._machine.name, act, error)
            if self._task.work is not Work.REDEPLOY or act not in (Act.DEFINE_THERE, Act.START_THERE):
                return mark, (act, str(error))
            back = f"{self._places.there.hypervisor.host} does not take it: {error}"
            return self._places.write(replace(mark, back=back)), None

    def _finish(self, mark: DomainMark, finished: Finished) -> Done:
        impact = mark.impact
        if finished.since is not None:
            impact = (self._tools.now() - finished.since).total_seconds()
        elif finished.there and self._task.work is Work.FREEZE:
            impact = self._places.there.domain.downtime()
            self._acts.clear_up()
            self._places.keep_copy(self._places.there)
        elif self._task.work is Work.RECOVER:
            self._places.note_left_behind()
        return self._done(self._end(mark, AttemptEnd.DONE, impact=impact))

    def _done(self, mark: DomainMark) -> Done:
        target = self._task.target if self._places.moves else None
        return Done(None if target is None else target.name, mark.impact)

    def _fail(self, mark: DomainMark, why: str) -> Failed:
        self._end(mark, AttemptEnd.FAILED, why=why)
        return Failed(why)


def refusal_of(places: Places, sight: DomainSight, *, options: LibvirtOptions) -> str | None:
    """Return why a step is not begun; None if it is."""
    domain = places.first.found
    if domain is None:
        # A machine of a lost host is defined where it comes to.
        return None if places.task.work is Work.RECOVER else _missing(places.machine, places.first.hypervisor)
    if (why := _managed(domain, places.machine)) is not None:
        return why
    if places.begins_there:
        return None
    if places.task.work is Work.REDEPLOY and not places.moves:
        return "no other host was chosen for it"
    return _of_move(places, domain, sight, options) if places.moves else _of_guest(places, domain, sight)


def _missing(machine: Machine, host: Hypervisor) -> str:
    """Say that a host does not have a machine; a domain of its name may be meant."""
    said = f"{host.host} has no domain with the UUID {machine.id} of {machine.name}"
    other = host.uuid_of(machine.name)
    if other is not None:
        return f'{said}; its domain {machine.name} has {other}: declare vm-id = "{other}" for the machine'
    return f"{said}: declare where it is, or have forewarn find it (forewarn fleet import --from libvirt)"


def _managed(domain: Domain, machine: Machine) -> str | None:
    """Say that a domain has another manager, whose work it would be."""
    manager = domain.definition().manager
    if manager is None:
        return None
    return f"{machine.name} is managed by {manager}: have that do it, by its own driver or its own means"


def _of_guest(places: Places, domain: Domain, sight: DomainSight) -> str | None:
    """Return why something cannot be done to a domain where it is."""
    here, work = sight.here, places.task.work
    if here is None or here.persistent or work in (Work.FREEZE, Work.TERMINATE):
        return None
    return None if work is Work.REBOOT and domain.boot() else _TRANSIENT


def _of_move(places: Places, domain: Domain, sight: DomainSight, options: LibvirtOptions) -> str | None:
    """Return why a machine cannot go from one host to another."""
    here, there = places.here.hypervisor, places.there.hypervisor
    if sight.there is not None:
        return f"{there.host} has a domain with its UUID already: undefine that there (virsh undefine)"
    if sight.here is not None and not sight.here.persistent:
        return _TRANSIENT
    live = places.task.work is Work.FREEZE
    if live and sight.here is not None and not sight.here.active:
        return f"it is off on {here.host}, where it is declared to run: start it, or have it evicted"
    if not live and domain.snapshots():
        return "it has snapshots, which would be lost: delete them (virsh snapshot-delete)"
    if not live and domain.has_saved_memory():
        return (
            "its memory is saved, which would be lost: start it, or give that up (virsh managedsave-remove)"
        )
    return disks.in_the_way(domain.definition(), here, there, shared=options.shared_paths)
