"""Requests whose bytes are known: a poller sends the same ones every second."""

from forewarn.guest.requests.plan import Poll


class RequestCache:
    """A bounded table of whole polls, by their bytes.

    It holds what is asked, never who asks or what is answered: those are looked up for each request.
    """

    __slots__ = ("_capacity", "_longest", "_polls", "get")

    def __init__(self, *, capacity: int, longest: int) -> None:
        self._capacity = capacity
        self._longest = longest
        self._polls: dict[bytes, Poll] = {}
        self.get = self._polls.get  # no further call between a request and its answer

    def __len__(self) -> int:
        return len(self._polls)

    def learn(self, data: bytes, poll: Poll) -> None:
        """Remember a request; the one known for longest makes room."""
        if len(data) > self._longest or data in self._polls:
            return
        if len(self._polls) >= self._capacity:
            del self._polls[next(iter(self._polls))]
        self._polls[data] = poll
