"""The server program: start, serve until a signal, stop."""

import asyncio
import gc
import logging
import os
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from forewarn import config_reading
from forewarn.clock import clock_of
from forewarn.config import Settings
from forewarn.control.restored_store import RestoredStore
from forewarn.core.errors import Invalid
from forewarn.core.text_formats import counted
from forewarn.guest.http.listeners import Listen
from forewarn.platform.systemd import Systemd
from forewarn.server import addresses, welcome
from forewarn.server.background import Hangups, background_tasks, reload_settings
from forewarn.server.descriptors import Shares, raise_limit, share
from forewarn.server.fleet_file import apply_file, check_file, read_file
from forewarn.server.log_setup import set_up_log
from forewarn.server.preparation import PreparedServer, drivers_of, new_id, prepare_server
from forewarn.server.threads.operator_server import OperatorServer, tls_of
from forewarn.server.wiring import WiredServer, wire
from forewarn.store.opening import copying, lock
from forewarn.store.opening.copying import CopySummary, Progress
from forewarn.store.opening.database import without_password
from forewarn.store.opening.lock import Lock
from forewarn.store.opening.schema import any_token, is_store

log = logging.getLogger(__name__)

# How long the stop waits for requests that guests are sending.
DRAIN_SECONDS = 0.5
# New objects that start a garbage collection. Almost nothing is cyclic garbage here, because values are
# frozen. With Python's default of 700, collections take a twentieth of a rollout's time.
GARBAGE_AFTER = 20_000

# The switch interval of the interpreter, in seconds. The worker waits for the interpreter lock after each
# answer of the database, about 25 times for an approval. While another thread builds long lists, an approval
# takes 12 times its idle time (median) with 1 ms, and 3 times with this (`bench --only tenants`).
SWITCH_SECONDS = 0.000005

NO_TLS = (
    "Warning: operators' tokens cross the network without encryption, so anyone on the path can steal them.\n"
    "  Set [operator] certificate and key, or listen on loopback behind a proxy that terminates TLS."
)


def serve(options: Mapping[str, Any]) -> None:
    """Serve with these flags until SIGTERM or SIGINT. SIGHUP reloads the settings."""
    hangups = Hangups()
    settings = settings_of(options)
    set_up_log(settings)
    for unknown in config_reading.unknown_names(os.environ):
        log.warning("%s", unknown)
    # Check the settings before opening the store: a mistake must not create or migrate one.
    listen = _listen(settings)
    drivers = drivers_of(settings)
    clock_of(settings.clock)
    if settings.fleet is not None:
        # An existing store may have applied this file already, and then it is not applied again.
        if is_store(settings.database):
            read_file(settings.fleet)
        else:
            check_file(settings.fleet, drivers.known)
    shares = share(raise_limit(), settings)
    reload = partial(reload_settings, settings, read=lambda: settings_of(options))
    settings = replace(settings, guest=replace(settings.guest, connections=shares.guests))
    with lock.hold(settings.database) as held:
        prepared = prepare_server(settings, drivers)
        try:
            # First, so that held work does not begin.
            _begin_restored(prepared, listen, hold=not options.get("no_hold"))
            if settings.fleet is not None:
                apply_file(prepared.fleet, prepared.transact, settings.fleet, say=say)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_serve(prepared, listen, shares, held=held, hangups=hangups, reload=reload))
        finally:
            prepared.close()


def _begin_restored(prepared: PreparedServer, listen: "_Listen", *, hold: bool) -> None:
    restored = prepared.transact(lambda tx: RestoredStore(prepared.context).begin(tx, hold=hold))
    if restored is not None:
        for line in welcome.restored(
            restored, command=sys.argv[0], operators=listen.url(*listen.operators[0])
        ):
            say(line)


def copy(source: str, target: str, *, progress: Progress) -> CopySummary:
    """Copy a store to another database; each is a URL or a file name."""
    return copying.copy(_url(source), _url(target), new_lineage=new_id(), progress=progress)


def _url(database: str) -> str:
    return database if "://" in database else f"sqlite:///{database}"


