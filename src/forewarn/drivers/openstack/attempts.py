"""Which attempts may have nova asked for something: each request at most once, by who was told to make it.

A request that is made twice may disturb a machine twice, and nova has no key by which it would know it again.
So each is made by a token. `begin` makes it and sends nothing; forewarn saves it; the `check` that comes with
it spends it, in the process that has made it and nowhere else. A process that finds the token of another one
waits until whatever that has sent must have arrived, sees what nova has written down, and only then makes a
new token. Nothing of this is in nova, where tenants write.
"""

import math
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable

from forewarn.control.driver import DriverTask, Failed
from forewarn.core.model.order import AttemptId
from forewarn.drivers.driver_setup import remember
from forewarn.drivers.openstack.decisions import Once

# Of so many steps it is remembered which attempt was the latest, and of so many attempts what was sent. What
# is forgotten is taken for another process's, and waited for.
REMEMBERED = 10_000
# A request that was cut off with whoever sent it has arrived by then, or never will; in seconds.
ARRIVED_WITHIN = 15.0
CALLED_OFF = Failed("it was called off")


class ServerAttempts:
    """What this process has sent, and may send; from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Take what tells real time, in seconds."""
        self._monotonic = monotonic
        self._lock = threading.Lock()  # guards the rest
        self._latest: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._called_off: OrderedDict[AttemptId, None] = OrderedDict()
        self._spent: OrderedDict[str, set[Once]] = OrderedDict()  # by the tokens that were made here
        # Since when nothing of an attempt is on its way; for ever from now while something is.
        self._quiet_since: OrderedDict[AttemptId, float] = OrderedDict()

    def refusal(self, task: DriverTask) -> Failed | None:
        """Refuse an attempt that is older than one that was seen, or that was called off."""
        step = (task.order, task.subject)
        with self._lock:
            latest = self._latest.get(step, 0)
            if task.attempt < latest:
                return Failed(f"attempt {latest} has been begun since")
            remember(self._latest, step, task.attempt, most=REMEMBERED)
            return CALLED_OFF if task.id in self._called_off else None

    # Tokens

    def new_token(self) -> str:
        """Make a token; it must be saved before it is spent."""
        token = secrets.token_hex(8)
        with self._lock:
            remember(self._spent, token, set(), most=REMEMBERED)
        return token

    def may_send(self, task: DriverTask, token: str, request: Once) -> bool:
        """Return whether a token is good for a request."""
        with self._lock:
            return self._is_good(task, token, request)

    def spend(self, task: DriverTask, token: str, request: Once) -> bool:
        """Return whether a request is to be sent now; of all who ask, one is told so."""
        with self._lock:
            if not self._is_good(task, token, request):
                return False
            self._spent[token].add(request)
            remember(self._quiet_since, task.id, math.inf, most=REMEMBERED)
            return True

    def give_back(self, task: DriverTask, token: str, request: Once) -> None:
        """Note that nova has refused a request: its token is good for it later."""
        with self._lock:
            self._spent.get(token, set()).discard(request)
            self._quiet_since.pop(task.id, None)

    def note_answered(self, task: DriverTask) -> None:
        """Note that a request has been answered, or that nobody waits for its answer any more."""
        with self._lock:
            if task.id in self._quiet_since:
                remember(self._quiet_since, task.id, self._monotonic(), most=REMEMBERED)

    def _is_good(self, task: DriverTask, token: str, request: Once) -> bool:
        spent = self._spent.get(token)
        return spent is not None and request not in spent and task.id not in self._called_off

    # What may be on its way

    def quiet_since(self, task: DriverTask, token: str) -> float | None:
        """Return since when nothing of an attempt is on its way; None: nothing was ever sent.

        What another process may have sent it may have sent until this one was first asked.
        """
        with self._lock:
            if token not in self._spent and task.id not in self._quiet_since:
                remember(self._quiet_since, task.id, self._monotonic(), most=REMEMBERED)
            return self._quiet_since.get(task.id)

    def is_quiet(self, task: DriverTask, token: str) -> bool:
        """Return whether what may have been sent of an attempt has arrived by now, or never will."""
        since = self.quiet_since(task, token)
        return since is None or self._monotonic() - since >= ARRIVED_WITHIN

    def call_off(self, task: DriverTask, *, quiet_since: float | None = None) -> bool:
        """Let nothing be sent of an attempt from now on; False: something may be on its way, or was since."""
        with self._lock:
            since = self._quiet_since.get(task.id)
            is_quiet = since is None or self._monotonic() - since >= ARRIVED_WITHIN
            if since != quiet_since or not is_quiet:
                return False
            remember(self._called_off, task.id, None, most=REMEMBERED)
            return True
