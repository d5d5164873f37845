"""The two hosts of a step, and the machine's domain on each of them."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from forewarn.control.driver import DriverTask
from forewarn.core.basic_types import HostName, Work
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.drivers.libvirt.background_calls import BackgroundCalls
from forewarn.drivers.libvirt.connections import Connections
from forewarn.drivers.libvirt.definition_copies import DefinitionCopies
from forewarn.drivers.libvirt.domain_view import BackgroundCall, DomainMark, DomainView, StepView
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import LibvirtRefused, NoLibvirtAnswer, NoSuchDomain
from forewarn.drivers.libvirt.options import LibvirtOptions

log = logging.getLogger(__name__)

_BEGINS_ON_TARGET = frozenset({Work.START, Work.RECOVER})


class StaleDomains:
    """Domains that unreachable hosts still have although forewarn recovered the machines on other hosts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both
        self._current_host: dict[str, Host] = {}  # where the recovered domain is, by UUID
        self._stale_on: dict[str, frozenset[HostName]] = {}

    def note(self, uuid: str, stale_on: frozenset[HostName], *, current_host: Host) -> None:
        """Record the note of a recovered domain."""
        with self._lock:
            if stale_on:
                self._current_host[uuid], self._stale_on[uuid] = current_host, stale_on
            elif uuid in self._current_host and self._current_host[uuid].name == current_host.name:
                del self._current_host[uuid], self._stale_on[uuid]

    def of(self, host: HostName) -> dict[str, Host]:
        """Return the UUIDs of domains that may be stale on a host, with the host of the recovered domain."""
        with self._lock:
            return {uuid: self._current_host[uuid] for uuid, hosts in self._stale_on.items() if host in hosts}


@dataclass(frozen=True, slots=True, kw_only=True)
class LibvirtContext:
    """The objects that all steps of a driver share."""

    connections: Connections
    options: LibvirtOptions
    calls: BackgroundCalls
    copies: DefinitionCopies
    stale: StaleDomains
    now: Callable[[], datetime]  # real time


@dataclass(slots=True)
class StepHost:
    """A host of a step, and the machine's domain there."""

    hypervisor: Hypervisor
    found: Domain | None = None

    @property
    def domain(self) -> Domain:
        """The domain; raises LibvirtRefused if it is missing."""
        if self.found is None:
            raise LibvirtRefused(f"{self.hypervisor.host} does not have it any more")
        return self.found


class StepHosts:
    """The hosts of a step: the source that carries the machine, and the target that it moves to."""

    def __init__(self, task: DriverTask, machine: Machine, context: LibvirtContext) -> None:
        """Connect to the hosts; raise NoLibvirtAnswer if one is unreachable."""
        self.task = task
        self.machine = machine
        self._context = context
        source, target = task.source, task.target
        self.moves = target is not None and (source is None or source.name != target.name)
        self.begins_on_target = task.work in _BEGINS_ON_TARGET
        self._source = None if self.begins_on_target else self._connected(source)
        self._target = self._connected(target or source) if self.begins_on_target or self.moves else None
        if task.work is Work.RECOVER and self.moves and source is not None:
            try:  # the failed host may still answer
                self._source = self._connected(source)
            except NoLibvirtAnswer:
                self._source = None

    def _connected(self, host: Host | None) -> StepHost:
        if host is None:
            raise NoLibvirtAnswer(f"{self.machine.name} is on no host, and forewarn has chosen none for it")
        return StepHost(self._context.connections.get(host))

    @property
    def source(self) -> StepHost:
        """The host that carries the machine."""
        return _required(self._source)

    @property
    def target(self) -> StepHost:
        """The host that the machine moves to."""
        return _required(self._target)

    @property
    def first(self) -> StepHost:
        """The host on which the step begins."""
        return self.target if self.begins_on_target else self.source

    @property
    def both(self) -> bool:
        """Whether the step has two hosts."""
        return self._source is not None and self._target is not None

    def view(self, mark: DomainMark | None = None) -> StepView:
        """Look at the domains on both hosts, and at the guest's boot if the mark's attempt needs it."""
        source, target = self._domain_view(self._source), self._domain_view(self._target)
        call = self._context.calls.of(self.task.id)
        boot = self._boot(mark, target if self.moves else source, call)
        return StepView(source=source, target=target, boot=boot, call=call)

    def _domain_view(self, host: StepHost | None) -> DomainView | None:
        if host is None:
            return None
        host.found = host.hypervisor.find(self.machine.id)
        try:
            return None if host.found is None else host.found.view()
        except NoSuchDomain:  # a migration has just ended
            host.found = None
            return None

    def _boot(self, mark: DomainMark | None, view: DomainView | None, call: BackgroundCall | None) -> str:
        """Return the guest's boot id if it proves the step; the agent must not be busy."""
        needed = mark is not None and mark.boot and mark.asked is not None
        busy = call is not None and call.running
        host = self._target if self.moves else self._source
        if not needed or busy or host is None or host.found is None or view is None or not view.active:
            return ""
        return host.found.boot()

    def mark_in(self, view: StepView) -> DomainMark | None:
        """Return the mark of this attempt; if both hosts have one, the more advanced."""
        own = [mark for mark in _marks(view) if mark.id == self.task.id]
        return max(own, key=lambda mark: (mark.ended is not None, bool(mark.back)), default=None)

    def later_attempt(self, view: StepView) -> int | None:
        """Return the number of a later attempt of the same step, if one has begun."""
        step = (self.task.order, self.task.subject)
        attempts = (mark.attempt for mark in _marks(view) if (mark.order, mark.machine) == step)
        return next((attempt for attempt in attempts if attempt > self.task.attempt), None)

    def write(self, mark: DomainMark) -> DomainMark:
        """Write a mark; a machine without a domain gets it with its definition later."""
        order = (self._target, self._source) if self.begins_on_target else (self._source, self._target)
        found = (each.found for each in order if each is not None and each.found is not None)
        if (domain := next(found, None)) is not None:
            domain.write(mark)
        return mark

    def copy_definition(self, host: StepHost) -> None:
        """Copy the current definition of a domain; a failure is logged and does not stop the step."""
        if host.found is None or not self._context.copies.enabled:
            return
        try:
            xml = host.found.xml(inactive=True)
            self._context.copies.write(self.machine.id, xml, host=host.hypervisor.host)
        except (LibvirtRefused, OSError) as error:
            log.warning("cannot copy the definition of %s: %s", self.machine.name, error)

    def note_stale_domain(self) -> None:
        """Note on a recovered domain that its unreachable source may still have the old domain."""
        source, target = self.task.source, self.task.target
        is_stale = self.task.work is Work.RECOVER and self.moves and self._source is None
        if not is_stale or source is None or target is None:
            return
        domain = self.target.domain
        stale_on = domain.stale_on() | {source.name}
        domain.write_stale_on(stale_on)
        self._context.stale.note(self.machine.id, stale_on, current_host=target)


def _marks(view: StepView) -> list[DomainMark]:
    return [each.mark for each in (view.source, view.target) if each is not None and each.mark is not None]


def _required(host: StepHost | None) -> StepHost:
    if host is None:
        raise LibvirtRefused("it is on no host")
    return host
