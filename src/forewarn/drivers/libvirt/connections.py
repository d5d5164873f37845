"""Connections: one to each host, opened when it is first needed, and again when it is lost.

libvirt can wait for ever for a host that has fallen silent. So a connection is opened by a thread of its own,
which callers wait for only so long, and an open one is kept alive: a host that does not answer loses it, and
every call on it ends. Whoever has to do with one host never waits for another, but for that once.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from forewarn.core.model.host import Host
from forewarn.core.moments import format_span
from forewarn.core.words import HostName, MachineId
from forewarn.drivers.libvirt import waking
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import NoAnswer, is_alive, load
from forewarn.drivers.libvirt.options import LibvirtOptions

# A host that has not answered so many questions whether it is there has lost its connection.
UNANSWERED = 3
# A thread that opens a connection and does not come back is left behind after so long; twice, each time.
LEFT_BEHIND = 60.0


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
    """What is known of the connection to a host; those of calls that last have a line of their own."""

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
        self._lines: dict[tuple[HostName, bool], _Line] = {}

    @cached_property
    def library(self) -> Any:
        """libvirt-python, loaded when it is first needed; UnusableDriver if it is not there."""
        return load()

    def get(self, host: Host) -> Hypervisor:
        """Return the libvirt of a host; NoAnswer if it cannot be reached soon."""
        line = self._line(host, watched=True)
        with line.news:
            return Hypervisor(self.library, self._reached(line).of_library, host=line.host)

    def open_another(self, host: Host) -> Hypervisor:
        """Open a connection of one's own, for a call that lasts; NoAnswer if it cannot be opened soon."""
        line = self._line(host, watched=False)
        with line.news:
            connection = self._reached(line)
            line.connection = None  # so nobody else is given it
            return Hypervisor(self.library, connection.of_library, host=line.host)

    def _line(self, host: Host, *, watched: bool) -> _Line:
        if not host.uri:
            raise NoAnswer(f'{host.name} declares no uri: set one, as uri = "qemu+ssh://{host.name}/system"')
        waking.keep_running(self.library)
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
                raise NoAnswer(f"{line.host} cannot be reached: {why}", host=line.host)
            if opening.why:
                raise NoAnswer(f"{line.host} cannot be reached: {opening.why}", host=line.host)
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
        except NoAnswer as error:
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
            raise NoAnswer(f"{error} ({line.uri})", host=line.host) from error
        with suppress(libvirt.libvirtError):  # one that is not over a wire needs none
            connection.setKeepAlive(max(1, round(self._options.keepalive.total_seconds())), UNANSWERED)
        callbacks = waking.watch(libvirt, connection, self._wake) if line.watched else []
        return _Connection(connection, callbacks)

    def _give_up(self, line: _Line) -> None:
        with line.news:
            line.given_up = True
            connection, line.connection = line.connection, None
        if connection is not None:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        """Let a connection end with its last user, who may still be at it."""
        waking.stop_watching(self.library, connection.of_library, connection.callbacks)


def _is_over(line: _Line, opening: _Opening, *, within: float) -> bool:
    """Wait for the end of a try to open a connection; return whether it has come."""
    return within > 0 and line.news.wait_for(lambda: opening.over, within)


def _in_a_thread(work: Callable[..., None], line: _Line, *more: Any) -> None:
    name = f"forewarn-libvirt-{line.host}"
    threading.Thread(target=work, args=(line, *more), name=name, daemon=True).start()
