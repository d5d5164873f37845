"""Background tasks on the guest loop: the lock, descriptors, systemd, host probes, and reloads on SIGHUP."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from functools import partial

from forewarn.config import Settings
from forewarn.core.errors import Conflict, ForewarnError, Invalid, Unavailable
from forewarn.guest.http.refusals import Limit, Refusals
from forewarn.platform.systemd import Systemd
from forewarn.server.descriptors import run_out
from forewarn.server.log_setup import set_up_log
from forewarn.server.threads.host_probes import LOOK_EVERY
from forewarn.server.threads.operator_server import OperatorServer, tls_of
from forewarn.server.threads.worker import Health
from forewarn.server.wiring import WiredServer
from forewarn.store.opening.lock import Lock
from forewarn.supervision import BackgroundTask

log = logging.getLogger(__name__)

# Soon enough that two servers do not share a database for long; each check costs a round trip.
LOOK_AT_LOCK_EVERY = 2.0

LOOK_AT_DESCRIPTORS_EVERY = 1.0

SERVING = "serving"  # the status that systemd shows


class Hangups:
    """Counts SIGHUP signals from the start of the program to its end, so that none ends the program."""

    def __init__(self) -> None:
        # Owner of both: the main thread with its signal handler.
        self._came = False
        self._wake: Callable[[], object] = lambda: None
        # SIG_IGN would be inherited by driver processes. A handler of the loop would be removed when the
        # loop closes, and the next signal would then end the process.
        signal.signal(signal.SIGHUP, lambda *_: self._note())

    async def wait(self) -> None:
        """Wait until at least one signal has come since the last call."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        # Set before `_came` is read, so that no signal is lost in between.
        self._wake = lambda: loop.call_soon_threadsafe(came.set)
        try:
            if not self._came:
                await came.wait()
            self._came = False
        finally:
            self._wake = lambda: None

    def _note(self) -> None:
        self._came = True
        self._wake()


@asynccontextmanager
async def background_tasks(
    server: WiredServer,
    *,
    held: Lock,
    stopping: asyncio.Event,
    hangups: Hangups,
    reload: Callable[[], None],
    systemd: Systemd,
) -> AsyncIterator[None]:
    """Run the tasks during the block; if another server takes the lock, set `stopping` and raise Conflict."""
    lost: list[Conflict] = []

    def lose(error: Conflict) -> None:
        lost.append(error)
        stopping.set()

    tasks: dict[BackgroundTask, Callable[[], Awaitable[None]]] = {
        BackgroundTask.LOCK: partial(_watch_lock, held, lose),
        BackgroundTask.DESCRIPTORS: partial(_watch_descriptors, server.guest.connections.refusals),
        BackgroundTask.RELOAD: partial(_reload_on_hangup, hangups, reload, systemd),
        BackgroundTask.WATCHDOG: partial(_feed_watchdog, server.health, systemd),
        BackgroundTask.REACHING: partial(_probe_hosts, server),
        BackgroundTask.HYPERVISORS: server.machine_watch.watch,
    }
    running = [asyncio.create_task(server.supervisor.run_async(*each)) for each in tasks.items()]
    systemd.ready(SERVING)
    try:
        yield
    finally:
        for task in running:
            task.cancel()
    if lost:
        raise lost[0]


async def _watch_lock(held: Lock, lose: Callable[[Conflict], None]) -> None:
    """Renew the lock: a server that has lost it to another server must stop."""
    while True:
        await asyncio.sleep(LOOK_AT_LOCK_EVERY)
        try:
            await asyncio.to_thread(held.keep)
        except Unavailable as error:
            log.warning("cannot renew the lock until the database answers: %s", error)
        except Conflict as error:
            lose(error)
            return


async def _watch_descriptors(refusals: Refusals) -> None:
    """Report when descriptors have run out: the loop closes connections of guests without a message then."""
    while True:
        await asyncio.sleep(LOOK_AT_DESCRIPTORS_EVERY)
        if run_out():
            refusals.note(Limit.DESCRIPTORS, "the process has no file descriptor left (ulimit -n)")


async def _reload_on_hangup(hangups: Hangups, reload: Callable[[], None], systemd: Systemd) -> None:
    """Reload after each SIGHUP; signals during a reload cause one more reload."""
    while True:
        await hangups.wait()
        systemd.reloading()
        try:
            # On a thread, because reading files would block the guest loop.
            await asyncio.to_thread(reload)
        finally:
            systemd.ready(SERVING)


async def _probe_hosts(server: WiredServer) -> None:
    probes = server.host_probes
    while True:
        try:
            if probes.is_stale:
                await server.reads.run_own(probes.load)
        except Unavailable as error:
            log.debug("cannot read the hosts to probe: %s", error)
        if probes.wanted:
            await asyncio.to_thread(probes.ask)
        await asyncio.sleep(LOOK_EVERY)


async def _feed_watchdog(health: Health, systemd: Systemd) -> None:
    """Notify systemd's watchdog while the server is healthy; otherwise systemd restarts the server."""
    while systemd.watchdog_seconds is not None:
        if health.unhealthy() is None:
            systemd.alive()
        await asyncio.sleep(systemd.watchdog_seconds)


# A file may cause any of these: deep nesting, huge numbers, a NUL in a path.
_BAD_FILE = (ForewarnError, OSError, ValueError, RecursionError)


def reload_settings(current: Settings, operator: OperatorServer, *, read: Callable[[], Settings]) -> None:
    """Read the settings again and apply those that need no restart; log errors and keep the old values."""
    try:
        wanted = read()
    except _BAD_FILE as error:
        log.error("the settings cannot be read and stay unchanged: %s", error)  # noqa: TRY400
        return
    steps: dict[str, Callable[[], None]] = {
        "the settings of the log": partial(set_up_log, wanted),
        "the certificate": partial(_replace_certificate, current, wanted, operator),
    }
    for what, apply in steps.items():
        try:
            apply()
        except _BAD_FILE as error:
            log.error("%s cannot be used and stays unchanged: %s", what, error)  # noqa: TRY400
    for name in _needing_restart(current, wanted):
        log.warning("%s has changed: restart the server to apply it", name)
    log.info("the settings were reloaded")


def _replace_certificate(before: Settings, after: Settings, operator: OperatorServer) -> None:
    old, new = tls_of(before.operator), tls_of(after.operator)
    if (old is None) is not (new is None):
        raise Invalid("[operator] certificate and key: restart the server to turn TLS on or off")
    if new is not None:
        operator.replace_tls(new.context())
        log.info("new connections use the certificate in %s", new.certificate)


def _needing_restart(before: Settings, after: Settings) -> list[str]:
    """Name the changed sections of the settings that a reload cannot apply."""
    kept = replace(before.operator, certificate=after.operator.certificate, key=after.operator.key)
    before = replace(before, operator=kept)
    return [
        each.name
        for each in fields(Settings)
        if each.name != "log" and getattr(before, each.name) != getattr(after, each.name)
    ]
