"""libvirt's events: they wake `check` early, and are never the truth.

libvirt has one event loop for the whole process. It also keeps connections alive, so it is looked after: if
its thread ends, the next call starts another.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from forewarn.core.words import MachineId

log = logging.getLogger(__name__)

# After the loop has broken, in seconds.
PAUSE = 1.0

_lock = threading.Lock()
_pause = threading.Event()  # never set
_loops: list[threading.Thread] = []  # the one there is, once there is one


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
