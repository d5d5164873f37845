"""Make sure that each request reaches nova at most once.

A repeated request may disturb a machine twice, and nova has no idempotency keys. So each request needs a
token. `begin` creates the token and sends nothing; forewarn saves the token; the following `check` spends it,
in the process that created it. A process that finds another process's token waits until any request of that
process must have arrived. Then it reads nova's records and creates a new token. Tokens are never in nova's
metadata, where tenants can write.
"""

import math
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable

from forewarn.control.driver import DriverTask, Failed
from forewarn.core.model.order import AttemptId
from forewarn.drivers.driver_setup import remember
from forewarn.drivers.openstack.decisions import UniqueRequest

# The limit of remembered steps and attempts. A forgotten attempt counts as another process's.
REMEMBERED = 10_000
# A request of a process that has died has arrived within this time or never will; in seconds.
ARRIVED_WITHIN = 15.0
CANCELLED = Failed("the attempt was cancelled")


class ServerAttempts:
    """The requests that this process has sent and may send; any thread may use it."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Take a clock of real time in seconds."""
        self._monotonic = monotonic
        self._lock = threading.Lock()  # guards the rest
        self._latest: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._cancelled: OrderedDict[AttemptId, None] = OrderedDict()
        self._spent: OrderedDict[str, set[UniqueRequest]] = OrderedDict()  # by token of this process
        # Since when no request of an attempt is in transit; infinity while one is.
        self._quiet_since: OrderedDict[AttemptId, float] = OrderedDict()

    def refusal(self, task: DriverTask) -> Failed | None:
        """Refuse an outdated or cancelled attempt."""
        step = (task.order, task.subject)
        with self._lock:
            latest = self._latest.get(step, 0)
            if task.attempt < latest:
                return Failed(f"attempt {task.attempt} is outdated: attempt {latest} of the step has begun")
            remember(self._latest, step, task.attempt, most=REMEMBERED)
            return CANCELLED if task.id in self._cancelled else None

    # Tokens

    def new_token(self) -> str:
        """Create a token; it must be saved before it is spent."""
        token = secrets.token_hex(8)
        with self._lock:
            remember(self._spent, token, set(), most=REMEMBERED)
        return token

    def may_send(self, task: DriverTask, token: str, request: UniqueRequest) -> bool:
        """Return whether a token is valid for a request."""
        with self._lock:
            return self._is_valid(task, token, request)

    def spend(self, task: DriverTask, token: str, request: UniqueRequest) -> bool:
        """Return whether the caller must send a request now; True for one of several callers."""
        with self._lock:
            if not self._is_valid(task, token, request):
                return False
            self._spent[token].add(request)
            remember(self._quiet_since, task.id, math.inf, most=REMEMBERED)
            return True

    def give_back(self, task: DriverTask, token: str, request: UniqueRequest) -> None:
        """Make a token valid again after nova refused the request."""
        with self._lock:
            self._spent.get(token, set()).discard(request)
            self._quiet_since.pop(task.id, None)

    def note_answered(self, task: DriverTask) -> None:
        """Record that a request was answered or has timed out."""
        with self._lock:
            if task.id in self._quiet_since:
                remember(self._quiet_since, task.id, self._monotonic(), most=REMEMBERED)

    def _is_valid(self, task: DriverTask, token: str, request: UniqueRequest) -> bool:
        spent = self._spent.get(token)
        return spent is not None and request not in spent and task.id not in self._cancelled

    # Requests in transit

    def quiet_since(self, task: DriverTask, token: str) -> float | None:
        """Return since when no request of an attempt is in transit; None if none was sent.

        Another process may have sent requests until this process first asked about the attempt.
        """
        with self._lock:
            if token not in self._spent and task.id not in self._quiet_since:
                remember(self._quiet_since, task.id, self._monotonic(), most=REMEMBERED)
            return self._quiet_since.get(task.id)

    def is_quiet(self, task: DriverTask, token: str) -> bool:
        """Return whether every request of an attempt has arrived by now or never will."""
        return self._has_arrived(self.quiet_since(task, token))

    def cancel(self, task: DriverTask, *, quiet_since: float | None = None) -> bool:
        """Allow no more requests of an attempt; return False if one is or was in transit meanwhile."""
        with self._lock:
            since = self._quiet_since.get(task.id)
            if since != quiet_since or not self._has_arrived(since):
                return False
            remember(self._cancelled, task.id, None, most=REMEMBERED)
            return True

    def _has_arrived(self, quiet_since: float | None) -> bool:
        return quiet_since is None or self._monotonic() - quiet_since >= ARRIVED_WITHIN
