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
from forewarn.drivers.registry import Drivers
from forewarn.guest.http.listeners import Listen
from forewarn.platform.systemd import Systemd
from forewarn.server import addresses, welcome
from forewarn.server.fleet_file import apply_file, check_file, read_file
from forewarn.server.log_setup import set_up_log
from forewarn.server.threads.operator_server import OperatorServer, tls_of
from forewarn.server.background import Hangups, Reloading, Shares, keeping_up, raise_limit, share
from forewarn.server.wiring import PreparedServer, Parts, drivers_of, new_id, prepare_server, wire
from forewarn.store.opening import copying, lock
from forewarn.store.opening.copying import Copied, Progress
from forewarn.store.opening.database import without_password
from forewarn.store.opening.lock import Lock
from forewarn.store.opening.schema import any_token, is_store

log = logging.getLogger(__name__)

# For what guests have sent when the server is told to stop, or send in that moment.
DRAIN_SECONDS = 0.5
# Objects that are new when it is looked which of them are garbage. Next to nothing is: values are frozen, and
# go with those who held them. At Python's 700, looking takes a twentieth of a rollout's time.
GARBAGE_AFTER = 20_000

# How long a thread computes while others wait for the interpreter, in seconds. The worker waits for it after
# each answer of the database, some 25 times for an approval. Beside a thread that makes long lists, the
# median of an approval is 12 times its idle time with 1 ms, and 3 times with this (`bench --only tenants`).
TURN_SECONDS = 0.000005

IN_THE_CLEAR = (
    "Warning: operators' tokens come over the network in the clear, and whoever listens can use them.\n"
    "  Set [operator] certificate and key, or listen on loopback behind something that speaks TLS."
)


def serve(options: Mapping[str, Any]) -> None:
    """Serve until SIGTERM or SIGINT, with the flags that were given; SIGHUP has the settings read again."""
    hangups = Hangups()
    settings = settings_of(options)
    set_up_log(settings)
    for unknown in config_reading.unknown_names(os.environ):
        log.warning("%s", unknown)
    # Read first: a slip there must not leave a new or changed store behind.
    places = _places(settings)
    drivers = drivers_of(settings)
    clock_of(settings.clock)
    if settings.fleet is not None:
        _look_at_fleet(settings.fleet, settings.database, drivers)
    shares = share(raise_limit(), settings)
    reloading = partial(Reloading, settings, read=lambda: settings_of(options))
    settings = replace(settings, guest=replace(settings.guest, connections=shares.guests))
    with lock.hold(settings.database) as held:
        opened = prepare_server(settings, drivers)
        try:
            _look_at_backup(opened, places, hold=not options.get("no_hold"))
            if settings.fleet is not None:
                apply_file(opened.fleet, opened.transact, settings.fleet, say=say)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_serve(opened, places, shares, held=held, hangups=hangups, reloading=reloading))
        finally:
            opened.close()


def _look_at_fleet(path: str, database: str, drivers: Drivers) -> None:
    """Refuse a fleet file that a new store could not be given; a store may know it already."""
    if is_store(database):
        read_file(path)
    else:
        check_file(path, drivers.known)


def _look_at_backup(opened: PreparedServer, places: "_Places", *, hold: bool) -> None:
    """Before anything else: what is held must not begin."""
    restored = opened.transact(lambda tx: RestoredStore(opened.context).begin(tx, hold=hold))
    if restored is not None:
        for line in welcome.restored(
            restored, command=sys.argv[0], operators=places.url(*places.operators[0])
        ):
            say(line)


def copy(source: str, target: str, *, progress: Progress) -> Copied:
    """Copy a store to another database; either is a URL, or a file's name."""
    return copying.copy(_url(source), _url(target), new_lineage=new_id(), progress=progress)


def _url(database: str) -> str:
    return database if "://" in database else f"sqlite:///{database}"


