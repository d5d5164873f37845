"""One attempt of a step: refuse it, or view its domains, decide, carry out an operation, and repeat."""

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
from forewarn.drivers.libvirt.decisions import Decision, Finished, Operation
from forewarn.drivers.libvirt.domain_view import AttemptEnd, DomainMark, DomainState, StepView, new_mark
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import LibvirtRefused
from forewarn.drivers.libvirt.operations import Operations
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.step_hosts import LibvirtContext, StepHosts

log = logging.getLogger(__name__)

# No step needs more operations in one call. An endless sequence continues at the next check.
MAX_OPERATIONS = 12
# The store saves this mark of a Terminate before anything is done, because the domain's own mark may
# disappear with the domain.
SAVED = "begun"
# The next check after a migration was aborted.
AFTER_ABORT = timedelta(seconds=1)
_TRANSIENT = "its domain is transient and would disappear when it stops: define it (virsh define)"


class DomainAttempt:
    """An attempt of a step of a machine."""

    def __init__(self, task: DriverTask, machine: Machine, context: LibvirtContext) -> None:
        """Connect to the hosts of the step; raise NoLibvirtAnswer if one is unreachable."""
        self._task = task
        self._machine = machine
        self._context = context
        self._hosts = StepHosts(task, machine, context)
        self._operations = Operations(self._hosts, context)
        self._decide = decisions.decider_for(task.work, moves=self._hosts.moves)

    def precheck(self) -> str | None:
        """Return why the step would be refused; None if it can begin or has begun."""
        view = self._hosts.view()
        if self._hosts.mark_in(view) is not None:
            return None
        return refusal_of(self._hosts, view, options=self._context.options)

    def begin(self) -> Begun:
        """Write the mark and begin."""
        view = self._hosts.view()
        if (answer := self._ended(view)) is not None:
            return answer
        mark = self._hosts.mark_in(view)
        if mark is None:
            why = refusal_of(self._hosts, view, options=self._context.options)
            if why is not None:
                return Failed(why)
            mark = self._hosts.write(self._new_mark(view))
            self._hosts.copy_definition(self._hosts.first)
        return self._continue(mark)

    def check(self) -> Checked:
        """View the domains and continue the step."""
        view = self._hosts.view()
        if (answer := self._ended(view)) is not None:
            return answer
        mark = self._hosts.mark_in(view)
        if mark is not None:
            return self._continue(mark)
        # A missing domain has no mark, whether it was terminated or never existed. The saved mark decides.
        ended = self._task.work is Work.TERMINATE and view.source is None and self._task.mark == SAVED
        return Done() if ended else NotBegun()

    def cancel(self) -> CancelAnswer:
        """Cancel the step if everything so far can be undone."""
        view = self._hosts.view()
        mark = self._hosts.mark_in(view)
        if self._hosts.later_attempt(view) is not None:
            return Cancelled()  # the driver refuses an outdated attempt anyway
        if mark is None:
            return self._cancelled(self._new_mark(view))
        if mark.ended is not None:
            return TooLate() if mark.ended is AttemptEnd.DONE else Cancelled()
        if mark.asked is None:
            return self._cancelled(mark)
        if self._task.work is not Work.FREEZE:
            return TooLate()
        if self._hosts.moves:
            return self._cancel_migration(mark, view)
        if view.source is not None and view.source.state is DomainState.PAUSED:
            mark = self._operations.resume(mark)
        return self._cancelled(mark)

    def _cancel_migration(self, mark: DomainMark, view: StepView) -> CancelAnswer:
        source = view.source
        in_progress = view.call is not None and view.call.running
        if in_progress or (source is not None and source.job is not None):
            self._operations.abort_migration(mark)
            return Unknown("its migration is being aborted", self._context.now() + AFTER_ABORT)
        runs_on_source = source is not None and source.state is DomainState.RUNNING
        return self._cancelled(mark) if runs_on_source and view.target is None else TooLate()

    def _cancelled(self, mark: DomainMark) -> Cancelled:
        self._end(mark, AttemptEnd.CANCELLED)
        return Cancelled()

    def _ended(self, view: StepView) -> Done | Failed | None:
        """Return the answer of an attempt that has ended or is outdated."""
        later = self._hosts.later_attempt(view)
        if later is not None:
            return Failed(f"attempt {self._task.attempt} is outdated: attempt {later} of the step has begun")
        mark = self._hosts.mark_in(view)
        if mark is None or mark.ended is None:
            return None
        match mark.ended:
            case AttemptEnd.DONE:
                return self._done(mark)
            case AttemptEnd.FAILED:
                return Failed(mark.why)
            case AttemptEnd.CANCELLED:
                return Failed("it was cancelled")

    # Marks

    def _new_mark(self, view: StepView) -> DomainMark:
        """Return the mark of a new attempt, with the current run and boot if a reboot must be proved."""
        source, run, boot = view.source, None, ""
        if self._task.work in (Work.REBOOT, Work.REDEPLOY) and source is not None:
            run = -1 if source.run is None else source.run
            domain = self._hosts.source.domain
            boot = domain.boot() if source.active and domain.definition().has_agent else ""
        return new_mark(self._task, now=self._context.now(), run=run, boot=boot)

    def _end(
        self, mark: DomainMark, ended: AttemptEnd, *, why: str = "", impact: float | None = None
    ) -> DomainMark:
        over = replace(mark, ended=ended, why=why, impact=impact)
        self._context.calls.forget(self._task.id)
        try:
            return self._hosts.write(over)
        except LibvirtRefused as error:
            log.info("%s: cannot write the end of its step: %s", self._machine.name, error)
            return over

    # Progress

    def _continue(self, mark: DomainMark) -> Begun:
        if self._task.work is Work.TERMINATE and self._task.mark != SAVED:
            return Running(self._context.now(), mark=SAVED)
        return self._advance(mark)

    def _advance(self, mark: DomainMark) -> Begun:
        """Decide and act until there is an answer."""
        refused: tuple[Operation, str] | None = None
        for _ in range(MAX_OPERATIONS):
            mark, decision = self._decided(mark)
            match decision:
                case Running() | Unknown() as answer:
                    return answer
                case Finished() as finished:
                    return self._finish(mark, finished)
                case Failed(why=why):
                    return self._fail(mark, why)
                case Operation.ABORT_MIGRATION:
                    self._operations.abort_migration(mark)
                    return Running(self._context.now() + AFTER_ABORT)
                case Operation() as operation if refused is not None and refused[0] is operation:
                    return self._fail(mark, refused[1])
                case Operation() as operation:
                    mark, refused = self._tried(operation, mark)
        return Running(self._context.now() + decisions.CHECK_AGAIN)

    def _decided(self, mark: DomainMark, *, again: bool = True) -> tuple[DomainMark, Decision]:
        """View the domains and decide; return the current mark and the decision.

        The driver views two hosts one after the other, and a migration may end in between. So it views them
        once more before it reports a failure.
        """
        view = self._hosts.view(mark)
        mark = self._hosts.mark_in(view) or mark
        decision = self._decide(mark, view, now=self._context.now(), options=self._context.options)
        if again and isinstance(decision, Failed):
            return self._decided(mark, again=False)
        return mark, decision

    def _tried(
        self, operation: Operation, mark: DomainMark
    ) -> tuple[DomainMark, tuple[Operation, str] | None]:
        """Try an operation; return the new mark, and the refused operation with libvirt's reason.

        The state may have changed since the decision, so the caller decides again after a refusal. A machine
        that its target refuses returns to its source.
        """
        try:
            return self._operations.run(operation, mark), None
        except LibvirtRefused as error:
            log.info("%s: libvirt refuses %s: %s", self._machine.name, operation, error)
            on_target = operation in (Operation.DEFINE_ON_TARGET, Operation.START_ON_TARGET)
            if self._task.work is not Work.REDEPLOY or not on_target:
                return mark, (operation, str(error))
            back = f"{self._hosts.target.hypervisor.host} does not take it: {error}"
            return self._hosts.write(replace(mark, back=back)), None

    def _finish(self, mark: DomainMark, finished: Finished) -> Done:
        impact = mark.impact
        if finished.since is not None:
            impact = (self._context.now() - finished.since).total_seconds()
        elif finished.on_target and self._task.work is Work.FREEZE:
            impact = self._hosts.target.domain.downtime()
            self._operations.delete_source_disks()
            self._hosts.copy_definition(self._hosts.target)
        elif self._task.work is Work.RECOVER:
            self._hosts.note_stale_domain()
        return self._done(self._end(mark, AttemptEnd.DONE, impact=impact))

    def _done(self, mark: DomainMark) -> Done:
        target = self._task.target if self._hosts.moves else None
        return Done(None if target is None else target.name, mark.impact)

    def _fail(self, mark: DomainMark, why: str) -> Failed:
        self._end(mark, AttemptEnd.FAILED, why=why)
        return Failed(why)


