"""Connections: one to each host, opened when it is first needed, and again when it is lost.

libvirt can wait for ever for a host that has fallen silent. So a connection is opened by a thread of its own,
which callers wait for only so long, and an open one is kept alive: a host that does not answer loses it, and
every call on it ends. Whoever has to do with one host never waits for another, but for that once.

libvirt's events wake `check` early, and are never the truth. libvirt has one event loop for the whole
process, which also keeps connections alive: if its thread ends, the next call starts another.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from forewarn.core.basic_types import HostName, MachineId
from forewarn.core.model.host import Host
from forewarn.core.time_formats import format_span
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import NoLibvirtAnswer, is_alive, load
from forewarn.drivers.libvirt.options import LibvirtOptions

log = logging.getLogger(__name__)

# After the loop has broken, in seconds.
PAUSE = 1.0

_lock = threading.Lock()
_pause = threading.Event()  # never set
_loops: list[threading.Thread] = []  # the one there is, once there is one; guarded by the lock
# A host that has not answered so many questions whether it is there has lost its connection.
UNANSWERED = 3
# A thread that opens a connection and does not come back is left behind after so long; twice, each time.
LEFT_BEHIND = 60.0


def keep_running(libvirt: Any) -> None:
    """Have libvirt's event loop run; must come before the first connection."""
    with _lock:
        if not _loops:
            libvirt.virEventRegisterDefaultImpl()
        if not _loops or not _loops[0].is_alive():
            thread = threading.Thread(target=_run, args=(libvirt,), name="forewarn-libvirt", daemon=True)
            _loops[:] = [thread]
            thread.start()


def _run(libvirt: Any) -> None:
    while True:
        try:
            libvirt.virEventRunDefaultImpl()
        except Exception as error:  # noqa: BLE001 - every connection relies on this loop
            log.warning("libvirt's event loop has broken, and goes on: %s", error)
            _pause.wait(PAUSE)


def watch(libvirt: Any, connection: Any, wake: Callable[[MachineId], None]) -> list[int]:
    """Have the news of a connection's domains wake who waits for them; return what `stop_watching` takes."""

    def woken(_connection: Any, domain: Any, *_news: Any) -> None:
        try:
            wake(MachineId(domain.UUIDString()))
        except Exception:  # the loop is everybody's
            log.exception("news of a domain could not be passed on")

    callbacks: list[int] = []
    for event in (
        libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE,
        libvirt.VIR_DOMAIN_EVENT_ID_REBOOT,
        libvirt.VIR_DOMAIN_EVENT_ID_JOB_COMPLETED,
        libvirt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE,
    ):
        try:
            callbacks.append(connection.domainEventRegisterAny(None, event, woken, None))
        except libvirt.libvirtError as error:
            log.debug("libvirt does not tell of event %s: %s", event, error)
    return callbacks


def stop_watching(libvirt: Any, connection: Any, callbacks: Iterable[int]) -> None:
    """Have no more news passed on: so a connection ends with its last user, and is not kept by libvirt."""
    for callback in callbacks:
        # The other end may be gone: libvirt forgets its own part all the same.
        with suppress(libvirt.libvirtError):
            connection.domainEventDeregisterAny(callback)


@dataclass(frozen=True, slots=True)
class _Connection:
    """An open connection, and what it passes news on by."""

    of_library: Any
    callbacks: list[int]


@dataclass(eq=False, slots=True)
class _Opening:
    """One try to open a connection; whoever comes while it lasts waits for the same one."""

    began_at: float
    over: bool = False
    why: str = ""  # why it failed


@dataclass(eq=False, slots=True)
class _Line:
    """What is known of the connection to a host; those of calls that last have a line of their own.

    `news` guards the rest, and the openings of the line.
    """

    host: HostName
    uri: str
    watched: bool  # whether news of the host's domains are passed on
    news: threading.Condition = field(default_factory=threading.Condition)
    connection: _Connection | None = None
    opening: _Opening | None = None
    left_behind: int = 0
    given_up: bool = False  # its host has been declared anew


