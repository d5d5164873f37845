"""Hosts."""

from dataclasses import dataclass

from forewarn.core.words import HostName, HostState


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The physical node that carries machines."""

    name: HostName
    state: HostState = HostState.OK
    driver: str | None = None  # who does the work on it; None: whoever the fleet's defaults say
    uri: str | None = None  # where its driver reaches it, if that needs to be told
    at_once: int | None = None  # how many calls its driver may make there together; None: as the driver says