def refusal_of(hosts: StepHosts, view: StepView, *, options: LibvirtOptions) -> str | None:
    """Return why a step cannot begin; None if it can."""
    work, machine, domain = hosts.task.work, hosts.machine, hosts.first.found
    if domain is None:
        # Recover defines the machine on its target.
        return None if work is Work.RECOVER else _missing(machine, hosts.first.hypervisor)
    if (manager := domain.definition().manager) is not None:
        return f"{machine.name} is managed by {manager}: use the driver or the tools of {manager}"
    if hosts.begins_on_target:
        return None
    if hosts.moves:
        return _move_refusal(hosts, domain, view, options)
    if work is Work.REDEPLOY:
        return "no other host was chosen for it"
    if view.source is None or view.source.persistent or work in (Work.FREEZE, Work.TERMINATE):
        return None
    return None if work is Work.REBOOT and domain.boot() else _TRANSIENT


def _missing(machine: Machine, host: Hypervisor) -> str:
    """Explain that a host lacks a machine's domain; another domain may have the machine's name."""
    missing = f"{host.host} has no domain with the UUID {machine.id} of {machine.name}"
    other = host.uuid_of(machine.name)
    if other is not None:
        return f'{missing}; its domain {machine.name} has {other}: declare vm-id = "{other}" for the machine'
    return f"{missing}: declare its host, or import the fleet (forewarn fleet import --from libvirt)"


def _move_refusal(hosts: StepHosts, domain: Domain, view: StepView, options: LibvirtOptions) -> str | None:
    """Return why a machine cannot move from its source to its target."""
    source, target = hosts.source.hypervisor, hosts.target.hypervisor
    if view.target is not None:
        return f"{target.host} already has a domain with its UUID: undefine it there (virsh undefine)"
    if view.source is not None and not view.source.persistent:
        return _TRANSIENT
    live = hosts.task.work is Work.FREEZE
    if live and view.source is not None and not view.source.active:
        return f"it is off on {source.host} but declared as running: start it, or evict it"
    if not live and domain.snapshots():
        return "it has snapshots, which a move would lose: delete them (virsh snapshot-delete)"
    if not live and domain.has_saved_memory():
        return (
            "it has saved memory, which a move would lose: start it, or discard the memory "
            "(virsh managedsave-remove)"
        )
    return disks.move_obstacle(domain.definition(), source, target, shared=options.shared_paths)