class Connections:
    """All connections of a driver."""

    def __init__(self, options: LibvirtOptions, *, wake: Callable[[MachineId], None]) -> None:
        self._options = options
        self._wake = wake
        self._lock = threading.Lock()
        self._lines: dict[tuple[HostName, bool], _Line] = {}  # guarded by the lock

    @cached_property
    def library(self) -> Any:
        """libvirt-python, loaded when it is first needed; UnusableDriver if it is not there."""
        return load()  # by any thread, and twice if two meet here: the second time changes nothing

    def get(self, host: Host) -> Hypervisor:
        """Return the libvirt of a host; NoLibvirtAnswer if it cannot be reached soon."""
        line = self._line(host, watched=True)
        with line.news:
            return Hypervisor(self.library, self._reached(line).of_library, host=line.host)

    def open_another(self, host: Host) -> Hypervisor:
        """Open a connection for one long call; NoLibvirtAnswer if it cannot be opened soon."""
        line = self._line(host, watched=False)
        with line.news:
            connection = self._reached(line)
            line.connection = None  # so nobody else is given it
            return Hypervisor(self.library, connection.of_library, host=line.host)

    def _line(self, host: Host, *, watched: bool) -> _Line:
        if not host.uri:
            raise NoLibvirtAnswer(
                f'{host.name} declares no uri: set one, as uri = "qemu+ssh://{host.name}/system"'
            )
        keep_running(self.library)
        with self._lock:
            known = self._lines.get((host.name, watched))
            if known is not None and known.uri == host.uri:
                return known
            line = self._lines[host.name, watched] = _Line(host.name, host.uri, watched)
        if known is not None:  # it has been declared anew, and its old libvirt may hang
            _in_a_thread(self._give_up, known)
        return line

    # With the line's lock held

    def _reached(self, line: _Line) -> _Connection:
        """Return the open connection, or wait for one, unless others have waited for the same one in vain."""
        limit = self._options.connect_for.total_seconds()
        until = time.monotonic() + limit
        if line.connection is not None and not is_alive(self.library, line.connection.of_library):
            self._drop(line.connection)
            line.connection = None
        while line.connection is None:
            opening = self._opening(line)
            left = min(until, opening.began_at + limit) - time.monotonic()
            if not _is_over(line, opening, within=left):
                span = format_span(self._options.connect_for)
                why = f"no answer within {span} ({line.uri})"
                raise NoLibvirtAnswer(f"{line.host} cannot be reached: {why}", host=line.host)
            if opening.why:
                raise NoLibvirtAnswer(f"{line.host} cannot be reached: {opening.why}", host=line.host)
        return line.connection

    def _opening(self, line: _Line) -> _Opening:
        """Return the try to open a connection that is under way, or begin one."""
        opening = line.opening
        if opening is not None and time.monotonic() - opening.began_at > LEFT_BEHIND * 2**line.left_behind:
            line.left_behind += 1
            opening = None
        if opening is None:
            opening = _Opening(time.monotonic())
            _in_a_thread(self._open, line, opening)  # which waits for the line's lock in the end
            line.opening = opening
        return opening

    # In a thread of its own

    def _open(self, line: _Line, opening: _Opening) -> None:
        connection = None
        try:
            connection = self._opened(line)
        except NoLibvirtAnswer as error:
            opening.why = str(error)
        except BaseException as error:
            opening.why = f"{type(error).__name__}: {error}"
            raise
        finally:
            with line.news:
                opening.over = True
                if line.opening is opening:
                    line.opening, line.left_behind = None, 0
                    if line.connection is None and not line.given_up:
                        line.connection, connection = connection, None
                line.news.notify_all()
            if connection is not None:  # it came too late for all who waited
                self._drop(connection)

    def _opened(self, line: _Line) -> _Connection:
        libvirt = self.library
        try:
            connection = libvirt.open(line.uri)
        except libvirt.libvirtError as error:
            raise NoLibvirtAnswer(f"{error} ({line.uri})", host=line.host) from error
        with suppress(libvirt.libvirtError):  # one that is not over a wire needs none
            connection.setKeepAlive(max(1, round(self._options.keepalive.total_seconds())), UNANSWERED)
        callbacks = watch(libvirt, connection, self._wake) if line.watched else []
        return _Connection(connection, callbacks)

    def _give_up(self, line: _Line) -> None:
        with line.news:
            line.given_up = True
            connection, line.connection = line.connection, None
        if connection is not None:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        """Let a connection end with its last user, who may still be at it."""
        stop_watching(self.library, connection.of_library, connection.callbacks)


def _is_over(line: _Line, opening: _Opening, *, within: float) -> bool:
    """Wait for the end of a try to open a connection; return whether it has come."""
    return within > 0 and line.news.wait_for(lambda: opening.over, within)


def _in_a_thread(work: Callable[..., None], line: _Line, *more: Any) -> None:
    name = f"forewarn-libvirt-{line.host}"
    threading.Thread(target=work, args=(line, *more), name=name, daemon=True).start()
