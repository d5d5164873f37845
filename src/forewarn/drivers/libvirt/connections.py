"""Connections to the libvirt of hosts: one per host, opened on first use and again after it is lost.

libvirt may wait forever for a host that does not answer. So a thread of its own opens each connection, and
callers wait for a limited time. Keepalive closes the connection of a host that stops answering, and every
call on it ends. A call for one host never waits for another host, except for the first start of the library.

libvirt's events only make forewarn call `check` earlier. libvirt has one event loop per process, which also
sends the keepalive messages. If its thread ends, the next call starts another.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from forewarn.core.basic_types import HostName, MachineId
from forewarn.core.model.host import Host
from forewarn.core.time_formats import format_span
from forewarn.drivers.libvirt.hypervisor import Hypervisor
from forewarn.drivers.libvirt.library import NoLibvirtAnswer, is_alive, load
from forewarn.drivers.libvirt.options import LibvirtOptions

log = logging.getLogger(__name__)

# After an error of the event loop, in seconds.
PAUSE = 1.0

_lock = threading.Lock()
_pause = threading.Event()  # never set
_loops: list[threading.Thread] = []  # the event loop's thread, once it runs; guarded by the lock
# A host that leaves this many keepalive messages unanswered loses its connection.
UNANSWERED = 3
# A thread that hangs while it opens a connection is abandoned after this time, which doubles each time.
ABANDONED_AFTER = 60.0


def start_event_loop(libvirt: Any) -> None:
    """Start libvirt's event loop if it does not run; must come before the first connection."""
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
            log.warning("libvirt's event loop failed and continues: %s", error)
            _pause.wait(PAUSE)


def _subscribe(libvirt: Any, connection: Any, wake: Callable[[MachineId], None]) -> list[int]:
    """Call `wake` for every event of a connection's domains; return the callback ids."""

    def woken(_connection: Any, domain: Any, *_details: Any) -> None:
        try:
            wake(MachineId(domain.UUIDString()))
        except Exception:  # every connection shares the loop
            log.exception("cannot handle an event of a domain")

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
            log.debug("libvirt does not report event %s: %s", event, error)
    return callbacks


@dataclass(frozen=True, slots=True)
class _OpenConnection:
    """An open connection with its event callbacks."""

    of_library: Any
    callbacks: list[int]


@dataclass(eq=False, slots=True)
class _Opening:
    """An attempt to open a connection; concurrent callers share it."""

    began_at: float
    over: bool = False
    why: str = ""  # why it failed


@dataclass(eq=False, slots=True)
class _HostState:
    """The connection to a host, shared or for long calls; `news` guards the other fields and the openings."""

    host: HostName
    uri: str
    shared: bool  # the shared connection, which receives events; long calls have connections of their own
    news: threading.Condition = field(default_factory=threading.Condition)
    connection: _OpenConnection | None = None
    opening: _Opening | None = None
    abandoned: int = 0  # openings whose threads hang
    closed: bool = False  # the host was declared with another URI


