"""Tokens: who may do what; and the sessions of browsers, each begun with a token."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from forewarn.api.authentication import Authenticator, cookie_name, is_secure, session_secret
from forewarn.api.inputs import PageQuery, TokenInPath
from forewarn.api.request_fields import NAME, PROJECT, one_of, seconds
from forewarn.api.request_parts import Body, declared, given, maybe
from forewarn.api.routing import ApiRouter
from forewarn.api.services import (
    CallerName,
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
    BegunSessionAnswer,
    CallerAnswer,
    NewTokenAnswer,
    RevokedTokenAnswer,
    SessionAnswer,
    TokenAnswer,
)
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.coding import read_body, write_body

router = ApiRouter("tokens")


@declared
class TokenBody(Body):
    """Who is to be let in, and as what."""

    name: str = given(NAME, "What records call its user.")
    role: Role = given(one_of(Role))
    project: ProjectName | None = maybe(PROJECT, "A user's, or all that a viewer may see.")
    expires_seconds: float | None = maybe(
        seconds(exclusiveMinimum=0, maximum=LONGEST_LIFE.total_seconds()), "Left out: never."
    )


@router.call("GET /v1/tokens", "List tokens", right=Right.RUN)
def list_tokens(page: PageQuery, reads: CallerReading) -> Page[TokenAnswer]:
    """List tokens, the oldest first, revoked ones too; their secrets are kept nowhere."""
    found, after = reads.fleet.tokens.list(after=page.after, limit=page.limit)
    return Page(kind=TokenAnswer, items=[TokenAnswer.like(token) for token in found], next=after)


@router.call("GET /v1/caller", "Show who you are", right=Right.SEE)
async def show_caller(caller: KnownCaller) -> CallerAnswer:
    """Show whom the token of this call belongs to, and what it allows."""
    return CallerAnswer.of(caller)


@router.call("POST /v1/tokens", "Make a token", status=201, errors=(409, 413))
def create_token(
    body: TokenBody, request: Request, service: Service, tx: WholeTx, caller: CallerName
) -> NewTokenAnswer:
    """Make a token, and show its secret this once; the first one must be an operator's."""
    life = None if body.expires_seconds is None else timedelta(seconds=body.expires_seconds)
    wanted = body.asked(Grant, life=life)
    token, secret = service.fleet.tokens.create(tx, wanted, by=caller)
    tx.after_commit(request.app.state.authenticator.forget)
    return NewTokenAnswer(token=TokenAnswer.like(token), secret=secret)


@router.call("POST /v1/tokens/{name}/revoke", "Revoke a token", errors=(404,))
def revoke_token(
    name: TokenInPath, request: Request, service: Service, tx: WholeTx, caller: CallerName
) -> RevokedTokenAnswer:
    """End a token: from now on nothing can be done with it; `warnings` say what that leaves behind."""
    revoked = service.fleet.tokens.revoke(tx, name, by=caller)
    tx.after_commit(request.app.state.authenticator.forget)
    return RevokedTokenAnswer(token=TokenAnswer.like(revoked.token), warnings=tuple(revoked.warnings))


session_router = ApiRouter("session")

# A browser that goes back, or a proxy, must not show one person's session to another.
_NOT_KEPT = {"Cache-Control": "no-store"}


def _send_uncached(_: Request, answered: IdempotentResponse) -> Response:
    return Response(answered.body, answered.status, headers=_NOT_KEPT, media_type=JSONResponse.media_type)


def _send_cookie(request: Request, answered: IdempotentResponse) -> Response:
    """Send the secret as a cookie, which no script can read, and the rest as the body."""
    begun = read_body(BegunSessionAnswer, json.loads(answered.body))
    services: Services = request.app.state.services
    response = JSONResponse(write_body(begun.session), answered.status, headers=_NOT_KEPT)
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


@session_router.call("GET /v1/session", "Show the session", right=Right.SEE, sends=_send_uncached)
async def show_session(identified: IdentifiedCaller) -> SessionAnswer:
    """Show who is signed in, until when, and the `csrf` that calls which change something must send.

    Where there is no session, because the call has a token or the server has none at all, `csrf` and
    `expires_at` are null.
    """
    return _shown(identified)


def _check_open(services: Services, tx: Transaction, body: Mapping[str, Any]) -> None:
    services.sessions.check_open(tx, read_body(BegunSessionAnswer, body).secret)


@session_router.call(
    "POST /v1/session",
    "Sign in",
    right=Right.SEE,
    status=201,
    sent=SessionAnswer,
    sends=_send_cookie,
    check_repeated=_check_open,
)
def begin_session(
    request: Request, service: Service, tx: OwnTx, identified: IdentifiedCaller
) -> BegunSessionAnswer:
    """Begin a session of the token in the Authorization header, and set its cookie.

    The session of a cookie that came with the call ends. 409 on a server without tokens, and if this
    sign-in was answered before and its session has ended.
    """
    left = session_secret(request.scope)
    begun = service.sessions.sign_in(tx, identified, instead_of=digest_of(left) if left else None)
    authenticator: Authenticator = request.app.state.authenticator
    tx.after_commit(lambda: authenticator.forget(cut_off=begun.ended_others))
    shown = SessionAnswer.of(
        identified.caller, csrf=csrf_of(begun.secret), expires_at=begun.session.expires_at
    )
    return BegunSessionAnswer(session=shown, secret=begun.secret)


@session_router.call("DELETE /v1/session", "Sign out", right=Right.SEE, errors=(404,), sends=_send_no_cookie)
async def end_session(request: Request, service: Service, identified: IdentifiedCaller) -> SessionAnswer:
    """End the session of this call's cookie, at once and for all copies of it; answer with what it was."""
    await service.run_unscoped(lambda tx: service.sessions.sign_out(tx, identified))
    request.app.state.authenticator.forget(cut_off=True)
    return _shown(identified)


def _shown(identified: Identified) -> SessionAnswer:
    session = identified.session
    return SessionAnswer.of(
        identified.caller, csrf=identified.csrf, expires_at=None if session is None else session.expires_at
    )
