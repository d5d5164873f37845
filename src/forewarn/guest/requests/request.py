"""One request as it came over the wire, before its meaning is known."""

from dataclasses import dataclass, field
from itertools import islice

# Of a header that is a list; clients send one or two. What is beyond that is not looked at.
MOST_ITEMS = 32


@dataclass(slots=True)
class Request:
    """A request; its parts are filled in as they arrive."""

    method: bytes = b""
    target: bytes = b""
    fields: dict[bytes, list[bytes]] = field(default_factory=dict)  # by lower-case name
    body: bytes = b""
    http11: bool = True
    keep_alive: bool = True

    def all(self, name: bytes) -> list[bytes]:
        """Return every value of a header."""
        return self.fields.get(name, [])

    def listed(self, name: bytes) -> list[bytes]:
        """Return the first elements of a header that is a list, over all its lines."""
        items = (
            item.strip() for value in self.all(name) for item in value.split(b",", MOST_ITEMS)[:MOST_ITEMS]
        )
        return list(islice((item for item in items if item), MOST_ITEMS))


NOTHING = Request()  # in the place of one that has been answered, and must not be kept


@dataclass(frozen=True, slots=True)
class RequestFault:
    """What came cannot be read any further; the connection ends with the answer."""

    status: int
    text: str
    retry: bool = False  # it may be otherwise in a moment
