"""Answers: a status and all that follows the headers which every answer has."""

from collections.abc import Callable
from typing import NamedTuple

from forewarn.guest.requests.plan import Refusal
from forewarn.guest.requests.request import RequestFault
from forewarn.wire import azure

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
END_OF_HEAD = b"\r\n\r\n"

# The service may be able to in a moment; a poller comes back in a second anyway.
RETRY = b"Retry-After: 1\r\n"


class GuestAnswer(NamedTuple):
    """What is sent: the headers of its own, the empty line and the body follow the common headers."""

    status: int
    rest: bytes


APPROVED = GuestAnswer(200, f"Content-Type: {JSON}\r\nContent-Length: 0\r\n\r\n".encode())


def content(body: bytes, *, kind: str = JSON) -> GuestAnswer:
    """Answer with a body."""
    return GuestAnswer(200, f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def text_or_json(value: object) -> GuestAnswer:
    """Answer with a text as it is, and with anything else as JSON."""
    if isinstance(value, str):
        return content(value.encode(errors="replace"), kind=TEXT)
    return content(azure.compact(value))


def not_modified(etag: bytes) -> GuestAnswer:
    """Answer that the caller has the document already."""
    return GuestAnswer(304, b'ETag: "' + etag + b'"' + END_OF_HEAD)


def with_header(answer: GuestAnswer, line: bytes) -> GuestAnswer:
    """Add a header to an answer."""
    return GuestAnswer(answer.status, line + answer.rest)


def relabelled(answer: GuestAnswer, kind: str) -> GuestAnswer:
    """Call a document something else than JSON."""
    rest = answer.rest.replace(f"Content-Type: {JSON}".encode(), f"Content-Type: {kind}".encode(), 1)
    return GuestAnswer(answer.status, rest)


def without_body(answer: GuestAnswer) -> GuestAnswer:
    """Leave the body out, as for HEAD."""
    head, _, _ = answer.rest.partition(END_OF_HEAD)
    return GuestAnswer(answer.status, head + END_OF_HEAD)


class ErrorAnswers:
    """Makes error answers, each with an id by which it can be found again."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self.count = 0  # of error answers so far

    def error(self, status: int, body: bytes, headers: bytes = b"") -> GuestAnswer:
        """Answer with an error."""
        self.count += 1
        request_id = f"x-ms-request-id: {self._new_id().lower()}\r\n".encode()
        return with_header(GuestAnswer(status, content(body).rest), headers + request_id)

    def refusal(self, refusal: Refusal) -> GuestAnswer:
        """Answer a request that is turned down for what it is."""
        return self.error(refusal.status, refusal.body, refusal.headers)

    def fault(self, fault: RequestFault) -> GuestAnswer:
        """Answer what could not be read."""
        return self.error(fault.status, azure.error(fault.text), RETRY if fault.retry else b"")

    def invalid(self, why: str) -> GuestAnswer:
        """Answer an approval that is wrong."""
        return self.error(400, azure.error(f"Bad request. {why}"))

    def conflict(self, why: str) -> GuestAnswer:
        """Answer a wish that cannot be met as things are."""
        return self.error(409, azure.error(f"Conflict. {why}"))

    def not_found(self) -> GuestAnswer:
        """Answer a caller that is not known, with not a word more than for an unknown path."""
        return self.error(404, azure.NOT_FOUND)

    def too_many(self) -> GuestAnswer:
        """Answer a caller that asks too often."""
        return self.error(429, azure.error("Too many requests"), RETRY)

    def unavailable(self, why: str) -> GuestAnswer:
        """Answer what cannot be done now."""
        return self.error(503, azure.error(why), RETRY)

    def broken(self) -> GuestAnswer:
        """Answer when it is our own fault."""
        return self.error(500, azure.error("Internal error"))