def backup(database: str | None, path: str) -> int:
    """Copy a store to a file, even while a server runs on it; return the number of webhooks in it."""
    settings = settings_of({"database": database})
    return copying.backup(settings.database, Path(path), new_lineage=new_id())


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Read the settings from flags, the environment and the settings file."""
    flags = {
        "database": options.get("database"),
        "fleet": options.get("fleet"),
        "clock": options.get("clock"),
        "guest.listen": options.get("guest") or None,
        "operator.listen": options.get("operator"),
    }
    return config_reading.load(_config_text(options.get("config")), os.environ, flags)


def say(line: str) -> None:
    """Print a line for the operator; ignore a terminal that has been closed."""
    with suppress(OSError):
        print(line, flush=True)  # noqa: T201 - output of the command


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listen:
    guests: Sequence[Listen]
    operators: Sequence[tuple[str, int]]
    tls: ssl.SSLContext | None
    origins: Sequence[str]

    def url(self, host: str, port: int) -> str:
        """Return the URL of one of the operator listeners."""
        return f"{'https' if self.tls else 'http'}://{addresses.shown(host, port)}"


def _listen(settings: Settings) -> _Listen:
    def guarded() -> bool:
        return any_token(settings.database)

    return _Listen(
        guests=[
            *(addresses.guest_address(text) for text in settings.guest.listen),
            *addresses.proxy_addresses(settings.metadata_proxy),
        ],
        operators=[addresses.operator_address(text, guarded=guarded) for text in settings.operator.listen],
        tls=tls.context() if (tls := tls_of(settings.operator)) else None,
        origins=[addresses.public_origin(text, guarded=guarded) for text in settings.operator.origins],
    )


async def _serve(
    prepared: PreparedServer,
    listen: _Listen,
    shares: Shares,
    *,
    held: Lock,
    hangups: Hangups,
    reload: Callable[[OperatorServer], None],
) -> None:
    systemd = Systemd(os.environ, pid=os.getpid())
    bound = [addresses.bound(*each) for each in listen.operators]
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    server = wire(prepared)
    # Read before the first answer: after it, a database that is away must not end the server.
    drivers = server.services.reads.fleet.views.hosts_by_driver()
    for name in sorted(drivers.keys() - prepared.drivers.names):
        why = prepared.drivers.unusable.get(name)
        how = "is not installed" if why is None else f"cannot be used ({why})"
        log.error("driver %s %s: work on %s waits for it", name, how, counted(drivers[name], "host"))
    prepared.store.serve()
    await server.guest.start(listen.guests)
    server.guest.check_room()
    server.worker.start(server.supervisor)
    server.lanes.start()
    server.pusher.start(server.supervisor)
    operator = OperatorServer(
        server.app, bound, caps=shares.operators, counts=server.operator_counts, tls=listen.tls
    )
    if not await _start_operator_port(partial(operator.start, server.supervisor), stopping):
        await _stop(server, operator)
        return
    urls = [listen.url(*each.getsockname()[:2]) for each in bound]
    _print_welcome(prepared, server, shares, operators=urls, origins=listen.origins, drivers=drivers)
    if listen.tls is None and not all(addresses.is_loopback(host) for host, _ in listen.operators):
        say(NO_TLS)
    _enable_garbage_collection()
    sys.setswitchinterval(SWITCH_SECONDS)
    async with background_tasks(
        server,
        held=held,
        stopping=stopping,
        hangups=hangups,
        reload=partial(reload, operator),
        systemd=systemd,
    ):
        await stopping.wait()
        systemd.stopping()
        say("Stopping …")
        await _stop(server, operator)


async def _start_operator_port(start: Callable[[], None], stopping: asyncio.Event) -> bool:
    """Start the operator port; return False if the server must stop before the port answers."""
    starting = asyncio.create_task(asyncio.to_thread(start))
    stopped = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    if starting.done():
        await starting
    return starting.done()


async def _stop(server: WiredServer, operator: OperatorServer) -> None:
    server.health.stopping = True
    server.supervisor.stop()
    server.services.fleet.recent.close()
    # On threads, because the worker needs this loop for its last changes to the board.
    stops: tuple[Callable[[], Awaitable[None]], ...] = (
        partial(asyncio.to_thread, operator.stop),
        partial(server.guest.stop, drain=DRAIN_SECONDS),
        partial(asyncio.to_thread, server.pusher.stop),
        partial(asyncio.to_thread, server.reads.stop),
        partial(asyncio.to_thread, server.lanes.stop),
        partial(asyncio.to_thread, server.worker.stop),
    )
    for stop in stops:
        try:
            await stop()
        except Exception:  # the others must still be stopped
            log.exception("an error while the server stopped")


def _enable_garbage_collection() -> None:
    """Enable garbage collection for objects made from now on: scanning older ones would delay guests.

    A hundredth of the older objects is garbage. Collecting them first would take a tenth of the start.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)
    gc.enable()


def _print_welcome(
    prepared: PreparedServer,
    server: WiredServer,
    shares: Shares,
    *,
    operators: Sequence[str],
    origins: Sequence[str],
    drivers: Mapping[str, int],
) -> None:
    # From the board, because a query for the whole fleet would delay guests.
    with_ports = [member.machine for _, member in sorted(server.board.ports.items())]
    guests = [addresses.shown(host, port) for host, port in server.guest.listeners.addresses]
    database, kind = without_password(prepared.settings.database), prepared.clock.kind
    about = f"{counted(len(server.board), 'machine')} (database {database}, clock {kind})"
    lines = [
        *welcome.addresses(
            guests=guests, operators=operators, origins=origins, with_ports=with_ports, about=about
        ),
        *(
            f"  proxy      http://{addresses.shown(host, port)}, for a proxy that signs requests of machines"
            for host, port in server.guest.listeners.proxied
        ),
        *welcome.work(drivers),
        welcome.room(
            machines=server.guest.connections.room,
            operators=shares.operators.whole,
            descriptors=shares.descriptors,
        ),
        *welcome.things_to_try(
            with_ports, command=sys.argv[0], operators=operators[0], clock=kind, empty=not server.board
        ),
    ]
    for line in lines:
        say(line)


def _config_text(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"settings file {path} cannot be read: {error}") from None
