"""What metrics count of the whole fleet."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

# What metrics tell holds and open rollouts apart by.
HOLD_REACHES = ("fleet", "project", "host")
ROLLOUT_STATES = ("running", "paused", "aborting")


class MetricQueries(Protocol):
    """Counts what there is."""

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, open orders, listed events and open rollouts by state."""
        ...

    def holds_by_reach(self) -> Mapping[str, int]:
        """Count holds by what they reach."""
        ...

    def oldest_awaited(self) -> datetime | None:
        """Return the first NotBefore of all events that have not started."""
        ...

    def stuck_orders(self) -> int:
        """Count open orders that wait for a person."""
        ...

    def hosts_by_driver(self) -> Mapping[str, int]:
        """Count hosts by who does the work on them."""
        ...

    def tallies(self) -> Mapping[str, int]:
        """Count the machines that records of a kind name, for the kinds that are counted."""
        ...
