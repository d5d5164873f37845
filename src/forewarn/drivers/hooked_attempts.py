"""What a server knows of attempts with hooks around them, besides their marks; none of it outlives it."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from forewarn.core.model.order import AttemptId
from forewarn.core.words import MachineId
from forewarn.drivers.machine_hook_marks import Part

# Attempts, and machines, of which something is known; those of attempts are forgotten when they end.
REMEMBERED = 10_000


@dataclass(slots=True)
class HookedAttempt:
    """What is known of an attempt; only the caller whose turn it is reads or changes it."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    to_begin: Part | None = None  # saved as under way by this server, and not begun yet
    begun: bool = False  # something of it was begun, for all that is known
    given_up: bool = False  # nothing more of it is begun but the hook after
    called_off: bool = False  # the driver does no more of it
    after: bool = False  # the hook after was begun, or may have been
    hook_mark: str = ""  # what the hook after left while the step was called off
    over: bool = False  # its end was answered, or seen to

    def takes_turn(self, part: Part) -> bool:
        """Return whether a part is to be begun now; the caller begins it then."""
        if self.to_begin is not part:
            return False
        self.to_begin = None
        is_next = not (part is Part.AFTER and self.after)
        self.after = self.after or part is Part.AFTER
        self.begun = True
        return is_next


class HookedAttempts:
    """All that is known, and the hooks after earlier attempts that may still run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: OrderedDict[AttemptId, HookedAttempt] = OrderedDict()
        self._ended: OrderedDict[AttemptId, None] = OrderedDict()
        self._left: OrderedDict[MachineId, Hashable] = OrderedDict()  # the hook after, by machine

    def __len__(self) -> int:
        return len(self._attempts)

    def __contains__(self, id_: AttemptId) -> bool:
        return id_ in self._attempts

    def known(self, id_: AttemptId) -> HookedAttempt:
        """Return what is known of an attempt, from now on."""
        with self._lock:
            known = self._attempts.setdefault(id_, HookedAttempt())
            self._attempts.move_to_end(id_)
            while len(self._attempts) > REMEMBERED:
                self._attempts.popitem(last=False)
        return known

    def end(self, id_: AttemptId) -> HookedAttempt | None:
        """Forget what was known of an attempt, and return it; of the attempt is kept that it has ended."""
        with self._lock:
            self._ended[id_] = None
            while len(self._ended) > REMEMBERED:
                self._ended.popitem(last=False)
            return self._attempts.pop(id_, None)

    def has_ended(self, id_: AttemptId) -> bool:
        """Return whether an attempt has ended: a call that was on its way must not begin anything."""
        return id_ in self._ended

    def leave(self, machine: MachineId, hook: Hashable) -> None:
        """Keep which hook may still run at a machine."""
        with self._lock:
            self._left[machine] = hook
            while len(self._left) > REMEMBERED:
                self._left.popitem(last=False)

    def left(self, machine: MachineId) -> Hashable | None:
        """Return the hook that may still run at a machine."""
        with self._lock:
            return self._left.get(machine)

    def settle(self, machine: MachineId) -> None:
        """Forget the hook that has ended."""
        with self._lock:
            self._left.pop(machine, None)