class Connections:
    """All connections of a driver."""

    def __init__(self, options: LibvirtOptions, *, wake: Callable[[MachineId], None]) -> None:
        self._options = options
        self._wake = wake
        self._lock = threading.Lock()
        self._states: dict[tuple[HostName, bool], _HostState] = {}  # guarded by the lock

    @cached_property
    def library(self) -> Any:
        """libvirt-python, loaded on first use; raises UnusableDriver if it is missing."""
        return load()  # two threads may both load it, which is harmless

    def get(self, host: Host) -> Hypervisor:
        """Return the shared connection to a host; raise NoLibvirtAnswer if it cannot be opened soon."""
        state = self._state(host, shared=True)
        with state.news:
            return Hypervisor(self.library, self._connected(state).of_library, host=state.host)

    def open_another(self, host: Host) -> Hypervisor:
        """Open a connection for one long call; raise NoLibvirtAnswer if it cannot be opened soon."""
        state = self._state(host, shared=False)
        with state.news:
            connection = self._connected(state)
            state.connection = None  # only this caller uses it
            return Hypervisor(self.library, connection.of_library, host=state.host)

    def _state(self, host: Host, *, shared: bool) -> _HostState:
        if not host.uri:
            raise NoLibvirtAnswer(
                f'{host.name} declares no uri: set one, such as uri = "qemu+ssh://{host.name}/system"'
            )
        start_event_loop(self.library)
        with self._lock:
            known = self._states.get((host.name, shared))
            if known is not None and known.uri == host.uri:
                return known
            state = self._states[host.name, shared] = _HostState(host.name, host.uri, shared)
        if known is not None:  # the URI has changed, and the old libvirt may hang
            _in_a_thread(self._close, known)
        return state

    # With the lock of the host's state held

    def _connected(self, state: _HostState) -> _OpenConnection:
        """Return the open connection or wait for one; fail fast if others have waited long enough."""
        limit = self._options.connect_for.total_seconds()
        until = time.monotonic() + limit
        if state.connection is not None and not is_alive(self.library, state.connection.of_library):
            self._unsubscribe(state.connection)
            state.connection = None
        while state.connection is None:
            opening = self._opening(state)
            left = min(until, opening.began_at + limit) - time.monotonic()
            is_over = left > 0 and state.news.wait_for(partial(getattr, opening, "over"), left)
            why = opening.why
            if not is_over:
                why = f"no answer within {format_span(self._options.connect_for)} ({state.uri})"
            if why:
                raise NoLibvirtAnswer(f"{state.host} cannot be reached: {why}", host=state.host)
        return state.connection

    def _opening(self, state: _HostState) -> _Opening:
        """Return the current attempt to open a connection, or start one."""
        opening = state.opening
        patience = ABANDONED_AFTER * 2**state.abandoned
        if opening is not None and time.monotonic() - opening.began_at > patience:
            state.abandoned += 1
            opening = None
        if opening is None:
            opening = _Opening(time.monotonic())
            _in_a_thread(self._open, state, opening)  # the thread waits for the lock at its end
            state.opening = opening
        return opening

    # In a thread of its own

    def _open(self, state: _HostState, opening: _Opening) -> None:
        connection = None
        try:
            connection = self._opened(state)
        except NoLibvirtAnswer as error:
            opening.why = str(error)
        except BaseException as error:
            opening.why = f"{type(error).__name__}: {error}"
            raise
        finally:
            with state.news:
                opening.over = True
                if state.opening is opening:
                    state.opening, state.abandoned = None, 0
                    if state.connection is None and not state.closed:
                        state.connection, connection = connection, None
                state.news.notify_all()
            if connection is not None:  # too late for every caller
                self._unsubscribe(connection)

    def _opened(self, state: _HostState) -> _OpenConnection:
        libvirt = self.library
        try:
            connection = libvirt.open(state.uri)
        except libvirt.libvirtError as error:
            raise NoLibvirtAnswer(f"{error} ({state.uri})", host=state.host) from error
        with suppress(libvirt.libvirtError):  # local connections do not support keepalive
            connection.setKeepAlive(max(1, round(self._options.keepalive.total_seconds())), UNANSWERED)
        callbacks = _subscribe(libvirt, connection, self._wake) if state.shared else []
        return _OpenConnection(connection, callbacks)

    def _close(self, state: _HostState) -> None:
        with state.news:
            state.closed = True
            connection, state.connection = state.connection, None
        if connection is not None:
            self._unsubscribe(connection)

    def _unsubscribe(self, connection: _OpenConnection) -> None:
        """Remove the callbacks, so that libvirt closes the connection after its last use."""
        for callback in connection.callbacks:
            # If the host is gone, libvirt still removes the callback on this side.
            with suppress(self.library.libvirtError):
                connection.of_library.domainEventDeregisterAny(callback)


def _in_a_thread(work: Callable[..., None], state: _HostState, *more: Any) -> None:
    name = f"forewarn-libvirt-{state.host}"
    threading.Thread(target=work, args=(state, *more), name=name, daemon=True).start()
