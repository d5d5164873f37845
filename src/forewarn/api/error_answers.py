"""Errors as answers: every kind of them becomes `{"error": {"code", "message"}}` here and nowhere else."""

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
    Unauthenticated,
    Conflict,
    ForewarnError,
    Invalid,
    LimitReached,
    NotFound,
    Refused,
    Unavailable,
    Uncertain,
)
from forewarn.wire.answers.coding import write_body
from forewarn.wire.answers.service_answers import ErrorAnswer

log = logging.getLogger(__name__)

# A store that is full or away seldom comes back sooner; a limit is passed when orders have started.
RETRY_UNAVAILABLE = 5
RETRY_LIMIT = 60


class AlreadyExists(Conflict):
    """A PUT that was to add something names what exists."""


class ChangedMeanwhile(Conflict):
    """A PUT is based on a declaration that another caller has changed meanwhile."""


class ProbeFailed(Unavailable):
    """What a probe was asked for, and says: whoever answers it logs it when it changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorKind:
    """How one kind of error is answered, and whether each answer is logged."""

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


_DOCUMENTED = {
    400: "The request is wrong; the message names the field.",
    401: "The request has no token that is good.",
    403: "The token is not enough for this, or the request comes from a web page of another origin.",
    404: "What the request names does not exist.",
    409: "Not in the present state of what the request names; the message says which.",
    413: "The body is larger than 1 MiB; a fleet's, than 64 MiB.",
    429: "A limit is reached; try again after the seconds of `Retry-After`.",
    503: "Nothing can be saved now, and nothing has changed; try again later. With the code `Uncertain` it "
    "may still happen: repeat it with the same Idempotency-Key.",
    "default": "Any other error, in the same form.",
}


_SCHEMA = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}


def documented(*statuses: int) -> dict[str, dict[str, Any]]:
    """Describe the errors an endpoint may answer with."""
    wanted: tuple[int | str, ...] = (400, 401, 403, *statuses, 429, 503, "default")
    return {str(each): {"description": _DOCUMENTED[each], "content": _SCHEMA} for each in wanted}


def answer(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Answer with an error."""
    body = write_body(ErrorAnswer(code=code, message=message))
    return JSONResponse(body, status_code=status, headers=dict(headers or {}))


def refusal(error: ForewarnError) -> JSONResponse:
    """Answer with an error of core, for those who stand before the app's own handlers."""
    kind = KINDS[type(error)]
    return answer(kind.status, kind.code, str(error), kind.headers)


def http_refusal(error: HTTPException) -> JSONResponse:
    """Answer with an error that has a status of its own."""
    return answer(
        error.status_code, CODES.get(error.status_code, "Invalid"), str(error.detail), error.headers
    )


def status_of(error: Exception) -> int:
    """Return the status that an error is answered with."""
    if isinstance(error, HTTPException):
        return error.status_code
    kind = KINDS.get(type(error)) if isinstance(error, ForewarnError) else None
    return HTTPStatus.INTERNAL_SERVER_ERROR if kind is None else kind.status


def _refusal(kind: ErrorKind) -> Any:
    async def handler(request: Request, error: ForewarnError) -> JSONResponse:
        if kind.is_logged:
            log.warning("%s %s could not be answered: %s", request.method, request.url.path, error)
        return answer(kind.status, kind.code, str(error), kind.headers)

    return handler


async def _http(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    path = request.url.path
    match error.status_code:
        case 404:
            return answer(404, "NotFound", f"there is nothing at {path}; /openapi.json lists what there is")
        case 405:
            allowed = ", ".join(_allowed(request))
            message = f"{request.method} is not possible at {path}, only {allowed}"
            return answer(405, "MethodNotAllowed", message, {"Allow": allowed})
        case _:
            return http_refusal(error)


def _allowed(request: Request) -> list[str]:
    """List the methods of all routes of a path; the router itself names only the first route's."""
    return [
        method
        for method in METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]


HANDLERS: Mapping[Any, Any] = {
    HTTPException: _http,
    **{error: _refusal(kind) for error, kind in KINDS.items()},
}
