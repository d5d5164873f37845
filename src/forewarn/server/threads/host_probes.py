"""Probes that check at intervals whether drivers reach their hosts, each in its own lane.

Answers about steps count too. A host that a driver reports as unreachable is unreachable at once. An answer
that contradicts the known state makes the next probe due. The worker saves each change with a record; views
show it, and orders that wait for the host continue.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from forewarn.control.driver import DriverTask, Unknown
from forewarn.control.engine.driver_calls import CallAnswer, DriverCall, HostRefused, Reached, Verb
from forewarn.control.host_reachability import UNKNOWN, Reachability, ReachState
from forewarn.control.use_case import Context
from forewarn.core.basic_types import Action, HostName, OrderId, Work
from forewarn.core.disclosure import unmark_driver_text
from forewarn.core.errors import Unavailable
from forewarn.core.model.host import Host
from forewarn.store.saved import Saved

log = logging.getLogger(__name__)

# How often the server looks for hosts whose probe is due, in seconds.
LOOK_EVERY = 1.0
# The pause after a failure, in seconds. It is short, so that a host is used again soon after it returns.
ASK_AGAIN = 2.0
# The most probes that start in a second. In a larger fleet a round takes longer.
ASKED_A_SECOND = 100
# Hosts in one query.
_PAGE = 500

# Saves the reachability of hosts on the worker, which calls the argument to get the values to save.
SaveReached: TypeAlias = Callable[[Callable[[], Mapping[HostName, Reachability]]], "Future[None]"]


@dataclass(eq=False, slots=True)
class _Probe:
    """A host whose driver can check that it is reachable."""

    host: Host
    driver: str
    due: float
    is_asked: bool = False  # an answer is awaited
    is_lost: bool = False  # the driver's process ended before the last answer


class HostProbes:
    """Asks drivers whether they reach their hosts."""

    def __init__(
        self,
        every: Mapping[str, float],
        context: Context,
        *,
        submit: Callable[[DriverCall], None],
        save: SaveReached,
        monotonic: Callable[[], float],
    ) -> None:
        """Take the drivers that can check reachability, with the interval of each in seconds."""
        self._every = every
        self._store = context.store
        self._reached = context.reached
        self._now = context.clock.now
        self._submit = submit
        self._save = save
        self._monotonic = monotonic
        self._lock = threading.Lock()  # never held during a call to another object
        self._probes: dict[HostName, _Probe] = {}  # lock: self._lock, also for the fields of the values
        self._default = ""  # the driver of hosts that name none; lock: self._lock
        self._is_stale = True  # whether hosts must be read again; lock: self._lock
        # The hosts committed since `load` began to read; None: it is not reading. Lock: self._lock.
        self._newer: dict[HostName, Host] | None = None
        self._unsaved: set[HostName] = set()  # lock: self._lock
        self._is_posted = False  # lock: self._lock

    @property
    def is_stale(self) -> bool:
        """Whether the hosts must be read from the store."""
        with self._lock:
            return self._is_stale

    @property
    def wanted(self) -> bool:
        """Whether there are hosts to probe or results to save."""
        with self._lock:
            return bool(self._probes or self._unsaved)

    def note(self, saved: Saved) -> None:
        """Update the hosts after a commit: hosts may be added, removed or changed."""
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
        if self._newer is not None:
            self._newer[host.name] = host
        probe = self._probes.get(host.name)
        if probe is None:
            driver = host.driver or self._default
            self._is_stale = self._is_stale or driver in self._every
        elif (probe.host.driver, probe.host.uri) != (host.driver, host.uri):
            self._is_stale = True
        else:
            probe.host = host

    def load(self) -> None:
        """Read the hosts to probe from the store."""
        with self._lock:
            self._is_stale, self._newer = False, {}
        try:
            found, away, default = self._read()
        except BaseException:
            with self._lock:
                self._is_stale, self._newer = True, None
            raise
        now = self._monotonic()
        with self._lock:
            before, self._probes, self._default = self._probes, {}, default
            newer, self._newer = self._newer or {}, None
            for position, (host, driver) in enumerate(found):
                newest = newer.get(host.name, host)
                # If the driver or the URI has changed, the next load applies it.
                if (newest.driver, newest.uri) == (host.driver, host.uri):
                    host = newest
                probe = before.get(host.name)
                if probe is None or (probe.driver, probe.host.uri) != (driver, host.uri):
                    probe = _Probe(host, driver, due=now + position / ASKED_A_SECOND)
                probe.host = host
                self._probes[host.name] = probe
            self._reached.keep(self._probes)
            self._unsaved.update(host.name for host in away if host.name not in self._probes)
        self._post_unsaved()

    def ask(self) -> None:
        """Start the probes that are due, and save results again that could not be saved."""
        now, calls = self._monotonic(), list[tuple[_Probe, DriverCall]]()
        with self._lock:
            due = [each for each in self._probes.values() if not each.is_asked and each.due <= now]
            for each in sorted(due, key=lambda one: one.due)[:ASKED_A_SECOND]:
                each.is_asked = True
                calls.append((each, DriverCall(verb=Verb.REACH, task=self._task(each))))
        failures = [error for each, call in calls if (error := self._submit_probe(each, call)) is not None]
        self._post_unsaved()
        if failures:
            raise failures[0]

    def _submit_probe(self, probe: _Probe, call: DriverCall) -> BaseException | None:
        """Submit a call; if that fails, schedule the probe again and return the error."""
        try:
            self._submit(call)
        except BaseException as error:  # noqa: BLE001 - `ask` raises it after the other probes
            with self._lock:
                probe.is_asked = False
                probe.due = self._monotonic() + ASK_AGAIN
            return error
        return None

    def ask_soon(self) -> None:
        """Make every probe due, because a driver's process has restarted."""
        with self._lock:
            for each in self._probes.values():
                each.due = self._monotonic()

    # Answers, on the threads of lanes

    def take_answer(self, answer: CallAnswer) -> None:
        """Take the answer of a driver to a probe or to the call of a step."""
        if answer.call.verb is Verb.REACH:
            self._take_probe_answer(answer)
        else:
            self._take_step_answer(answer)
        self._post_unsaved()

    def _take_probe_answer(self, answer: CallAnswer) -> None:
        task, result = answer.call.task, answer.answer
        why = result.why if isinstance(result, Reached | Unknown) else None
        why = None if why is None else unmark_driver_text(why)
        with self._lock:
            probe = None if task.source is None else self._probes.get(task.source.name)
            if probe is None or task.source is None:
                return  # the host has left the fleet
            if not answer.hangs:
                probe.is_asked = False
            if (probe.driver, probe.host.uri) != (task.driver, task.source.uri):
                return  # the host has another driver or URI now
            was_lost, probe.is_lost = probe.is_lost, isinstance(result, Unknown) and not answer.hangs
            if probe.is_lost and not was_lost:
                # A call to another host may have crashed the process. Only a second lost answer counts.
                probe.due = self._monotonic() + ASK_AGAIN
                return
            wait = self._every.get(probe.driver, ASK_AGAIN)
            probe.due = self._monotonic() + (wait if why is None else min(wait, ASK_AGAIN))
            self._set(probe.host.name, why)

    def _take_step_answer(self, answer: CallAnswer) -> None:
        task, result = answer.call.task, answer.answer
        named = result.host if isinstance(result, Unknown) else None
        if isinstance(result, HostRefused) and result.unreached and task.target is not None:
            named = task.target.name
        with self._lock:
            for host in (task.source, task.target):
                probe = None if host is None else self._probes.get(host.name)
                if probe is None or probe.driver != task.driver:
                    continue
                if probe.host.name == named and isinstance(result, Unknown | HostRefused):
                    why = unmark_driver_text(result.why).removeprefix(f"{named} cannot be reached: ")
                    self._set(named, why)
                    probe.due = min(probe.due, self._monotonic() + ASK_AGAIN)
                elif self._contradicts(answer, probe.host.name):
                    probe.due = self._monotonic()

    def _contradicts(self, answer: CallAnswer, host: HostName) -> bool:
        """Whether an answer about a step contradicts the known state of a host."""
        away = self._reached.of(host).state is ReachState.UNREACHABLE
        if isinstance(answer.answer, Unknown):
            return not away
        return away and not isinstance(answer.answer, HostRefused)

    def _set(self, host: HostName, why: str | None) -> None:
        """Set whether a host is reachable: `why` is the reason why it is not."""
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
        """Keep results that could not be saved; `ask` saves them again."""
        if done.exception() is None:
            return
        is_logged = isinstance(done.exception(), Unavailable)  # the store has logged why
        level = logging.DEBUG if is_logged else logging.ERROR
        log.log(level, "cannot save the reachability of hosts, will retry: %s", done.exception())
        with self._lock:
            self._unsaved.update(taken)
            self._is_posted = False

    # Reading

    def _read(self) -> tuple[list[tuple[Host, str]], Sequence[Host], str]:
        """Return the hosts to probe, the hosts saved as unreachable, and the default driver."""
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

    def _task(self, probe: _Probe) -> DriverTask:
        now = self._now()
        return DriverTask(
            order=OrderId(f"reach/{probe.host.name}"),
            attempt=0,
            action=Action.SERVICE,
            work=Work.HOST,
            machine=None,
            source=probe.host,
            target=None,
            begun_at=now,
            now=now,
            driver=probe.driver,
        )
