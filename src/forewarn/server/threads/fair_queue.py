"""A queue that serves callers in turn, so that one caller with many items does not delay the others."""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)
T = TypeVar("T")


def _always(_item: object) -> bool:
    return True


class FairQueue(Generic[C, T]):
    """Items of callers; the items of one caller keep their order. It has no lock: its owner guards it."""

    def __init__(self) -> None:
        # No caller has an empty queue; the caller with the next turn comes first.
        self._waiting: OrderedDict[C, deque[T]] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether an item waits. Any thread may call this without the lock."""
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __contains__(self, caller: C) -> bool:
        """Whether a caller has an item in the queue."""
        return caller in self._waiting

    def callers(self) -> list[C]:
        """Return the callers with items, in the order of their turns."""
        return list(self._waiting)

    def of(self, caller: C) -> Collection[T]:
        """Return the items of a caller, oldest first."""
        return tuple(self._waiting.get(caller, ()))

    def put(self, caller: C, item: T) -> None:
        """Append an item to its caller's items; a new caller has the last turn."""
        self._waiting.setdefault(caller, deque()).append(item)

    def put_back(self, caller: C, item: T) -> None:
        """Return an unused item to the front of the queue."""
        self._waiting.setdefault(caller, deque()).appendleft(item)
        self._waiting.move_to_end(caller, last=False)

    def can_take(self, may: Callable[[T], bool]) -> bool:
        """Whether `take` would return an item."""
        return any(may(items[0]) for items in self._waiting.values())

    def take(self, may: Callable[[T], bool] = _always) -> T | None:
        """Take the first item of the next caller whose first item may be taken; that caller becomes last."""
        for caller, items in self._waiting.items():
            if may(items[0]):
                item = items.popleft()
                self._waiting.move_to_end(caller)
                if not items:
                    del self._waiting[caller]
                return item
        return None

    def withdraw(self, unwanted: Callable[[T], bool], *, caller: C | None = None) -> list[T]:
        """Remove items, of one caller or of all; return them."""
        withdrawn: list[T] = []
        for each in self.callers() if caller is None else [caller]:
            stay: deque[T] = deque()
            for item in self._waiting.get(each, ()):
                (withdrawn if unwanted(item) else stay).append(item)
            if stay:
                self._waiting[each] = stay
            else:
                self._waiting.pop(each, None)
        return withdrawn

    def clear(self) -> list[T]:
        """Remove all items; return them."""
        return self.withdraw(_always)
