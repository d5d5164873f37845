"""What use cases decide on, and where they save what was decided."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from forewarn.core.model.changes import Changes
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.event import Event
from forewarn.core.model.host import Host, HostLoad
from forewarn.core.model.machine import Machine
from forewarn.core.model.slice import Sent, Slice
from forewarn.core.words import EventId, GroupName, HostName, MachineId, OrderId


class ScopedRuleQueries(Protocol):
    """Loads what the rules need: whole, in any scope."""

    def around(  # noqa: PLR0913 - what a decision may be about
        self,
        *,
        orders: Sequence[OrderId] = (),
        machines: Sequence[MachineId] = (),
        hosts: Sequence[HostName] = (),
        groups: Sequence[GroupName] = (),
        room: bool | None = None,
        homes: Sequence[HostName] = (),
        targets: Sequence[HostName] = (),
    ) -> Slice:
        """Load the part of the fleet that a decision about these needs; unknown ones are left out.

        The hosts are those named, those of the orders named and those of the machines named; beside
        them stand the hosts that steps of the named orders move machines to. The machines are those
        named, those of the orders named (their `machine` and their steps'), and all that named hosts
        and the hosts of named orders carry. The groups are those named, and those of the loaded
        machines and events. The orders are those named, and every open one that touches a loaded
        machine (as its `machine`, or in a step of a stage that is not done) or whose host is a loaded
        host. The events are the listed ones of the loaded orders. `listed` counts all listed
        events of the loaded groups; `sent` has the saved notices of the events. `room` has the emptiest
        sound hosts, as many as its machines could be moved to and some more, and where these carry too
        much of a group the emptiest that do not. It is loaded for all these machines where `room` is asked
        for, not at all if it is said not to be needed, else for those that named orders may have to place.
        It also has those of `homes` and `targets` that are sound, and of named orders. `targets` are hosts
        too, whatever their state.
        """
        ...


class RuleQueries(ScopedRuleQueries, Protocol):
    """Loads what the rules need where no project asks."""

    def everything(self) -> Slice:
        """Load the whole fleet, every open order and every listed event."""
        ...

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        ...

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ...

    def host_drivers(self) -> HostDrivers:
        """Return who does the work on which host."""
        ...

    def host_loads(self, hosts: Sequence[Host]) -> Mapping[HostName, HostLoad]:
        """Count what each of these hosts carries, whatever its project, and what is free there."""
        ...


class ChangeSaving(Protocol):
    """Saves what was decided, and what guests were sent."""

    def save(self, changes: Changes) -> Changes:
        """Save what was decided, and return it with the numbers that it was given.

        Unavailable if it cannot be saved, Conflict if it was decided on what is saved no longer.
        """
        ...

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; what is saved already stays as it is."""
        ...
