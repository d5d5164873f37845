"""Calls that last: a migration returns when it is over, and a guest agent is waited for.

Each runs in a thread of its own, so that the driver's calls return soon. What such a call says at its end is
worth knowing, and never needed: what became of a step is seen from the domains, as after a crash.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from forewarn.core.model.order import AttemptId
from forewarn.drivers.libvirt.library import Declined, NoAnswer
from forewarn.drivers.libvirt.sights import LongCall

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Call:
    attempt: AttemptId
    running: bool = True
    error: str = ""


class LongCalls:
    """The last call of each machine that lasts."""

    def __init__(self, *, ended: Callable[[str], None]) -> None:
        """Take who is told that the call of a machine has ended."""
        self._ended = ended
        self._lock = threading.Lock()
        self._calls: dict[str, _Call] = {}  # guarded, with what is in them, by the lock

    def of(self, attempt: AttemptId) -> LongCall | None:
        """Return how the call of an attempt is doing, if there is one."""
        with self._lock:
            call = self._calls.get(attempt.subject)
            if call is None or call.attempt != attempt:
                return None
            return LongCall(running=call.running, error=call.error)

    def begin(self, attempt: AttemptId, work: Callable[[], None]) -> None:
        """Begin a call."""
        call = _Call(attempt)
        name = f"forewarn-libvirt-{attempt.subject}"
        with self._lock:
            # First: a call without a thread would run forever.
            threading.Thread(target=self._run, args=(call, work), name=name, daemon=True).start()
            self._calls[attempt.subject] = call

    def forget(self, attempt: AttemptId) -> None:
        """Forget the call of an attempt that is over."""
        with self._lock:
            call = self._calls.get(attempt.subject)
            if call is not None and call.attempt == attempt:
                del self._calls[attempt.subject]

    def _run(self, call: _Call, work: Callable[[], None]) -> None:
        error = ""
        try:
            work()
        except Declined as said:
            error = str(said)
        except NoAnswer as unheard:  # what became of it is seen from the domains, once they can be asked
            log.info("%s: %s", call.attempt.subject, unheard)
        except Exception as broken:
            log.exception("a call of libvirt's broke")
            error = f"{type(broken).__name__}: {broken}"
        if error:
            log.info("%s: %s", call.attempt.subject, error)
        with self._lock:
            call.running, call.error = False, error
        self._ended(call.attempt.subject)
