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
from datetime import timedelta
from typing import Any

from forewarn.core.model.host import Host
from forewarn.core.moments import format_span
from forewarn.core.words import HostName, MachineId
from forewarn.drivers.libvirt import waking
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import NoAnswer, load
from forewarn.drivers.libvirt.options import LibvirtOptions

# A host that has not answered so many questions whether it is there has lost its connection.
UNANSWERED = 3
# A thread that opens a connection and does not come back is left behind after so long; twice, each time.
LEFT_BEHIND = 60.0


@dataclass(eq=False, slots=True)
class _Opening:
    """One try to open a connection."""

    began_at: float
    over: bool = False


@dataclass(eq=False, slots=True)
class _Line:
    """What is known of the connection to a host."""

    host: HostName
    uri: str
    news: threading.Condition = field(default_factory=threading.Condition)
    connection: Any = None
    opening: _Opening | None = None
    left_behind: int = 0
    why: str = ""  # why the last try failed


class Connections:
    """All connections of a driver."""

    def __init__(self, options: LibvirtOptions, *, wake: Callable[[MachineId], None]) -> None:
        """Import the library; UnusableDriver if it is not there."""
        self.library = load()
        self._options = options
        self._wake = wake
        self._lock = threading.Lock()
        self._lines: dict[HostName, _Line] = {}

    def get(self, host: Host) -> Hypervisor:
        """Return the libvirt of a host; NoAnswer if it cannot be reached soon."""
        line = self._line(host)
        waking.keep_running(self.library)
        with line.news:
            if line.connection is None or not self._is_alive(line.connection):
                line.connection = None
                self._reach(line)
            return Hypervisor(self.library, line.connection, host=line.host)

    def open_another(self, host: Host) -> Hypervisor:
        """Open a connection of one's own, for a call that lasts; waits as long as it takes."""
        waking.keep_running(self.library)
        connection = self._opened(self._line(host), watched=False)
        return Hypervisor(self.library, connection, host=host.name)

    def _line(self, host: Host) -> _Line:
        if not host.uri:
            raise NoAnswer(f'{host.name} declares no uri: set one, as uri = "qemu+ssh://{host.name}/system"')
        with self._lock:
            line = self._lines.get(host.name)
            if line is None or line.uri != host.uri:  # it has been declared anew
                line = self._lines[host.name] = _Line(host.name, host.uri)
            return line

    # With the line's lock held

    def _reach(self, line: _Line) -> None:
        """Wait for a connection, unless others have waited for the same one in vain."""
        limit = self._options.connect_for.total_seconds()
        opening = line.opening
        if opening is not None and time.monotonic() - opening.began_at > LEFT_BEHIND * 2**line.left_behind:
            line.left_behind += 1
            opening = None
        if opening is None:
            line.why = ""
            opening = line.opening = _Opening(time.monotonic())
            name = f"forewarn-libvirt-{line.host}"
            threading.Thread(target=self._open, args=(line, opening), name=name, daemon=True).start()
        left = opening.began_at + limit - time.monotonic()
        over = left > 0 and line.news.wait_for(lambda: opening.over, left)
        if not over:
            span = format_span(timedelta(seconds=limit))
            raise NoAnswer(f"{line.host} cannot be reached: no answer within {span} ({line.uri})")
        if line.connection is None:
            raise NoAnswer(f"{line.host} cannot be reached: {line.why}")

    # In a thread of its own

    def _open(self, line: _Line, opening: _Opening) -> None:
        connection, why = None, ""
        try:
            connection = self._opened(line, watched=True)
        except NoAnswer as error:
            why = str(error)
        with line.news:
            opening.over = True
            if line.opening is opening:
                line.opening, line.left_behind = None, 0
                line.connection, line.why = connection, why
            line.news.notify_all()

    def _opened(self, line: _Line, *, watched: bool) -> Any:
        libvirt = self.library
        try:
            connection = libvirt.open(line.uri)
        except libvirt.libvirtError as error:
            raise NoAnswer(f"{error} ({line.uri})") from error
        with suppress(libvirt.libvirtError):  # one that is not over a wire needs none
            connection.setKeepAlive(max(1, round(self._options.keepalive.total_seconds())), UNANSWERED)
        if watched:
            waking.watch(libvirt, connection, self._wake)
        return connection

    def _is_alive(self, connection: Any) -> bool:
        try:
            return bool(connection.isAlive())
        except self.library.libvirtError:
            return False
