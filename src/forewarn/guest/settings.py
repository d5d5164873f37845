"""The settings, limits and commands that the guest endpoint needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

from forewarn.config import GuestSettings
from forewarn.core.basic_types import EventId, GroupName, MachineId


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for requests, connections and machines; times in real seconds."""

    head_bytes: int = 8 * 1024  # request line and headers
    headers: int = 64  # in one request; clients send ten
    body_bytes: int = 64 * 1024
    request_seconds: float = 10.0  # for a request to arrive completely
    idle_seconds: float = 120.0  # between requests
    linger_seconds: float = 2.0  # for a client to read the last answer before the connection is aborted
    stop_seconds: float = 5.0  # for the last answers when the server stops
    connections: int = 64  # of one machine, and of all unknown callers together
    all_connections: int = 1 << 20  # including listening sockets
    held: int = 8  # long polls of one machine
    pipelined: int = 16  # unanswered requests on one connection
    wait_seconds: int = 300  # the longest wait that `Prefer` may ask for
    known_bytes: int = 2 * 1024 * 1024  # the size of the request cache, with its overhead
    known_request_bytes: int = 1024  # the longest cached request
    known_share: int = 4  # cached requests of one machine


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings(GuestSettings):
    """The section `[guest]` of the settings, with the limits that have no setting."""

    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(cls, guest: GuestSettings) -> "EndpointSettings":
        """Add the limits to the settings."""
        given = {each.name: getattr(guest, each.name) for each in fields(guest)}
        everyone = guest.connections or Limits().all_connections
        limits = Limits(connections=guest.connections_per_address, all_connections=everyone)
        return cls(**given, limits=limits)


class GuestCommands(Protocol):
    """Carries out commands of guests. A call returns when its changes are saved and the board shows them."""

    async def enable(self, group: GroupName) -> None:
        """Enable notice for a group; raise Unavailable if that cannot be saved now."""
        ...

    async def defer(self, machine: MachineId, events: Mapping[EventId, int], *, address: str) -> None:
        """Defer each event by its seconds, all of them or none; raise Conflict if one cannot be deferred."""
        ...

    async def approve(self, machine: MachineId, events: Sequence[EventId], *, address: str) -> None:
        """Approve events, all of them or none; raise Invalid or NotFound for an unknown id."""
        ...

    async def record_impostor(self, machine: MachineId, *, mac: str, address: str) -> None:
        """Record a request from a machine's address with another MAC."""
        ...
