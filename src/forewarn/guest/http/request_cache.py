"""Requests whose bytes are known: a poller sends the same ones every second."""

from collections import deque

from forewarn.core.words import MachineId
from forewarn.guest.requests.plan import Poll

# What an entry costs beside its bytes: the poll with its tags, and its place in two tables.
OVERHEAD = 512
# A client names the document that it has, seldom one more.
MOST_TAGS = 2


class RequestCache:
    """A table of whole polls by their bytes, with a bound on its memory and a share for each machine.

    It holds what is asked, never who asks or what is answered: those are looked up for each request. A
    machine that has more to teach than its share takes the place of what it taught before, of nobody else.
    """

    __slots__ = ("_capacity", "_longest", "_polls", "_share", "_taught", "_teachers", "get", "size")

    def __init__(self, *, capacity: int, longest: int, share: int) -> None:
        self._capacity = capacity  # in bytes
        self._longest = longest
        self._share = share
        self._polls: dict[bytes, Poll] = {}
        self._teachers: dict[bytes, MachineId] = {}
        self._taught: dict[MachineId, deque[bytes]] = {}
        self.size = 0  # bytes
        self.get = self._polls.get  # no further call between a request and its answer

    def __len__(self) -> int:
        return len(self._polls)

    def learn(self, data: bytes, poll: Poll, *, by: MachineId) -> None:
        """Remember a machine's request if it is short and plain; the one known for longest makes room."""
        if not self._is_worth_it(data, poll):
            return
        taught = self._taught.setdefault(by, deque())
        if len(taught) >= self._share:
            self._forget(taught[0])
        self._taught[by] = taught
        taught.append(data)
        self._polls[data] = poll
        self._teachers[data] = by
        self.size += len(data) + OVERHEAD
        while self.size > self._capacity:
            self._forget(next(iter(self._polls)))

    def _is_worth_it(self, data: bytes, poll: Poll) -> bool:
        """Return whether a request is new, short and of the kind that is answered at once."""
        plain = poll.wait is None and len(poll.match) <= MOST_TAGS
        return plain and len(data) <= self._longest and data not in self._polls

    def _forget(self, data: bytes) -> None:
        """Drop a request; it is the first that its teacher has taught."""
        del self._polls[data]
        teacher = self._teachers.pop(data)
        taught = self._taught[teacher]
        taught.popleft()
        if not taught:
            del self._taught[teacher]
        self.size -= len(data) + OVERHEAD
