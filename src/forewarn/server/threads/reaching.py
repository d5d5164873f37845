"""Whether hosts can be reached: their drivers are asked now and then, each in its host's lane.

A host that hangs is so found out by a call that hangs in its own lane, and nowhere else.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from forewarn.control.driver import DriverTask, Unknown
from forewarn.control.engine.driver_calls import DriverAnswer, DriverCall, Reached, Verb
from forewarn.control.ports.store import ReadStore
from forewarn.control.reached_hosts import Reach, ReachedHosts
from forewarn.core.model.host import Host
from forewarn.core.words import Action, HostName, OrderId, Work

log = logging.getLogger(__name__)

# A host that has fallen silent is known within so many seconds, and its driver's time-out.
ASK_EVERY = 30.0
# Hosts read together.
_PAGE = 500


class HostReaching:
    """Asks the drivers that can tell whether they reach their hosts."""

    def __init__(
        self,
        drivers: frozenset[str],
        *,
        store: ReadStore,
        submit: Callable[[DriverCall], None],
        reached: ReachedHosts,
        real_now: Callable[[], datetime],
    ) -> None:
        """Take the names of these drivers, and who makes the calls."""
        self._drivers = drivers
        self._store = store
        self._submit = submit
        self._reached = reached
        self._real_now = real_now
        self._lock = threading.Lock()
        self._asked: set[HostName] = set()  # of whom an answer is awaited

    @property
    def wanted(self) -> bool:
        """Whether there is a driver that can tell."""
        return bool(self._drivers)

    def ask(self) -> None:
        """Ask about every host that is not being asked about; reads the store."""
        found = self._hosts()
        self._reached.keep({host.name for host, _ in found})
        for host, driver in found:
            with self._lock:
                if host.name in self._asked:
                    continue
                self._asked.add(host.name)
            self._submit(DriverCall(verb=Verb.REACH, task=self._task(host, driver)))

    def heard(self, answer: DriverAnswer) -> None:
        """Take what came of a call; one that hangs is still awaited."""
        host = answer.call.task.source
        if host is None:
            return
        if not answer.hangs:
            with self._lock:
                self._asked.discard(host.name)
        said = answer.answer
        why = said.why if isinstance(said, Reached | Unknown) else None
        if self._reached.note(host.name, Reach(why, self._real_now())):
            log.log(
                logging.INFO if why is None else logging.WARNING,
                "host %s %s",
                host.name,
                "can be reached" if why is None else f"cannot be reached: {why}",
            )

    def _hosts(self) -> Sequence[tuple[Host, str]]:
        found: list[tuple[Host, str]] = []
        with self._store.read() as snapshot:
            drivers = snapshot.rules.host_drivers()
            if not self._drivers & {drivers.defaults.driver_of(None), *drivers.own.values()}:
                return found
            after: str | None = None
            while True:
                hosts, after = snapshot.fleet.hosts(after=after, limit=_PAGE)
                found += [(host, drivers.of(host.name)) for host in hosts]
                if after is None:
                    return [(host, driver) for host, driver in found if driver in self._drivers]

    def _task(self, host: Host, driver: str) -> DriverTask:
        now = self._real_now()
        return DriverTask(
            order=OrderId(f"reach/{host.name}"),
            attempt=0,
            action=Action.SERVICE,
            work=Work.HOST,
            machine=None,
            source=host,
            target=None,
            begun_at=now,
            now=now,
            driver=driver,
        )
