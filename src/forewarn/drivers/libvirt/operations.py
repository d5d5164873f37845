"""Carry out the operations of a step on its domains.

Each operation writes lasting changes into the domain's mark first, so that another process can resume after a
crash.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from forewarn.core.model.host import Host
from forewarn.drivers.libvirt import definitions, disks
from forewarn.drivers.libvirt.decisions import Operation
from forewarn.drivers.libvirt.definitions import Disk
from forewarn.drivers.libvirt.domain_view import DomainMark, DomainState
from forewarn.drivers.libvirt.domains import Domain, Route
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import LibvirtRefused, NoLibvirtAnswer
from forewarn.drivers.libvirt.step_hosts import LibvirtContext, StepHost, StepHosts


class Operations:
    """The operations of one step; each returns the new mark and may raise LibvirtRefused."""

    def __init__(self, hosts: StepHosts, context: LibvirtContext) -> None:
        self._hosts = hosts
        self._context = context
        self._by_name: Mapping[Operation, Callable[[DomainMark], DomainMark]] = {
            Operation.SUSPEND: self._suspend,
            Operation.RESUME: self.resume,
            Operation.SHUT_DOWN: self._shut_down,
            Operation.POWER_OFF: lambda mark: self._force(mark, hosts.source.domain.power_off),
            Operation.REBOOT: self._reboot,
            Operation.RESET: lambda mark: self._force(mark, hosts.source.domain.reset),
            Operation.START_ON_SOURCE: lambda mark: self._start(mark, hosts.source),
            Operation.START_ON_TARGET: lambda mark: self._start(mark, hosts.target),
            Operation.DEFINE_ON_TARGET: self._define_on_target,
            Operation.DEFINE_ON_SOURCE: lambda mark: self._define_from(mark, hosts.target, on=hosts.source),
            Operation.UNDEFINE_ON_SOURCE: self._undefine_on_source,
            Operation.UNDEFINE_ON_TARGET: lambda mark: self._undefine(mark, hosts.target, other=hosts.source),
            Operation.MIGRATE: self._migrate,
            Operation.ABORT_MIGRATION: self.abort_migration,
            Operation.RESUME_ON_SOURCE: self._resume_on_source,
        }

    def run(self, operation: Operation, mark: DomainMark) -> DomainMark:
        """Carry out an operation; return the new mark."""
        return self._by_name[operation](mark)

    def _asked(self, mark: DomainMark) -> DomainMark:
        return self._hosts.write(replace(mark, asked=self._context.now()))

    # Freezes

    def _suspend(self, mark: DomainMark) -> DomainMark:
        mark = self._asked(mark)
        since = self._context.now()
        self._hosts.source.domain.suspend()
        return self._hosts.write(replace(mark, away=since))

    def resume(self, mark: DomainMark) -> DomainMark:
        """Resume a suspended domain and record the length of the interruption."""
        away = mark.away or mark.asked
        if mark.away is None:
            # Without this, a running domain would look as if it had never been suspended after another crash.
            mark = self._hosts.write(replace(mark, away=away))
        self._hosts.source.domain.resume()
        impact = None if away is None else (self._context.now() - away).total_seconds()
        return self._hosts.write(replace(mark, impact=impact))

    # Power

    def _shut_down(self, mark: DomainMark) -> DomainMark:
        """Shut the guest down through its agent; without an agent, press the power button."""
        domain = self._hosts.source.domain
        mark = self._asked(mark)
        if domain.definition().has_agent:
            self._context.calls.begin(mark.id, partial(_shut_down_by_agent, domain))
        else:
            domain.press_power_button()
        return mark

    def _reboot(self, mark: DomainMark) -> DomainMark:
        mark = self._asked(mark)
        self._context.calls.begin(mark.id, self._hosts.source.domain.reboot_by_agent)
        return mark

    def _force(self, mark: DomainMark, operation: Callable[[], None]) -> DomainMark:
        mark = self._hosts.write(replace(mark, forced=self._context.now()))
        operation()
        return mark

    def _start(self, mark: DomainMark, host: StepHost) -> DomainMark:
        self._hosts.note_stale_domain()
        mark = replace(mark, started=self._context.now())
        host.domain.write(mark)
        host.domain.start()
        return mark

    # Moves

    def _define_on_target(self, mark: DomainMark) -> DomainMark:
        """Define the domain on the target, from the source or from the copy of its definition."""
        hosts = self._hosts
        if hosts.both and hosts.source.found is not None:
            return self._define_from(mark, hosts.source, on=hosts.target)
        source = hosts.task.source
        xml = self._context.copies.read(hosts.machine.id, host=None if source is None else source.name)
        ephemeral = [disk for disk in definitions.read(xml).disks if disk.ephemeral]
        disks.create_from_definition(ephemeral, on=hosts.target.hypervisor)
        return self._define(mark, xml, on=hosts.target)

    def _define_from(self, mark: DomainMark, original: StepHost, *, on: StepHost) -> DomainMark:
        xml = original.domain.xml(inactive=True)
        new = self._recreated(definitions.read(xml), original, on)
        disks.create(new, original=original.hypervisor, on=on.hypervisor)
        return self._define(mark, xml, on=on)

    def _define(self, mark: DomainMark, xml: str, *, on: StepHost) -> DomainMark:
        on.found = on.hypervisor.define(definitions.with_mark(xml, mark))
        self._hosts.copy_definition(on)
        return mark

    def _undefine_on_source(self, mark: DomainMark) -> DomainMark:
        hosts = self._hosts
        domain = hosts.source.domain
        view = domain.view()
        if view.state is DomainState.RUNNING:  # it was started since the decision: decide again
            raise LibvirtRefused(f"{hosts.source.hypervisor.host} runs it again")
        if view.active:
            domain.power_off()  # a migration has left it paused
        if hosts.both:
            return self._undefine(mark, hosts.source, other=hosts.target)
        domain.undefine()
        self._context.copies.forget(hosts.machine.id)
        return mark

    def delete_source_disks(self) -> None:
        """Delete the copied disks on the source after a migration."""
        source, target = self._hosts.source, self._hosts.target
        definition = target.domain.definition(inactive=True)
        disks.delete(self._recreated(definition, source, target), on=source.hypervisor)

    def _undefine(self, mark: DomainMark, host: StepHost, *, other: StepHost) -> DomainMark:
        """Undefine a domain before its disks are deleted: a crash may leave a file, but no broken domain."""
        left_disks = self._recreated(host.domain.definition(inactive=True), host, other)
        host.domain.undefine()
        disks.delete(left_disks, on=host.hypervisor)
        return mark

    def _recreated(self, definition: definitions.Definition, one: StepHost, other: StepHost) -> list[Disk]:
        shared = self._context.options.shared_paths
        return disks.recreated(definition, one.hypervisor, other.hypervisor, shared=shared)

    # Migrations

    def _migrate(self, mark: DomainMark) -> DomainMark:
        hosts, options = self._hosts, self._context.options
        source, target = hosts.task.source, hosts.task.target
        if source is None or target is None or target.uri is None:
            raise LibvirtRefused("there is no host to migrate to")
        copied = self._recreated(hosts.source.domain.definition(), hosts.source, hosts.target)
        disks.create(copied, original=hosts.source.hypervisor, on=hosts.target.hypervisor)
        # libvirt refuses metadata changes during a migration. A migration that an unreachable host
        # interrupted gets its full time again.
        mark = self._asked(mark)
        route = Route(
            peer=options.peer(target.name, target.uri),
            uri=options.memory_uri(target.name),
            bandwidth=options.bandwidth,
            auto_converge=options.auto_converge,
            unsafe=options.unsafe_migration,
            disks=tuple(disk.name for disk in copied),
        )
        migration = partial(self._run_migration, source, route, hosts.target.hypervisor)
        self._context.calls.begin(mark.id, migration)
        return mark

    def _run_migration(self, source: Host, route: Route, target: Hypervisor) -> None:
        # A connection of its own: libvirt serves only a few concurrent calls on each.
        hypervisor = self._context.connections.open_another(source)
        domain = hypervisor.find(self._hosts.machine.id)
        if domain is None:
            raise LibvirtRefused(f"{source.name} does not have it any more")
        try:
            domain.migrate(route)
        except (NoLibvirtAnswer, LibvirtRefused) as error:
            if not hypervisor.is_alive():
                raise NoLibvirtAnswer(str(error), host=source.name) from error
            # The source reports a failed migration. If the target is unreachable, the result is unknown.
            target.ping()
            raise LibvirtRefused(str(error)) from error

    def abort_migration(self, mark: DomainMark) -> DomainMark:
        """Abort a migration."""
        self._hosts.source.domain.abort()
        return mark

    def _resume_on_source(self, mark: DomainMark) -> DomainMark:
        self._hosts.source.domain.resume()
        return mark


def _shut_down_by_agent(domain: Domain) -> None:
    try:
        domain.shut_down_by_agent()
    except LibvirtRefused:
        domain.press_power_button()
