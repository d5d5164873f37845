"""Whether drivers reach their hosts, as they last said: in memory. The store keeps what follows from it."""

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
    UNKNOWN = "unknown"  # its driver has not been asked yet, or cannot tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """Whether a host is reached, since when, and when it last was; in service time."""

    state: ReachState = ReachState.UNKNOWN
    since: datetime | None = None  # since when it has been in this state
    last_reached: datetime | None = None
    why: str = ""  # why it cannot be reached

    def heard(self, why: str | None, *, at: datetime) -> "Reachability":
        """Return what is known after a driver has reached a host, or has said why it cannot."""
        state = ReachState.REACHABLE if why is None else ReachState.UNREACHABLE
        since = self.since if state is self.state else at
        last_reached = at if why is None else self.last_reached
        return replace(self, state=state, since=since, last_reached=last_reached, why=why or "")


UNKNOWN = Reachability()


class HostReachability:
    """What is known of each host. Any thread may read and write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_host: dict[HostName, Reachability] = {}  # lock: self._lock

    def of(self, host: HostName) -> Reachability:
        """Return what is known of a host."""
        with self._lock:
            return self._by_host.get(host, UNKNOWN)

    def all(self) -> Mapping[HostName, Reachability]:
        """Return what is known of all hosts, as at this moment."""
        with self._lock:
            return dict(self._by_host)

    def note(self, host: HostName, why: str | None, *, at: datetime) -> bool:
        """Take over what a driver says; return whether the state has changed."""
        with self._lock:
            before = self._by_host.get(host, UNKNOWN)
            self._by_host[host] = before.heard(why, at=at)
            return self._by_host[host].state is not before.state

    def keep(self, hosts: Collection[HostName]) -> None:
        """Forget all hosts but these."""
        with self._lock:
            for name in self._by_host.keys() - hosts:
                del self._by_host[name]
