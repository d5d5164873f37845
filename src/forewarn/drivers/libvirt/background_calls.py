"""Long libvirt calls, each in a thread of its own: a migration, or a request to the guest agent.

The driver's own calls return soon. The result of a background call helps but is not needed: the state of the
domains shows how a step ended, also after a crash.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from forewarn.core.model.order import AttemptId
from forewarn.drivers.libvirt.domain_view import BackgroundCall
from forewarn.drivers.libvirt.library import LibvirtRefused, NoLibvirtAnswer

log = logging.getLogger(__name__)


class BackgroundCalls:
    """The last background call of each machine."""

    def __init__(self, *, ended: Callable[[str], None]) -> None:
        """Take a callback for the machine whose call has ended."""
        self._ended = ended
        self._lock = threading.Lock()
        self._calls: dict[str, tuple[AttemptId, BackgroundCall]] = {}  # by machine; guarded by the lock

    def of(self, attempt: AttemptId) -> BackgroundCall | None:
        """Return the call of an attempt, if there is one."""
        with self._lock:
            known, call = self._calls.get(attempt.subject, (None, None))
        return call if known == attempt else None

    def begin(self, attempt: AttemptId, work: Callable[[], None]) -> None:
        """Start a call."""
        name = f"forewarn-libvirt-{attempt.subject}"
        call = BackgroundCall(running=True)
        with self._lock:
            # The thread first: if it cannot start, there is no call.
            threading.Thread(target=self._run, args=(attempt, call, work), name=name, daemon=True).start()
            self._calls[attempt.subject] = attempt, call

    def forget(self, attempt: AttemptId) -> None:
        """Forget the call of an attempt."""
        with self._lock:
            if self._calls.get(attempt.subject, (None,))[0] == attempt:
                del self._calls[attempt.subject]

    def _run(self, attempt: AttemptId, call: BackgroundCall, work: Callable[[], None]) -> None:
        error = ""
        try:
            work()
        except LibvirtRefused as refused:
            error = str(refused)
        except NoLibvirtAnswer as unknown:  # the domains will show the result
            log.info("%s: %s", attempt.subject, unknown)
        except Exception as failure:
            log.exception("a libvirt call failed")
            error = f"{type(failure).__name__}: {failure}"
        if error:
            log.info("%s: %s", attempt.subject, error)
        with self._lock:
            current = self._calls.get(attempt.subject)
            if current is not None and current[1] is call:
                self._calls[attempt.subject] = attempt, replace(call, running=False, error=error)
        self._ended(attempt.subject)
