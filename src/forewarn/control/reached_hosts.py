"""Whether drivers can reach their hosts, as they last said: in memory, for whoever looks at a host."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.words import HostName


@dataclass(frozen=True, slots=True)
class Reach:
    """What a driver has last said of a host."""

    why: str | None  # why it cannot be reached; None: it can
    at: datetime  # real time


class ReachedHosts:
    """Hosts that drivers were asked to reach. Any thread may read and write."""

    def __init__(self) -> None:
        self._by_host: dict[HostName, Reach] = {}

    def of(self, host: HostName) -> Reach | None:
        """Return what is known of a host; None: its driver has not been asked, or cannot tell."""
        return self._by_host.get(host)

    def note(self, host: HostName, reach: Reach) -> bool:
        """Take over what a driver says; return whether that is news."""
        before = self._by_host.get(host)
        self._by_host[host] = reach
        return before is None or (before.why is None) is not (reach.why is None)

    def keep(self, hosts: Collection[HostName]) -> None:
        """Forget all hosts but these."""
        self._by_host = {name: reach for name, reach in self._by_host.items() if name in hosts}
