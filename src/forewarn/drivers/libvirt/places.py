"""The two hosts of a step and its domain there: where the machine was, and where it goes."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from forewarn.control.driver import DriverTask
from forewarn.core.basic_types import HostName, Work
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.drivers.libvirt.connections import Connections
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.kept import KeptDefinitions, LeftBehind, LongCalls
from forewarn.drivers.libvirt.library import Declined, Gone, NoLibvirtAnswer
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.sights import DomainMark, DomainSight, LongCall, Seen

log = logging.getLogger(__name__)

_WHERE_IT_GOES = frozenset({Work.START, Work.RECOVER})  # works that begin on the target


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What all steps share."""

    connections: Connections
    options: LibvirtOptions
    calls: LongCalls
    kept: KeptDefinitions
    left: LeftBehind
    now: Callable[[], datetime]  # real time


@dataclass(slots=True)
class Place:
    """A host of a step, and its domain there."""

    hypervisor: Hypervisor
    found: Domain | None = None

    @property
    def domain(self) -> Domain:
        """The domain, which must be there."""
        if self.found is None:
            raise Declined(f"{self.hypervisor.host} does not have it any more")
        return self.found


class Places:
    """Where a step of a machine takes place."""

    def __init__(self, task: DriverTask, machine: Machine, tools: Tools) -> None:
        """Reach the hosts that it has to do with; NoLibvirtAnswer if one cannot be reached."""
        self.task = task
        self.machine = machine
        self._tools = tools
        source, target = task.source, task.target
        self.moves = target is not None and (source is None or source.name != target.name)
        self.begins_there = task.work in _WHERE_IT_GOES
        self._here = None if self.begins_there else self._reached(source)
        self._there = self._reached(target or source) if self.begins_there or self.moves else None
        if task.work is Work.RECOVER and self.moves:
            self._here = self._reached_perhaps(source)

    def _reached(self, host: Host | None) -> Place:
        if host is None:
            raise NoLibvirtAnswer(f"{self.machine.name} is on no host, and none was chosen for it")
        return Place(self._tools.connections.get(host))

    def _reached_perhaps(self, host: Host | None) -> Place | None:
        """Return a host that has failed, and may answer all the same."""
        try:
            return None if host is None else self._reached(host)
        except NoLibvirtAnswer:
            return None

    @property
    def here(self) -> Place:
        """The host that carries the machine."""
        return _wanted(self._here)

    @property
    def there(self) -> Place:
        """The host that it goes to."""
        return _wanted(self._there)

    @property
    def first(self) -> Place:
        """The host on which the step begins."""
        return self.there if self.begins_there else self.here

    @property
    def unreached(self) -> HostName | None:
        """The failed host that a machine is recovered from and that cannot be asked: it may have it still."""
        lost = self.task.work is Work.RECOVER and self.moves and self._here is None
        return self.task.source.name if lost and self.task.source is not None else None

    @property
    def both(self) -> bool:
        """Whether two hosts have to do with it."""
        return self._here is not None and self._there is not None

    # What is seen there

    def look(self, mark: DomainMark | None = None) -> DomainSight:
        """Look at the domains, and at what proves how far the attempt of a mark is."""
        here, there = self._seen(self._here), self._seen(self._there)
        call = self._tools.calls.of(self.task.id)
        return DomainSight(here=here, there=there, boot=self._boot(mark, here, there, call), call=call)

    def _seen(self, place: Place | None) -> Seen | None:
        if place is None:
            return None
        place.found = place.hypervisor.find(self.machine.id)
        try:
            return None if place.found is None else place.found.seen()
        except Gone:  # since it was found: a migration has just ended
            place.found = None
            return None

    def _boot(
        self, mark: DomainMark | None, here: Seen | None, there: Seen | None, call: LongCall | None
    ) -> str:
        """Ask the guest agent which boot this is, where that is the proof; not while it is at work."""
        proves = mark is not None and mark.boot and mark.asked is not None
        busy = call is not None and call.running
        place = self._there if self.moves else self._here
        if not proves or busy or place is None or place.found is None:
            return ""
        seen = there if self.moves else here
        return place.found.boot() if seen is not None and seen.active else ""

    def mark_in(self, sight: DomainSight) -> DomainMark | None:
        """Return the mark of this attempt; where two hosts have one, that which says more."""
        found = [
            seen.mark for seen in (sight.here, sight.there) if seen is not None and seen.mark is not None
        ]
        mine = [mark for mark in found if mark.is_of(self.task)]
        return max(mine, key=lambda mark: (mark.ended is not None, bool(mark.back)), default=None)

    def later_attempt(self, sight: DomainSight) -> int | None:
        """Return the number of a later attempt at the same step, if one has been begun."""
        for seen in (sight.here, sight.there):
            if seen is not None and seen.mark is not None and seen.mark.is_later_than(self.task):
                return seen.mark.attempt
        return None

    # Marks

    @property
    def holder(self) -> Domain | None:
        """The domain that holds the mark."""
        places = (self._there, self._here) if self.begins_there else (self._here, self._there)
        return next((each.found for each in places if each is not None and each.found is not None), None)

    def write(self, mark: DomainMark) -> DomainMark:
        """Write a mark; a machine that is defined nowhere yet gets it with its definition."""
        holder = self.holder
        if holder is not None:
            holder.write(mark)
        return mark

    def keep_copy(self, place: Place) -> None:
        """Copy the definition of a domain as it is now; without a copy all goes on the same."""
        if place.found is None or not self._tools.kept.kept:
            return
        try:
            xml = place.found.xml(inactive=True)
            self._tools.kept.keep(self.machine.id, xml, host=place.hypervisor.host)
        except (Declined, OSError) as error:
            log.warning("the definition of %s is not copied: %s", self.machine.name, error)

    def note_left_behind(self) -> None:
        """Note on the domain that is recovered where another may be left of it."""
        left, host = self.unreached, self.task.target
        if left is None or host is None:
            return
        domain = self.there.domain
        left_on = domain.left_on() | {left}
        domain.write_left_on(left_on)
        self._tools.left.note(self.machine.id, left_on, instead=host)


def _wanted(place: Place | None) -> Place:
    if place is None:
        raise Declined("it is on no host")
    return place