def backup(database: str | None, path: str) -> int:
    """Copy a store to a file, while a server may be running on it; return how many webhooks it has."""
    settings = settings_of({"database": database})
    return copying.backup(settings.database, Path(path), new_lineage=new_id())


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Put together flags, environment and file."""
    flags = {
        "database": options.get("database"),
        "fleet": options.get("fleet"),
        "clock": options.get("clock"),
        "guest.listen": options.get("guest") or None,
        "operator.listen": options.get("operator"),
    }
    return config_reading.load(_config_text(options.get("config")), os.environ, flags)


def say(line: str) -> None:
    """Print a line for the person at the terminal, who may have closed it meanwhile."""
    with suppress(OSError):
        print(line, flush=True)  # noqa: T201 - this is the program's own voice


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    guests: Sequence[Listen]
    operators: Sequence[tuple[str, int]]
    tls: ssl.SSLContext | None
    origins: Sequence[str]

    def url(self, host: str, port: int) -> str:
        """Return where operators reach one of the listeners."""
        return f"{'https' if self.tls else 'http'}://{addresses.shown(host, port)}"


def _places(settings: Settings) -> _Places:
    def guarded() -> bool:
        return any_token(settings.database)

    return _Places(
        guests=[
            *(addresses.guest_address(text) for text in settings.guest.listen),
            *addresses.proxy_addresses(settings.metadata_proxy),
        ],
        operators=[addresses.operator_address(text, guarded=guarded) for text in settings.operator.listen],
        tls=tls.context() if (tls := tls_of(settings.operator)) else None,
        origins=[addresses.public_origin(text, guarded=guarded) for text in settings.operator.origins],
    )


async def _serve(
    opened: PreparedServer,
    places: _Places,
    shares: Shares,
    *,
    held: Lock,
    hangups: Hangups,
    reloading: Callable[[OperatorServer], Reloading],
) -> None:
    systemd = Systemd(os.environ, pid=os.getpid())
    bound = [addresses.bound(*place) for place in places.operators]
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    parts = wire(opened)
    # Before anybody is answered: from then on a database that is away must not end the server.
    drivers = parts.services.reads.fleet.views.hosts_by_driver()
    for name in sorted(drivers.keys() - opened.drivers.names):
        why = opened.drivers.unusable.get(name)
        how = "is not installed" if why is None else f"cannot be used ({why})"
        log.error("driver %s %s: work on %s waits for it", name, how, counted(drivers[name], "host"))
    opened.store.serve()
    await parts.guest.start(places.guests)
    parts.guest.check_room()
    parts.worker.start()
    parts.lanes.start()
    parts.pusher.start()
    operator = OperatorServer(
        parts.app, bound, caps=shares.operators, counts=parts.operator_counts, tls=places.tls
    )
    operator.supervisor = parts.supervisor
    if not await _answers(operator, stopping):
        await _stop(parts, operator)
        return
    urls = [places.url(*each.getsockname()[:2]) for each in bound]
    _greet(opened, parts, shares, operators=urls, origins=places.origins, drivers=drivers)
    if places.tls is None and not all(addresses.is_loopback(host) for host, _ in places.operators):
        say(IN_THE_CLEAR)
    _look_for_garbage()
    sys.setswitchinterval(TURN_SECONDS)
    async with keeping_up(
        parts,
        held=held,
        stopping=stopping,
        hangups=hangups,
        reload=reloading(operator).reload,
        systemd=systemd,
    ):
        await stopping.wait()
        systemd.stopping()
        say("Stopping …")
        await _stop(parts, operator)


async def _answers(operator: OperatorServer, stopping: asyncio.Event) -> bool:
    """Start the operator port; return False if the server is to stop before that answers."""
    starting = asyncio.create_task(asyncio.to_thread(operator.start))
    told = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
    if starting.done():
        await starting
    return starting.done()


async def _stop(parts: Parts, operator: OperatorServer) -> None:
    parts.health.leaving = True
    parts.supervisor.stop()
    parts.recent.close()
    # Not on this loop: the worker's last changes to the boards need it.
    stops: tuple[Callable[[], Awaitable[None]], ...] = (
        partial(asyncio.to_thread, operator.stop),
        partial(parts.guest.stop, drain=DRAIN_SECONDS),
        partial(asyncio.to_thread, parts.pusher.stop),
        partial(asyncio.to_thread, parts.reads.stop),
        partial(asyncio.to_thread, parts.lanes.stop),
        partial(asyncio.to_thread, parts.worker.stop),
    )
    for stop in stops:
        try:
            await stop()
        except Exception:  # the others are still to be stopped
            log.exception("a part of the server could not be stopped")


def _look_for_garbage() -> None:
    """Look for garbage again, but not among what a start leaves for good: that would keep guests waiting.

    Garbage is kept with it: one object in a hundred, and to find it first would take a tenth of the start.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)
    gc.enable()


def _greet(
    opened: PreparedServer,
    parts: Parts,
    shares: Shares,
    *,
    operators: Sequence[str],
    origins: Sequence[str],
    drivers: Mapping[str, int],
) -> None:
    # From the board: a query for the whole fleet would keep guests waiting.
    players = [member.machine for _, member in sorted(parts.board.ports.items())]
    guests = [addresses.shown(host, port) for host, port in parts.guest.addresses]
    database = without_password(opened.settings.database)
    about = f"{counted(len(parts.board), 'machine')} (database {database}, clock {opened.clock.kind})"
    for line in welcome.addresses(
        guests=guests, operators=operators, origins=origins, players=players, about=about
    ):
        say(line)
    for host, port in parts.guest.proxied:
        say(f"  proxy      http://{addresses.shown(host, port)}, which signs for which machine it calls")
    for line in welcome.work(drivers):
        say(line)
    say(welcome.room(machines=parts.guest.room, operators=shares.operators.whole, of=shares.descriptors))
    hints = welcome.things_to_try(
        players, command=sys.argv[0], operators=operators[0], clock=opened.clock.kind, empty=not parts.board
    )
    for line in hints:
        say(line)


def _config_text(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"settings file {path} cannot be read: {error}") from None
