"""What goes on beside the serving: looks after the lock, descriptors, systemd and signals."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from forewarn.core.errors import Conflict, Unavailable
from forewarn.guest.http.refusals import Limit, Refusals
from forewarn.sdk.platform.systemd import Systemd
from forewarn.server import descriptors
from forewarn.server.health import Health
from forewarn.server.threads.reaching import LOOK_EVERY
from forewarn.server.wiring import Parts
from forewarn.store.opening.lock import Lock
from forewarn.supervision import BackgroundTask

log = logging.getLogger(__name__)

# Soon enough that two servers do not work on one database for long; it costs a round trip.
LOOK_AT_LOCK_EVERY = 2.0

LOOK_AT_DESCRIPTORS_EVERY = 1.0

SERVING = "serving"  # what systemd shows


class Hangups:
    """Notes each SIGHUP, from the start of the program to its end, so that none ends it and none is lost."""

    def __init__(self) -> None:
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
        if descriptors.run_out():
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
