"""Endpoints of tokens and browser sessions."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from forewarn.api.authentication import Authenticator, cookie_name, is_secure, session_secret
from forewarn.api.inputs import PageQuery, TokenInPath
from forewarn.api.request_fields import NAME, PROJECT, one_of, seconds
from forewarn.api.request_models import Body, field, nullable, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import (
    CallerReading,
    IdentifiedCaller,
    KnownCaller,
    OwnTx,
    Service,
    Services,
    WholeTx,
)
from forewarn.control.idempotent_calls import IdempotentResponse
from forewarn.core.access import LONGEST_LIFE, Grant, Right, Role, digest_of
from forewarn.core.basic_types import ProjectName
from forewarn.core.session_cookies import Identified, csrf_of
from forewarn.store.batch import Transaction
from forewarn.wire.answers.access_answers import (
    CallerAnswer,
    NewSessionAnswer,
    NewTokenAnswer,
    RevokedTokenAnswer,
    SessionAnswer,
    TokenAnswer,
)
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.coding import read_body, write_body

router = ApiRouter("tokens")


@request_model
class TokenBody(Body):
    """A new token."""

    name: str = field(NAME, "Unique name of the token. Records show it in `by`.")
    role: Role = field(one_of(Role), "Role of the token: `operator`, `user` or `viewer`.")
    project: ProjectName | None = nullable(
        PROJECT, "The only project that the token can access. Required for a user. Operators have none."
    )
    expires_seconds: float | None = nullable(
        seconds(exclusiveMinimum=0, maximum=LONGEST_LIFE.total_seconds()),
        "Lifetime of the token, in service time. Default: unlimited.",
    )


@router.call("GET /v1/tokens", "List tokens", right=Right.RUN)
def list_tokens(page: PageQuery, reads: CallerReading) -> Page[TokenAnswer]:
    """List tokens, oldest first, including revoked ones. The server does not store their secrets."""
    found, after = reads.fleet.tokens.list(after=page.after, limit=page.limit)
    return Page(kind=TokenAnswer, items=[TokenAnswer.like(token) for token in found], next=after)


@router.call("GET /v1/caller", "Show the caller", right=Right.SEE)
async def show_caller(caller: KnownCaller) -> CallerAnswer:
    """Return the name, role and rights of the token or session in this request."""
    return CallerAnswer.of(caller)


@router.call("POST /v1/tokens", "Create a token", status=201)
def create_token(body: TokenBody, request: Request, service: Service, tx: WholeTx) -> NewTokenAnswer:
    """Create a token. Only this answer shows its secret.

    The first token must be an operator's. From then on every request needs a token.
    """
    life = None if body.expires_seconds is None else timedelta(seconds=body.expires_seconds)
    wanted = body.build(Grant, life=life)
    token, secret = service.fleet.tokens.create(tx, wanted, by=service.by)
    tx.after_commit(request.app.state.authenticator.forget)
    return NewTokenAnswer(token=TokenAnswer.like(token), secret=secret)


@router.call("POST /v1/tokens/{name}/revoke", "Revoke a token")
def revoke_token(name: TokenInPath, request: Request, service: Service, tx: WholeTx) -> RevokedTokenAnswer:
    """Revoke a token at once. `warnings` names consequences to act on."""
    revoked = service.fleet.tokens.revoke(tx, name, by=service.by)
    tx.after_commit(request.app.state.authenticator.forget)
    return RevokedTokenAnswer(token=TokenAnswer.like(revoked.token), warnings=tuple(revoked.warnings))


# Neither a proxy nor the browser's history may show a session to another person.
_UNCACHED = {"Cache-Control": "no-store"}


def _send_uncached(_: Request, answered: IdempotentResponse) -> Response:
    return Response(answered.body, answered.status, headers=_UNCACHED, media_type=JSONResponse.media_type)


def _send_cookie(request: Request, answered: IdempotentResponse) -> Response:
    """Send the secret as a cookie that scripts cannot read, and the session as the body."""
    begun = read_body(NewSessionAnswer, json.loads(answered.body))
    services: Services = request.app.state.services
    response = JSONResponse(write_body(begun.session), answered.status, headers=_UNCACHED)
    response.set_cookie(
        cookie_name(request.scope),
        begun.secret,
        max_age=int(services.sessions.life.total_seconds()),
        secure=is_secure(request.scope),
        httponly=True,
        samesite="strict",
    )
    return response


def _send_no_cookie(request: Request, answered: IdempotentResponse) -> Response:
    response = _send_uncached(request, answered)
    response.delete_cookie(
        cookie_name(request.scope), secure=is_secure(request.scope), httponly=True, samesite="strict"
    )
    return response


@router.call("GET /v1/session", "Show the session", right=Right.SEE, respond=_send_uncached, tag="session")
async def show_session(identified: IdentifiedCaller) -> SessionAnswer:
    """Return the signed-in caller, the end of the session, and the CSRF token for changes.

    Without a session `csrf` and `expires_at` are null: the request has a token, or the server has none.
    """
    return _shown(identified)


def _check_open(services: Services, tx: Transaction, body: Mapping[str, Any]) -> None:
    services.sessions.check_open(tx, read_body(NewSessionAnswer, body).secret)


@router.call(
    "POST /v1/session",
    "Sign in",
    right=Right.SEE,
    status=201,
    answer=SessionAnswer,
    respond=_send_cookie,
    check_replayed=_check_open,
    tag="session",
)
def begin_session(
    request: Request, service: Service, tx: OwnTx, identified: IdentifiedCaller
) -> NewSessionAnswer:
    """Begin a session for the token in the Authorization header, and set the session cookie.

    The session of a cookie in the request ends. On a server without tokens, or if this is a repeated request
    whose session has ended: 409.
    """
    left = session_secret(request.scope)
    begun = service.sessions.sign_in(tx, identified, instead_of=digest_of(left) if left else None)
    authenticator: Authenticator = request.app.state.authenticator
    tx.after_commit(lambda: authenticator.forget(cut_off=begun.ended_others))
    shown = SessionAnswer.of(
        identified.caller, csrf=csrf_of(begun.secret), expires_at=begun.session.expires_at
    )
    return NewSessionAnswer(session=shown, secret=begun.secret)


@router.call("DELETE /v1/session", "Sign out", right=Right.SEE, respond=_send_no_cookie, tag="session")
def end_session(request: Request, service: Service, tx: OwnTx, identified: IdentifiedCaller) -> SessionAnswer:
    """End the session of the cookie in this request. Copies of the cookie become invalid too."""
    service.sessions.sign_out(tx, identified)
    authenticator: Authenticator = request.app.state.authenticator
    tx.after_commit(lambda: authenticator.forget(cut_off=True))
    return _shown(identified)


def _shown(identified: Identified) -> SessionAnswer:
    session = identified.session
    return SessionAnswer.of(
        identified.caller, csrf=identified.csrf, expires_at=None if session is None else session.expires_at
    )
