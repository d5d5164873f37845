"""Errors between a machine and its metadata endpoint: temporary and permanent ones."""

from collections.abc import Sequence

from forewarn.core.errors import ForewarnError


class GuestError(ForewarnError):
    """Base of the errors of the endpoint and its clients."""


class EndpointUnavailable(GuestError):
    """A temporary error, or no answer. The client retries by itself."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds that the endpoint asks for; the client may wait less


class Unreadable(EndpointUnavailable):
    """The answer is not a document. Nothing is known to have changed."""


class EndpointRefused(GuestError):
    """A permanent error; the message names what to change."""


class Closed(GuestError):
    """Another thread or task closed the client during a request."""


class NoEndpoint(GuestError):
    """Discovery found no endpoint; `looked` lists each place and what was there."""

    def __init__(self, message: str, *, looked: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.looked = tuple(looked)
