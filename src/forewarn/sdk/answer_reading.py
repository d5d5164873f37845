"""The meaning of an answer: a new document, no change, a temporary error, or a permanent one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from forewarn.sdk.documents import NEWEST_VERSION, Document, excerpt, parse_document
from forewarn.sdk.guest_errors import EndpointRefused, EndpointUnavailable
from forewarn.sdk.transport.exchange import HttpAnswer

# The first request of a group may take two minutes, and so may the first one after an idle day.
FIRST_ANSWER_SECONDS = 150.0
DISABLED_AFTER_SECONDS = 23 * 3600.0

# The notice of an eviction, which may be announced at any time.
SHORTEST_NOTICE_SECONDS = 30.0
# No pause takes more than a fifth of the remaining notice.
NOTICE_SHARES = 5
ANSWER_SECONDS = SHORTEST_NOTICE_SECONDS / NOTICE_SHARES

# The pause after a failure. It doubles each time, or is as long as the endpoint asks, within that fifth.
FIRST_BACKOFF_SECONDS = 1.0
# Endpoints accept five requests a second.
SHORTEST_PAUSE_SECONDS = 0.2

# The error messages of forewarn and Azure are shorter.
ERROR_LENGTH = 300

_PERMANENT: Mapping[int, str] = {
    HTTPStatus.BAD_REQUEST: "the endpoint does not accept the request",
    HTTPStatus.UNAUTHORIZED: "this server requires a login: it is a proxy, or not a metadata endpoint",
    HTTPStatus.FORBIDDEN: "the endpoint refuses this program: look for a firewall rule in this machine "
    "that allows only some users, and for a proxy in front of the endpoint",
    HTTPStatus.METHOD_NOT_ALLOWED: "this server is not a metadata endpoint: it does not support the request",
}
# The texts of a permanent 404: of an unknown api-version (Azure and forewarn), and of the operator API.
VERSION_UNKNOWN = "invalid version"
OPERATOR_API = "/openapi.json"
_NO_SUCH_VERSION = (
    "the endpoint does not support this api-version; /metadata/versions lists the supported ones"
)
_WRONG_PORT = (
    "this is the operator API, not a metadata endpoint: guests use another port of the server, "
    "by default 8169"
)
_TEMPORARY: Mapping[int, str] = {
    HTTPStatus.NOT_FOUND: "the endpoint does not know this machine (yet)",
    HTTPStatus.GONE: "the endpoint is being updated",
    HTTPStatus.TOO_MANY_REQUESTS: "this machine sends too many requests: does another program poll too?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document and its ETag."""

    document: Document
    etag: str | None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The document has not changed."""


def read_poll(answer: HttpAnswer, *, version: str = NEWEST_VERSION) -> NewDocument | Unchanged:
    """Read the answer to a poll, or raise its error."""
    if answer.status == HTTPStatus.NOT_MODIFIED:
        return Unchanged()
    check(answer)
    return NewDocument(document=parse_document(answer.body, version=version), etag=_etag(answer))


def _etag(answer: HttpAnswer) -> str | None:
    """Read the ETag, if a request can repeat it."""
    etag = answer.headers.get("etag", "")
    return etag if etag and etag.isascii() and etag.isprintable() else None


def check(answer: HttpAnswer) -> None:
    """Raise the error of an answer, unless its status is 200."""
    if answer.status == HTTPStatus.OK:
        return
    message = _error_message(answer.body)
    quoted = f". Its message: {message}" if message else ""
    if why := _PERMANENT.get(answer.status) or _permanent_404(answer, message):
        raise EndpointRefused(f"{answer.status}: {why}{quoted}")
    why = _TEMPORARY.get(answer.status, "the endpoint cannot answer now")
    # A number of seconds only: a date would depend on the clocks of both sides.
    header = answer.headers.get("retry-after", "")
    seconds = float(header) if header.isascii() and header.strip().isdigit() else None
    pause = "" if seconds is None else f". It asks for a pause of {seconds:g} s"
    raise EndpointUnavailable(f"{answer.status}: {why}{quoted}{pause}", retry_after=seconds)


def _permanent_404(answer: HttpAnswer, message: str) -> str | None:
    if answer.status != HTTPStatus.NOT_FOUND:
        return None
    if VERSION_UNKNOWN in message.lower():
        return _NO_SUCH_VERSION
    return _WRONG_PORT if OPERATOR_API in message else None


def _error_message(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
    except (ValueError, RecursionError, KeyError, TypeError):
        error = None
    if isinstance(error, dict):
        error = error.get("message")
    if isinstance(error, str):
        return excerpt(error.encode(errors="replace"), length=ERROR_LENGTH)
    return excerpt(body) if body.strip() else ""


def backoff(failures: int, *, named: float | None = None, left: float | None = None) -> float:
    """Return the pause after a number of failures in a row.

    It doubles each time, or is as long as the endpoint asked for (`named`). It never exceeds a fifth of the
    notice that is left, or of the notice of an eviction, which may have been announced meanwhile.
    """
    doubled: float = FIRST_BACKOFF_SECONDS * 2 ** min(max(failures - 1, 0), 16)
    return min(max(doubled, named or 0.0), longest_pause(left))


def longest_pause(left: float | None) -> float:
    """Return the longest pause between requests, given the seconds of notice that are left."""
    notice = SHORTEST_NOTICE_SECONDS if left is None else min(left, SHORTEST_NOTICE_SECONDS)
    return max(SHORTEST_PAUSE_SECONDS, notice / NOTICE_SHARES)


def answer_timeout(last_answered: float | None, *, now: float) -> float:
    """Return the timeout of an answer, given when the endpoint last answered."""
    if last_answered is None or now - last_answered > DISABLED_AFTER_SECONDS:
        return FIRST_ANSWER_SECONDS
    return ANSWER_SECONDS
