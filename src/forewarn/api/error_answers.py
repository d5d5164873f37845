"""Error responses: the only place where errors become `{"error": {"code", "message"}}`."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Match

from forewarn.core.errors import (
    Conflict,
    ForewarnError,
    Invalid,
    LimitReached,
    NotFound,
    Refused,
    Unauthenticated,
    Unavailable,
    Uncertain,
)
from forewarn.wire.answers.coding import write_body
from forewarn.wire.answers.service_answers import ErrorAnswer

log = logging.getLogger(__name__)

# A full or unreachable store seldom recovers sooner. A limit is free again when orders have started.
RETRY_UNAVAILABLE = 5
RETRY_LIMIT = 60


class AlreadyExists(Conflict):
    """A PUT should create a resource that exists."""


class ChangedMeanwhile(Conflict):
    """A PUT is based on an outdated declaration."""


class ProbeFailed(Unavailable):
    """A probe found a problem. The probe logs it, but only when its result changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorKind:
    """The response to one kind of error."""

    status: int
    code: str
    headers: Mapping[str, str] | None = None
    is_logged: bool = False


_RETRY_SOON = {"Retry-After": str(RETRY_UNAVAILABLE)}

KINDS: Mapping[type[ForewarnError], ErrorKind] = {
    Invalid: ErrorKind(status=400, code="Invalid"),
    Unauthenticated: ErrorKind(status=401, code="Unauthorized", headers={"WWW-Authenticate": "Bearer"}),
    Refused: ErrorKind(status=403, code="Forbidden"),
    NotFound: ErrorKind(status=404, code="NotFound"),
    Conflict: ErrorKind(status=409, code="Conflict"),
    AlreadyExists: ErrorKind(status=409, code="AlreadyExists"),
    ChangedMeanwhile: ErrorKind(status=409, code="Changed"),
    LimitReached: ErrorKind(status=429, code="LimitReached", headers={"Retry-After": str(RETRY_LIMIT)}),
    Unavailable: ErrorKind(status=503, code="Unavailable", headers=_RETRY_SOON, is_logged=True),
    Uncertain: ErrorKind(status=503, code="Uncertain", headers=_RETRY_SOON, is_logged=True),
    ProbeFailed: ErrorKind(status=503, code="Unavailable", headers=_RETRY_SOON),
}

CODES = {
    400: "Invalid",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    413: "TooLarge",
    429: "LimitReached",
    500: "Internal",
}

METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

_DOCUMENTED: Mapping[int | str, str] = {
    400: "The request is invalid. The message begins with the path of the wrong field.",
    401: "The request has no valid token or session.",
    403: "The role of the token does not allow this request, or a web page of another origin sent it.",
    404: "A resource that the request names does not exist.",
    409: "The resource is in a state that does not allow this request. The message names the state.",
    413: "The body is larger than 1 MiB, or 64 MiB for a fleet.",
    429: "A limit is reached. Try again after the number of seconds in `Retry-After`.",
    503: "The database cannot be read or written. With the code `Unavailable` nothing has changed. With "
    "`Uncertain` the request may still take effect: repeat it with the same Idempotency-Key.",
    "default": "Any other error, in the same form.",
}


def documented(*statuses: int) -> dict[str, dict[str, Any]]:
    """Return the OpenAPI responses for the errors of an endpoint."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
    wanted: tuple[int | str, ...] = (400, 401, 403, *statuses, 429, 503, "default")
    return {str(each): {"description": _DOCUMENTED[each], "content": content} for each in wanted}


def error_response(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an error response."""
    body = write_body(ErrorAnswer(code=code, message=message))
    return JSONResponse(body, status_code=status, headers=dict(headers or {}))


def error_kind(error: ForewarnError) -> ErrorKind:
    """Return the kind of an error. The nearest class of its hierarchy decides."""
    return next(KINDS[each] for each in type(error).__mro__ if each in KINDS)


def refusal(error: ForewarnError) -> JSONResponse:
    """Return the response to an error of `core`, for middleware: it runs outside the app's handlers."""
    kind = error_kind(error)
    return error_response(kind.status, kind.code, str(error), kind.headers)


def http_refusal(error: HTTPException) -> JSONResponse:
    """Return the response to an HTTP error."""
    code = CODES.get(error.status_code, "Invalid")
    return error_response(error.status_code, code, str(error.detail), error.headers)


def status_of(error: Exception) -> int:
    """Return the status of the response to an error."""
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, ForewarnError):
        return error_kind(error).status
    return HTTPStatus.INTERNAL_SERVER_ERROR


async def _refuse(request: Request, error: ForewarnError) -> JSONResponse:
    if error_kind(error).is_logged:
        log.warning("%s %s could not be answered: %s", request.method, request.url.path, error)
    return refusal(error)


async def _http(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    path = request.url.path
    match error.status_code:
        case 404:
            return error_response(404, "NotFound", f"no resource at {path}; /openapi.json lists all paths")
        case 405:
            allowed = ", ".join(_allowed(request))
            message = f"{request.method} is not allowed at {path}, only {allowed}"
            return error_response(405, "MethodNotAllowed", message, {"Allow": allowed})
        case _:
            return http_refusal(error)


def _allowed(request: Request) -> list[str]:
    """List the methods of all routes of a path. Starlette names only those of the first route."""
    return [
        method
        for method in METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]


HANDLERS: Mapping[Any, Any] = {HTTPException: _http, **dict.fromkeys(KINDS, _refuse)}
