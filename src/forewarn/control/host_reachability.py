"""Reachability of hosts according to their drivers. In memory only; the store keeps the consequences."""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from forewarn.core.basic_types import HostName


class ReachState(StrEnum):
    """Whether the driver of a host reaches it."""

    REACHABLE = "reachable"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"  # its driver was not called yet, or cannot tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """The reachability of a host. Times are service time."""

    state: ReachState = ReachState.UNKNOWN
    since: datetime | None = None  # the start of this state
    last_reached: datetime | None = None
    why: str = ""  # why it is unreachable

    def heard(self, why: str | None, *, at: datetime) -> "Reachability":
        """Return the reachability after a driver has reached a host, or has given the reason why not."""
        state = ReachState.REACHABLE if why is None else ReachState.UNREACHABLE
        since = self.since if state is self.state else at
        last_reached = at if why is None else self.last_reached
        return replace(self, state=state, since=since, last_reached=last_reached, why=why or "")


UNKNOWN = Reachability()


class HostReachability:
    """The reachability of each host. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_host: dict[HostName, Reachability] = {}  # lock: self._lock

    def of(self, host: HostName) -> Reachability:
        """Return the reachability of a host."""
        with self._lock:
            return self._by_host.get(host, UNKNOWN)

    def all(self) -> Mapping[HostName, Reachability]:
        """Return a copy of the reachability of all hosts."""
        with self._lock:
            return dict(self._by_host)

    def note(self, host: HostName, why: str | None, *, at: datetime) -> bool:
        """Save what a driver reports; return whether the state has changed."""
        with self._lock:
            before = self._by_host.get(host, UNKNOWN)
            self._by_host[host] = before.heard(why, at=at)
            return self._by_host[host].state is not before.state

    def keep(self, hosts: Collection[HostName]) -> None:
        """Remove all other hosts."""
        with self._lock:
            for name in self._by_host.keys() - hosts:
                del self._by_host[name]
