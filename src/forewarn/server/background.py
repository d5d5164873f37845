"""Upkeep beside the serving: descriptors, the lock, systemd, signals, and settings that are read again."""

import asyncio
import errno
import logging
import os
import resource
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import partial

from forewarn.config import Settings
from forewarn.core.errors import Conflict, ForewarnError, Invalid, Unavailable
from forewarn.guest.http.refusals import Limit, Refusals
from forewarn.platform.systemd import Systemd
from forewarn.server.log_setup import set_up_log
from forewarn.server.threads.acceptor import Caps
from forewarn.server.threads.operator_server import OperatorServer, tls_of
from forewarn.server.threads.host_probes import LOOK_EVERY
from forewarn.server.threads.worker import Health
from forewarn.server.wiring import Parts
from forewarn.store.opening.lock import Lock
from forewarn.supervision import BackgroundTask

# For the store, logs, webhooks, and connections that are ended as soon as they are accepted; a quarter where
# there are few.
RESERVE, RESERVE_PART = 128, 4
# Operators get no more than this part: guests are the many.
OPERATORS_PART = 8
# What a system offers at most, by default (fs.nr_open); a limit may be named "unlimited".
MOST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many connections each port may have."""

    descriptors: int
    guests: int  # with the sockets that listen for them
    operators: Caps


def raise_limit() -> int:
    """Raise the soft limit to the hard one, and return how many descriptors there are now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else hard
    if soft in (wanted, resource.RLIM_INFINITY):
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # more than this system gives to anybody
        return soft
    return wanted


