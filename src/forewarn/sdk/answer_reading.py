"""What an answer means: a new document, nothing new, ask again later, or never."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from forewarn.sdk.documents import NEWEST_VERSION, Document, glimpse, parse_document
from forewarn.sdk.guest_errors import GuestError, Refused, Unavailable
from forewarn.sdk.transport.exchange import HttpAnswer

# The first request of a group may take two minutes, and so may the first after a day of silence.
FIRST_ANSWER_SECONDS = 150.0
FORGOTTEN_AFTER_SECONDS = 23 * 3600.0

# Of an eviction, the shortest there is: one may be announced in any pause.
SHORTEST_NOTICE_SECONDS = 30.0
# No pause takes more than a fifth of the notice that is left.
SHARES = 5
ANSWER_SECONDS = SHORTEST_NOTICE_SECONDS / SHARES

# Waiting between tries that fail: twice as long each time, or as the endpoint asks, within that fifth.
FIRST_BACKOFF_SECONDS = 1.0
# Endpoints take five requests a second, and no more.
SHORTEST_PAUSE_SECONDS = 0.2

# What forewarn and Azure say in an error is shorter.
ERROR_LENGTH = 300

_PERMANENT: Mapping[int, str] = {
    HTTPStatus.BAD_REQUEST: "the endpoint does not accept the request",
    HTTPStatus.UNAUTHORIZED: "what answers wants to know who asks: it is no metadata endpoint, or a proxy "
    "stands before one",
    HTTPStatus.FORBIDDEN: "the endpoint is closed to this program: look for a firewall rule in this machine "
    "that lets only some users reach it, and for a proxy before it",
    HTTPStatus.METHOD_NOT_ALLOWED: "what answers is no metadata endpoint: it knows no such request",
}
# A 404 that stays, by its words: Azure's and ours, and those of our other face.
VERSION_UNKNOWN = "invalid version"
LISTS_ITS_CALLS = "/openapi.json"
_NO_SUCH_VERSION = (
    "the endpoint does not offer this api-version: ask with another; /metadata/versions lists all"
)
_OTHER_FACE = (
    "what answers is no metadata endpoint but an API for operators: guests ask at another port of the "
    "server, 8169 unless its settings name another"
)
_PASSING: Mapping[int, str] = {
    HTTPStatus.NOT_FOUND: "the endpoint does not know this machine, or not yet",
    HTTPStatus.GONE: "the endpoint is being updated",
    HTTPStatus.TOO_MANY_REQUESTS: "this machine asks too often: who else polls?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document, and the tag by which the server knows it."""

    document: Document
    etag: str | None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The document is as it was."""


def read_poll(answer: HttpAnswer, *, version: str = NEWEST_VERSION) -> NewDocument | Unchanged:
    """Read the answer to a poll; raises what stands against it."""
    if answer.status == HTTPStatus.NOT_MODIFIED:
        return Unchanged()
    check(answer)
    return NewDocument(document=parse_document(answer.body, version=version), etag=_etag(answer))


def _etag(answer: HttpAnswer) -> str | None:
    """Read the tag, if it is one that can be sent back."""
    etag = answer.headers.get("etag", "")
    return etag if etag and etag.isascii() and etag.isprintable() else None


def check(answer: HttpAnswer) -> None:
    """Raise what an answer that is no success means."""
    if answer.status != HTTPStatus.OK:
        raise fault(answer)


def fault(answer: HttpAnswer) -> GuestError:
    """Return the error that an answer other than a success means, which says whether it passes."""
    own = _own_words(answer.body)
    quoted = f". It says: {own}" if own else ""
    if why := _PERMANENT.get(answer.status) or _never_found(answer, own):
        return Refused(f"{answer.status}: {why}{quoted}")
    why = _PASSING.get(answer.status)
    named = retry_after(answer.headers.get("retry-after"))
    asks = "" if named is None else f". It asks to be left alone for {named:g} s"
    return Unavailable(
        f"{answer.status}: {why or 'the endpoint cannot answer now'}{quoted}{asks}", retry_after=named
    )


def _never_found(answer: HttpAnswer, own: str) -> str | None:
    """Return why a 404 will stay one, if it will."""
    if answer.status != HTTPStatus.NOT_FOUND:
        return None
    if VERSION_UNKNOWN in own.lower():
        return _NO_SUCH_VERSION
    return _OTHER_FACE if LISTS_ITS_CALLS in own else None


def _own_words(body: bytes) -> str:
    """Find the endpoint's own words in the body of an error."""
    error = _error_in(body)
    if isinstance(error, dict):
        error = error.get("message")
    if isinstance(error, str):
        return glimpse(error.encode(errors="replace"), length=ERROR_LENGTH)
    return glimpse(body) if body.strip() else ""


def _error_in(body: bytes) -> object:
    """Read what a body names as its error; None if it names none."""
    try:
        return json.loads(body)["error"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


def retry_after(header: str | None) -> float | None:
    """Read after how many seconds to come again; dates are not believed, clocks differ."""
    if header is None or not (header.isascii() and header.strip().isdigit()):
        return None
    return float(header)


def backoff(failures: int, *, named: float | None = None, left: float | None = None) -> float:
    """Return how long to wait after so many failures in a row.

    As long as the endpoint asked for, or longer each time, but never more than a fifth of the notice that is
    left before an event, nor of that of an eviction which may have been announced meanwhile.
    """
    doubled: float = FIRST_BACKOFF_SECONDS * 2 ** min(max(failures - 1, 0), 16)
    return min(max(doubled, named or 0.0), longest_pause(left))


def longest_pause(left: float | None) -> float:
    """Return how long nothing may be asked, with so many seconds of notice left as far as is known."""
    notice = SHORTEST_NOTICE_SECONDS if left is None else min(left, SHORTEST_NOTICE_SECONDS)
    return max(SHORTEST_PAUSE_SECONDS, notice / SHARES)


def patience(last_answered: float | None, *, now: float) -> float:
    """Return how long an answer may take, given when the endpoint answered last."""
    if last_answered is None or now - last_answered > FORGOTTEN_AFTER_SECONDS:
        return FIRST_ANSWER_SECONDS
    return ANSWER_SECONDS
