"""What can go wrong between a machine and its metadata endpoint: what passes, and what stays."""

from collections.abc import Sequence

from forewarn.core.errors import ForewarnError


class GuestError(ForewarnError):
    """Anything that keeps a machine from its events."""


class Unavailable(GuestError):
    """It may pass: there is no answer, or none that helps now. Ask again, as the client does by itself."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds, as the endpoint named them: the client may wait for less


class Unreadable(Unavailable):
    """The answer is no document. Nothing is known to have changed."""


class Refused(GuestError):
    """Asking again will not help before something is changed; the message says what."""


class Closed(GuestError):
    """The client was closed, from another thread or task, while it was asking."""


class NoEndpoint(GuestError):
    """No endpoint was found in this machine; `looked` says where, and what was there."""

    def __init__(self, message: str, *, looked: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.looked = tuple(looked)
