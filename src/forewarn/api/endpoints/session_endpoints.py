"""Sessions: browsers sign in with a token once, and are known by a cookie afterwards."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from forewarn.api.authentication import Authenticator
from forewarn.api.credentials import cookie_name, is_secure, session_secret
from forewarn.api.routing import ApiRouter
from forewarn.api.services import IdentifiedCaller, OwnTx, Service, Services
from forewarn.control.access.answering_once import Answered
from forewarn.core.access import Right, digest_of
from forewarn.core.session_cookies import Identified, csrf_of
from forewarn.store.batch import Transaction
from forewarn.wire.answers.access_answers import BegunSessionAnswer, SessionAnswer
from forewarn.wire.answers.coding import read_body, write_body

router = ApiRouter("session")

# A browser that goes back, or a proxy, must not show one person's session to another.
_NOT_KEPT = {"Cache-Control": "no-store"}


def _send_uncached(_: Request, answered: Answered) -> Response:
    return Response(answered.body, answered.status, headers=_NOT_KEPT, media_type=JSONResponse.media_type)


def _send_cookie(request: Request, answered: Answered) -> Response:
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


def _send_no_cookie(request: Request, answered: Answered) -> Response:
    response = _send_uncached(request, answered)
    response.delete_cookie(
        cookie_name(request.scope), secure=is_secure(request.scope), httponly=True, samesite="strict"
    )
    return response


@router.call("GET /v1/session", "Show the session", right=Right.SEE, sends=_send_uncached)
async def show_session(identified: IdentifiedCaller) -> SessionAnswer:
    """Show who is signed in, until when, and the `csrf` that calls which change something must send.

    Where there is no session, because the call has a token or the server has none at all, `csrf` and
    `expires_at` are null.
    """
    return _shown(identified)


def _check_open(services: Services, tx: Transaction, body: Mapping[str, Any]) -> None:
    services.sessions.check_open(tx, read_body(BegunSessionAnswer, body).secret)


@router.call(
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


@router.call("DELETE /v1/session", "Sign out", right=Right.SEE, errors=(404,), sends=_send_no_cookie)
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
