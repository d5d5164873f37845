"""Where a machine can see where its endpoint is: its environment and its DHCP leases."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from forewarn.clock import SystemClock
from forewarn.platform import system
from forewarn.platform.leases import LeaseSource

DEFAULT_URL = "http://169.254.169.254"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is to be seen in a machine."""

    now: datetime
    environ: Mapping[str, str] = field(default_factory=dict)
    lease_sources: Sequence[LeaseSource] = ()
    default_url: str = DEFAULT_URL


def surroundings() -> Surroundings:
    """Look around in this machine."""
    return Surroundings(
        now=SystemClock().now(), environ=dict(os.environ), lease_sources=tuple(system.lease_sources())
    )
