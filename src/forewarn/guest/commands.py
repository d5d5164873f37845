"""What the guest endpoint needs of the rest of the service: what a guest can change, or has done."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from forewarn.core.words import EventId, GroupName, MachineId


class GuestCommands(Protocol):
    """Takes what guests bring. Whatever it returns from is saved, and the board shows it."""

    async def enable(self, group: GroupName) -> None:
        """Turn the feature on for a group; Unavailable if that cannot be saved now."""
        ...

    async def defer(self, machine: MachineId, events: Mapping[EventId, int], *, address: str) -> None:
        """Defer events by so many seconds each, all of them or none; Conflict if that cannot be."""
        ...

    async def approve(self, machine: MachineId, events: Sequence[EventId], *, address: str) -> None:
        """Let events start early, all of them or none; Invalid or NotFound for an id that never was."""
        ...

    async def record_impostor(self, machine: MachineId, *, mac: str, address: str) -> None:
        """Record that somebody used a machine's address from another MAC than the machine's."""
        ...
