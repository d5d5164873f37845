"""Hosts."""

from dataclasses import dataclass

from forewarn.core.words import HostName, HostState


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The physical node that carries machines."""

    name: HostName
    state: HostState = HostState.OK
    driver: str | None = None  # who does the work on it; None: whoever the fleet's defaults say
