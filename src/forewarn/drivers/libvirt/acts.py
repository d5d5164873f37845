"""What the driver does to domains, one function for each act.

What an act changes for good is written into the domain's mark before it is done, so whoever comes after a
crash finds it there.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from forewarn.core.model.host import Host
from forewarn.drivers.libvirt import definitions, disks
from forewarn.drivers.libvirt.decisions import Act
from forewarn.drivers.libvirt.definitions import Disk
from forewarn.drivers.libvirt.domains import Domain, Route
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import Declined, NoLibvirtAnswer
from forewarn.drivers.libvirt.places import Place, Places, Tools
from forewarn.drivers.libvirt.sights import DomainMark, DomainState


class Acts:
    """The acts of one step."""

    def __init__(self, places: Places, tools: Tools) -> None:
        self._places = places
        self._tools = tools
        self._by_name: Mapping[Act, Callable[[DomainMark], DomainMark]] = {
            Act.SUSPEND: self._suspend,
            Act.RESUME: self.resume,
            Act.SHUT_DOWN: self._shut_down,
            Act.POWER_OFF: self._power_off,
            Act.REBOOT: self._reboot,
            Act.RESET: self._reset,
            Act.START_HERE: lambda mark: self._start(mark, places.here),
            Act.START_THERE: lambda mark: self._start(mark, places.there),
            Act.DEFINE_THERE: self._define_there,
            Act.DEFINE_HERE: lambda mark: self._define_like(mark, places.there, on=places.here),
            Act.UNDEFINE_HERE: self._undefine_here,
            Act.UNDEFINE_THERE: self._undefine_there,
            Act.MIGRATE: self._migrate,
            Act.ABORT: self.abort,
            Act.TAKE_BACK: self._take_back,
        }

    def do(self, act: Act, mark: DomainMark) -> DomainMark:
        """Do something; return the mark as it is then. Declined if libvirt does not do it."""
        return self._by_name[act](mark)

    # Freezes

    def _suspend(self, mark: DomainMark) -> DomainMark:
        mark = self._places.write(replace(mark, asked=self._tools.now()))
        since = self._tools.now()
        self._places.here.domain.suspend()
        return self._places.write(replace(mark, away=since))

    def resume(self, mark: DomainMark) -> DomainMark:
        """Let a suspended machine run again, and measure how long it did not."""
        away = mark.away or mark.asked
        if mark.away is None:
            # Else, after one more crash, one that runs again would look as if it had never been suspended.
            mark = self._places.write(replace(mark, away=away))
        self._places.here.domain.resume()
        impact = None if away is None else (self._tools.now() - away).total_seconds()
        return self._places.write(replace(mark, impact=impact))

    # Down and up

    def _shut_down(self, mark: DomainMark) -> DomainMark:
        """Have the guest shut down: its agent if it has one, else by the power button."""
        domain = self._places.here.domain
        mark = self._places.write(replace(mark, asked=self._tools.now()))
        if domain.definition().has_agent:
            self._tools.calls.begin(mark.id, partial(_shut_down_by_agent, domain))
        else:
            domain.press_power_button()
        return mark

    def _reboot(self, mark: DomainMark) -> DomainMark:
        mark = self._places.write(replace(mark, asked=self._tools.now()))
        self._tools.calls.begin(mark.id, self._places.here.domain.reboot_by_agent)
        return mark

    def _power_off(self, mark: DomainMark) -> DomainMark:
        mark = self._places.write(replace(mark, forced=self._tools.now()))
        self._places.here.domain.power_off()
        return mark

    def _reset(self, mark: DomainMark) -> DomainMark:
        mark = self._places.write(replace(mark, forced=self._tools.now()))
        self._places.here.domain.reset()
        return mark

    def _start(self, mark: DomainMark, place: Place) -> DomainMark:
        self._places.note_left_behind()
        mark = replace(mark, started=self._tools.now())
        place.domain.write(mark)
        place.domain.start()
        return mark

    # Moves

    def _define_there(self, mark: DomainMark) -> DomainMark:
        """Define the domain where it goes, as it is, or was when a copy was made."""
        places = self._places
        if places.both and places.here.found is not None:
            return self._define_like(mark, places.here, on=places.there)
        source = places.task.source
        xml = self._tools.kept.read(places.machine.id, host=None if source is None else source.name)
        ephemeral = [disk for disk in definitions.read(xml).disks if disk.ephemeral]
        disks.make_by_size(ephemeral, on=places.there.hypervisor)
        return self._define(mark, xml, on=places.there)

    def _define_like(self, mark: DomainMark, like: Place, *, on: Place) -> DomainMark:
        xml = like.domain.xml(inactive=True)
        shared = self._tools.options.shared_paths
        anew = disks.made_anew(definitions.read(xml), like.hypervisor, on.hypervisor, shared=shared)
        disks.make(anew, like=like.hypervisor, on=on.hypervisor)
        return self._define(mark, xml, on=on)

    def _define(self, mark: DomainMark, xml: str, *, on: Place) -> DomainMark:
        on.found = on.hypervisor.define(definitions.with_mark(xml, mark))
        self._places.keep_copy(on)
        return mark

    def _undefine_here(self, mark: DomainMark) -> DomainMark:
        places = self._places
        domain = places.here.domain
        seen = domain.seen()
        if seen.state is DomainState.RUNNING:  # since it was looked at: what becomes of it is decided anew
            raise Declined(f"{places.here.hypervisor.host} runs it again")
        if seen.active:
            domain.power_off()  # it is paused: its migration has left it so
        if places.both:
            self._undefine(domain, places.here, other=places.there)
        else:
            domain.undefine()
            self._tools.kept.forget(places.machine.id)
        return mark

    def _undefine_there(self, mark: DomainMark) -> DomainMark:
        places = self._places
        self._undefine(places.there.domain, places.there, other=places.here)
        return mark

    def clear_up(self) -> None:
        """Delete the disks that were copied, on the host that a machine has left."""
        there = self._places.there
        disks.delete(self._left(there.domain, self._places.here, there), on=self._places.here.hypervisor)

    def _undefine(self, domain: Domain, place: Place, *, other: Place) -> None:
        """Undefine a domain, and only then delete its disks: what a crash leaves is a file, and no ruin."""
        left = self._left(domain, place, other)
        domain.undefine()
        disks.delete(left, on=place.hypervisor)

    def _left(self, domain: Domain, left: Place, other: Place) -> list[Disk]:
        """Return the disks that a machine leaves behind on a host, for it has others on the other one."""
        definition = domain.definition(inactive=True)
        shared = self._tools.options.shared_paths
        return disks.made_anew(definition, left.hypervisor, other.hypervisor, shared=shared)

    # Migrations

    def _migrate(self, mark: DomainMark) -> DomainMark:
        places, options = self._places, self._tools.options
        source, target = places.task.source, places.task.target
        if source is None or target is None or target.uri is None:
            raise Declined("there is no host to migrate to")
        definition = places.here.domain.definition()
        here, there = places.here.hypervisor, places.there.hypervisor
        copied = disks.made_anew(definition, here, there, shared=options.shared_paths)
        disks.make(copied, like=here, on=there)
        # While it migrates nothing can be written. One that an unreachable host broke off has its time again.
        mark = places.write(replace(mark, asked=self._tools.now()))
        route = Route(
            peer=options.peer(target.name, target.uri),
            uri=options.sent_to(target.name),
            bandwidth=options.bandwidth,
            auto_converge=options.auto_converge,
            unsafe=options.unsafe_migration,
            disks=tuple(disk.name for disk in copied),
        )
        self._tools.calls.begin(mark.id, partial(self._migrate_at_length, source, route, there))
        return mark

    def _migrate_at_length(self, source: Host, route: Route, there: Hypervisor) -> None:
        # On a connection of its own: libvirt serves only a few calls of each at once.
        hypervisor = self._tools.connections.open_another(source)
        domain = hypervisor.find(self._places.machine.id)
        if domain is None:
            raise Declined(f"{source.name} does not have it any more")
        try:
            domain.migrate(route)
        except (NoLibvirtAnswer, Declined) as error:
            if not hypervisor.is_alive():
                raise NoLibvirtAnswer(str(error), host=source.name) from error
            # The source says that the migration failed. If the connection that the target had before did not
            # outlive it, the target's libvirt was away, and that is no answer of the hypervisors.
            there.ask()
            raise Declined(str(error)) from error

    def abort(self, mark: DomainMark) -> DomainMark:
        """Break a migration off."""
        self._places.here.domain.abort()
        return mark

    def _take_back(self, mark: DomainMark) -> DomainMark:
        self._places.here.domain.resume()
        return mark


def _shut_down_by_agent(domain: Domain) -> None:
    try:
        domain.shut_down_by_agent()
    except Declined:
        domain.press_power_button()