def share(descriptors: int, settings: Settings) -> Shares:
    """Share descriptors out; what is set counts as far as there are enough."""
    operators = min(settings.operator.connections, descriptors // OPERATORS_PART)
    guests = descriptors - min(RESERVE, descriptors // RESERVE_PART) - operators
    return Shares(
        descriptors=descriptors,
        guests=min(settings.guest.connections or guests, guests),
        operators=Caps(whole=operators, per_address=settings.operator.connections_per_address),
    )


def run_out() -> bool:
    """Return whether not one descriptor is left."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


log = logging.getLogger(__name__)

# Soon enough that two servers do not work on one database for long; it costs a round trip.
LOOK_AT_LOCK_EVERY = 2.0

LOOK_AT_DESCRIPTORS_EVERY = 1.0

SERVING = "serving"  # what systemd shows


class Hangups:
    """Notes each SIGHUP, from the start of the program to its end, so that none ends it and none is lost."""

    def __init__(self) -> None:
        # Owner of both: the main thread, with its signal handler; it wakes before it looks, so none is lost.
        self._came = False
        self._wake: Callable[[], object] = lambda: None
        # Not ignored: what this process starts would ignore it too. And not by the loop, which would let
        # the next one end the process when it closes itself.
        signal.signal(signal.SIGHUP, lambda *_: self._note())

    async def wait(self) -> None:
        """Wait until one has come since this was last called."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(news.set)
        try:
            if not self._came:
                await news.wait()
            self._came = False
        finally:
            self._wake = lambda: None

    def _note(self) -> None:
        self._came = True
        self._wake()


@asynccontextmanager
async def keeping_up(
    parts: Parts,
    *,
    held: Lock,
    stopping: asyncio.Event,
    hangups: Hangups,
    reload: Callable[[], Awaitable[None]],
    systemd: Systemd,
) -> AsyncIterator[None]:
    """Do all this while the block lasts; ask it to stop, and raise Conflict, if another has the lock."""
    lost: list[Conflict] = []

    def lose(error: Conflict) -> None:
        lost.append(error)
        stopping.set()

    tasks: dict[BackgroundTask, Callable[[], Awaitable[None]]] = {
        BackgroundTask.LOCK: partial(_watch_lock, held, lose),
        BackgroundTask.DESCRIPTORS: partial(_watch_descriptors, parts.guest.refusals),
        BackgroundTask.RELOAD: partial(_reload_on_hangup, hangups, reload, systemd),
        BackgroundTask.WATCHDOG: partial(_feed_watchdog, parts.health, systemd),
        BackgroundTask.REACHING: partial(_reach_hosts, parts),
        BackgroundTask.HYPERVISORS: parts.machine_watch.run,
    }
    running = [asyncio.create_task(parts.supervisor.run_async(*each)) for each in tasks.items()]
    systemd.ready(SERVING)
    try:
        yield
    finally:
        for task in running:
            task.cancel()
    if lost:
        raise lost[0]


async def _watch_lock(held: Lock, lose: Callable[[Conflict], None]) -> None:
    """Look after the lock: a server that has lost it to another must not go on."""
    while True:
        await asyncio.sleep(LOOK_AT_LOCK_EVERY)
        try:
            await asyncio.to_thread(held.keep)
        except Unavailable as error:
            log.warning("the lock is lost until the database is back: %s", error)
        except Conflict as error:
            lose(error)
            return


async def _watch_descriptors(refusals: Refusals) -> None:
    """Look whether descriptors have run out: the loop then ends guests' connections without a word."""
    while True:
        await asyncio.sleep(LOOK_AT_DESCRIPTORS_EVERY)
        if run_out():
            refusals.note(Limit.DESCRIPTORS, "the process has no file descriptor left (ulimit -n)")


async def _reload_on_hangup(
    hangups: Hangups, reload: Callable[[], Awaitable[None]], systemd: Systemd
) -> None:
    """Read the settings again whenever SIGHUP has come; those that come meanwhile are one more time."""
    while True:
        await hangups.wait()
        systemd.reloading()
        try:
            await reload()
        finally:
            systemd.ready(SERVING)


async def _reach_hosts(parts: Parts) -> None:
    """Have drivers that can tell say again and again whether they reach their hosts."""
    reaching = parts.reaching
    while True:
        try:
            if reaching.is_stale:
                await parts.reads.run(reaching.load)
        except Unavailable as error:
            log.debug("hosts are not read anew while the database is silent: %s", error)
        if reaching.wanted:
            await asyncio.to_thread(reaching.ask)
        await asyncio.sleep(LOOK_EVERY)


async def _feed_watchdog(health: Health, systemd: Systemd) -> None:
    """Send systemd that the service works whenever it does; without that systemd restarts it."""
    while systemd.watchdog_seconds is not None:
        if health.unhealthy() is None:
            systemd.alive()
        await asyncio.sleep(systemd.watchdog_seconds)


# Whatever a file may make of its reading: nesting without end, huge numbers, a NUL within a path.
_BAD_FILE = (ForewarnError, OSError, ValueError, RecursionError)


class Reloading:
    """Puts into force what has changed in the settings, as far as that needs no restart."""

    def __init__(self, settings: Settings, operator: OperatorServer, *, read: Callable[[], Settings]) -> None:
        """Take the settings in force, and how they are read again."""
        self._settings = settings
        self._read = read
        self._operator = operator

    async def reload(self) -> None:
        """Read everything again; what cannot be used leaves in force what was, and is logged."""
        # Files are read: not on the loop that answers guests.
        await asyncio.to_thread(self._reload)

    def _reload(self) -> None:
        try:
            wanted = self._read()
        except _BAD_FILE as error:
            log.error("the settings cannot be read again, and stay as they are: %s", error)  # noqa: TRY400
            return
        self._try("the log's settings", lambda: set_up_log(wanted))
        self._try("the certificate", lambda: self._use_certificate(wanted))
        for name in needing_restart(self._settings, wanted):
            log.warning("%s has changed: that takes a restart", name)
        log.info("the settings were read again")

    def _try(self, what: str, use: Callable[[], None]) -> None:
        try:
            use()
        except _BAD_FILE as error:
            log.error("%s stays as it was: %s", what, error)  # noqa: TRY400 - it says all there is

    def _use_certificate(self, wanted: Settings) -> None:
        before, after = tls_of(self._settings.operator), tls_of(wanted.operator)
        if (before is None) is not (after is None):
            raise Invalid("[operator] certificate and key: to begin or end TLS takes a restart")
        if after is not None:
            self._operator.use(after.context())
            log.info("those who connect are shown the certificate in %s from now on", after.certificate)


def needing_restart(before: Settings, after: Settings) -> list[str]:
    """Name the parts of the settings that differ and are not put into force by a reload."""
    kept = replace(before.operator, certificate=after.operator.certificate, key=after.operator.key)
    before = replace(before, operator=kept)
    return [
        each.name
        for each in fields(Settings)
        if each.name != "log" and getattr(before, each.name) != getattr(after, each.name)
    ]
