"""Whether hosts can be reached: their drivers are asked again and again, each in a lane of its own.

What a driver says of a step counts too: a host that it names as out of reach is so at once, and an answer
that contradicts what is known has the host asked about at the next look. The worker saves each change: it
gets a record, views show it, and orders that wait for the host go on.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from forewarn.control.driver import DriverTask, Unknown
from forewarn.control.engine.driver_calls import CallAnswer, DriverCall, Reached, Refused, Verb
from forewarn.control.host_reachability import UNKNOWN, Reachability, ReachState
from forewarn.control.use_case import Context
from forewarn.core.basic_types import Action, HostName, OrderId, Work
from forewarn.core.disclosure import unmark_driver_text
from forewarn.core.errors import Unavailable
from forewarn.core.model.host import Host
from forewarn.store.saved import Saved

log = logging.getLogger(__name__)

# How often it is looked which hosts are to be asked about, in seconds.
LOOK_EVERY = 1.0
# Sooner than as usual: a host that was away for a moment takes machines again soon after.
ASK_AGAIN = 2.0
# So many hosts are asked about in a second at most; in a larger fleet it takes longer until all were.
ASKED_A_SECOND = 100
# Hosts read together.
_PAGE = 500


class SaveReached(Protocol):
    """Has the worker save what is known of hosts."""

    def __call__(self, changed: Callable[[], Mapping[HostName, Reachability]], /) -> "Future[None]":
        """Save what the worker is told when it comes to it."""
        ...


@dataclass(eq=False, slots=True)
class _Asked:
    """A host that a driver looks after."""

    host: Host
    driver: str
    due: float
    is_asked: bool = False  # an answer is awaited
    is_lost: bool = False  # the last answer was lost with the process of the driver


class HostProbes:
    """Asks the drivers that can tell whether they reach their hosts."""

    def __init__(
        self,
        every: Mapping[str, float],
        context: Context,
        *,
        submit: Callable[[DriverCall], None],
        save: SaveReached,
        monotonic: Callable[[], float],
    ) -> None:
        """Take these drivers with how often each is asked in seconds, and who calls and saves."""
        self._every = every
        self._store = context.store
        self._reached = context.reached
        self._now = context.clock.now
        self._submit = submit
        self._save = save
        self._monotonic = monotonic
        self._lock = threading.Lock()  # no call is made with it
        self._hosts: dict[HostName, _Asked] = {}  # lock: self._lock, also for what is in them
        self._default = ""  # who works on hosts that name no driver; lock: self._lock
        self._is_stale = True  # whether hosts are to be read again; lock: self._lock
        self._unsaved: set[HostName] = set()  # lock: self._lock
        self._is_posted = False  # lock: self._lock

    @property
    def is_stale(self) -> bool:
        """Whether hosts have to be read from the store."""
        with self._lock:
            return self._is_stale

    @property
    def wanted(self) -> bool:
        """Whether there is something to ask, or to save."""
        with self._lock:
            return bool(self._hosts or self._unsaved)

    def note(self, saved: Saved) -> None:
        """Take what was saved: hosts may be new, gone, or reached in another way."""
        for each in saved or ():
            changes = each.changes
            with self._lock:
                if changes.defaults is not None or changes.removed_hosts:
                    self._is_stale = True
                for host in changes.hosts:
                    self._note_host(host)
        if saved is None:
            with self._lock:
                self._is_stale = True

    def _note_host(self, host: Host) -> None:
        known = self._hosts.get(host.name)
        if known is None:
            driver = host.driver or self._default
            self._is_stale = self._is_stale or driver in self._every
        elif (known.host.driver, known.host.uri) != (host.driver, host.uri):
            self._is_stale = True
        else:
            known.host = host

    def load(self) -> None:
        """Read which hosts are to be asked about."""
        with self._lock:
            self._is_stale = False
        try:
            found, away, default = self._read()
        except BaseException:
            with self._lock:
                self._is_stale = True
            raise
        now = self._monotonic()
        with self._lock:
            before, self._hosts, self._default = self._hosts, {}, default
            for place, (host, driver) in enumerate(found):
                known = before.get(host.name)
                if known is None or (known.driver, known.host.uri) != (driver, host.uri):
                    known = _Asked(host, driver, due=now + place / ASKED_A_SECOND)
                known.host = host
                self._hosts[host.name] = known
            self._reached.keep(self._hosts)
            self._unsaved.update(host.name for host in away if host.name not in self._hosts)
        self._post_unsaved()

    def ask(self) -> None:
        """Ask about the hosts whose turn it is, and try again to save what could not be saved."""
        now, calls = self._monotonic(), list[tuple[_Asked, DriverCall]]()
        with self._lock:
            due = [each for each in self._hosts.values() if not each.is_asked and each.due <= now]
            for each in sorted(due, key=lambda one: one.due)[:ASKED_A_SECOND]:
                each.is_asked = True
                calls.append((each, DriverCall(verb=Verb.REACH, task=self._task(each))))
        failures = [error for each, call in calls if (error := self._failed(each, call)) is not None]
        self._post_unsaved()
        if failures:
            raise failures[0]

    def _failed(self, asked: _Asked, call: DriverCall) -> BaseException | None:
        """Hand a call over; if that fails, have the host asked about soon again, and return the error."""
        try:
            self._submit(call)
        except BaseException as error:  # noqa: BLE001 - the other hosts come first
            with self._lock:
                asked.is_asked = False
                asked.due = self._monotonic() + ASK_AGAIN
            return error
        return None

    def ask_soon(self) -> None:
        """Have every host asked about at the next look: the process of a driver is another one."""
        with self._lock:
            for each in self._hosts.values():
                each.due = self._monotonic()

    # Answers, on the threads of lanes

    def heard(self, answer: CallAnswer) -> None:
        """Take what a driver has said, of a host or of a step there."""
        if answer.call.verb is Verb.REACH:
            self._heard_of_host(answer)
        else:
            self._heard_of_step(answer)
        self._post_unsaved()

    def _heard_of_host(self, answer: CallAnswer) -> None:
        task, said = answer.call.task, answer.answer
        why = said.why if isinstance(said, Reached | Unknown) else None
        why = None if why is None else unmark_driver_text(why)
        with self._lock:
            known = None if task.source is None else self._hosts.get(task.source.name)
            if known is None or task.source is None:
                return  # it has left the fleet
            if not answer.hangs:
                known.is_asked = False
            if (known.driver, known.host.uri) != (task.driver, task.source.uri):
                return  # it is reached in another way by now
            was_lost, known.is_lost = known.is_lost, isinstance(said, Unknown) and not answer.hangs
            if known.is_lost and not was_lost:
                # Another host may have crashed the process. A second answer that is lost counts.
                known.due = self._monotonic() + ASK_AGAIN
                return
            wait = self._every.get(known.driver, ASK_AGAIN)
            known.due = self._monotonic() + (wait if why is None else min(wait, ASK_AGAIN))
            self._note(known.host.name, why)

    def _heard_of_step(self, answer: CallAnswer) -> None:
        task, said = answer.call.task, answer.answer
        named = task.target.name if isinstance(said, Refused) and said.unreached and task.target else None
        named = said.host if isinstance(said, Unknown) else named
        with self._lock:
            for host in (task.source, task.target):
                known = None if host is None else self._hosts.get(host.name)
                if known is None or known.driver != task.driver:
                    continue
                if known.host.name == named and isinstance(said, Unknown | Refused):
                    why = unmark_driver_text(said.why).removeprefix(f"{named} cannot be reached: ")
                    self._note(named, why)
                    known.due = min(known.due, self._monotonic() + ASK_AGAIN)
                elif self._contradicts(answer, known.host.name):
                    known.due = self._monotonic()

    def _contradicts(self, answer: CallAnswer, host: HostName) -> bool:
        """Return whether an answer is not what is to be expected of a host, as far as it is known."""
        away = self._reached.of(host).state is ReachState.UNREACHABLE
        if isinstance(answer.answer, Unknown):
            return not away
        return away and not isinstance(answer.answer, Refused)

    def _note(self, host: HostName, why: str | None) -> None:
        if self._reached.note(host, why, at=self._now()):
            self._unsaved.add(host)
            if why is None:
                log.info("host %s can be reached", host)
            else:
                log.warning("host %s cannot be reached: %s", host, why)

    # Saving, on the worker

    def _post_unsaved(self) -> None:
        with self._lock:
            if not self._unsaved or self._is_posted:
                return
            self._is_posted = True
        taken: list[HostName] = []
        self._save(lambda: self._take_unsaved(taken)).add_done_callback(lambda done: self._saved(taken, done))

    def _take_unsaved(self, taken: list[HostName]) -> Mapping[HostName, Reachability]:
        with self._lock:
            taken += self._unsaved
            self._unsaved.clear()
            self._is_posted = False
        known = self._reached.all()
        return {name: known.get(name, UNKNOWN) for name in taken}

    def _saved(self, taken: Sequence[HostName], done: "Future[None]") -> None:
        """Keep what could not be saved: it is tried again at the next look."""
        if done.exception() is None:
            return
        silent = isinstance(done.exception(), Unavailable)  # which is logged where it begins
        level = logging.DEBUG if silent else logging.ERROR
        log.log(level, "whether hosts can be reached is not saved, and tried again: %s", done.exception())
        with self._lock:
            self._unsaved.update(taken)
            self._is_posted = False

    # Reading

    def _read(self) -> tuple[list[tuple[Host, str]], Sequence[Host], str]:
        """Read the hosts that are asked about, those that were unreachable, and the default driver."""
        found: list[tuple[Host, str]] = []
        with self._store.read() as snapshot:
            drivers, away = snapshot.rules.host_drivers(), snapshot.fleet.unreachable_hosts()
            default = drivers.defaults.driver_of(None)
            used = {default, *drivers.own.values()}
            after: str | None = None
            while not used.isdisjoint(self._every):
                hosts, after = snapshot.fleet.hosts(after=after, limit=_PAGE)
                found += [(host, drivers.of(host.name)) for host in hosts]
                if after is None:
                    break
        return [(host, driver) for host, driver in found if driver in self._every], away, default

    def _task(self, asked: _Asked) -> DriverTask:
        now = self._now()
        return DriverTask(
            order=OrderId(f"reach/{asked.host.name}"),
            attempt=0,
            action=Action.SERVICE,
            work=Work.HOST,
            machine=None,
            source=asked.host,
            target=None,
            begun_at=now,
            now=now,
            driver=asked.driver,
        )
