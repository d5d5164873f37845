"""What the guest endpoint is given: its settings and limits, and who takes what guests bring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from forewarn.core.basic_types import EventId, GroupName, MachineId
from forewarn.wire.instance import InstanceDefaults, InstanceMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one request, connection or machine may ask of the service; times in real seconds."""

    head_bytes: int = 8 * 1024  # request line and headers
    headers: int = 64  # of one request; clients send ten
    body_bytes: int = 64 * 1024
    request_seconds: float = 10.0  # for a request to arrive whole
    idle_seconds: float = 120.0  # between requests
    linger_seconds: float = 2.0  # for a client to read why it is being cut off
    stop_seconds: float = 5.0  # for the last answers, when the service stops
    connections: int = 64  # of one machine, and of all unknown callers together
    all_connections: int = 1 << 20  # of all callers, with the sockets that listen
    held: int = 8  # requests of one machine that wait for a change
    pipelined: int = 16  # requests of one connection that wait for their answers
    wait_seconds: int = 300  # the longest wait that `Prefer` may ask for
    known_bytes: int = 2 * 1024 * 1024  # of all requests that are remembered, with what they cost besides
    known_request_bytes: int = 1024  # of one that is worth remembering
    known_share: int = 4  # requests that one machine may have remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """How the guest endpoint behaves: what `[guest]` of the settings says, as the endpoint needs it."""

    rate: float = 5.0  # requests a second for each machine; 0: no limit
    instance: InstanceMetadata = InstanceMetadata.FULL
    instance_defaults: InstanceDefaults = field(default_factory=InstanceDefaults)
    preview: bool = False  # versions that are not generally available are offered
    lenient_header_on_post: bool = False  # old clients POST without `Metadata: true`
    names: tuple[str, ...] = ()  # that a Host header may give besides an address and localhost
    check_mac: bool = True  # a machine's address is refused from another MAC than it declares
    limits: Limits = field(default_factory=Limits)


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
