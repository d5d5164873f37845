"""Tokens: who may do what. For operators; whoever has one may ask what it is."""

from datetime import timedelta

from starlette.requests import Request

from forewarn.api.declared import Body, declared, given, maybe
from forewarn.api.queries import PageQuery, TokenInPath
from forewarn.api.request_fields import NAME, PROJECT, one_of, seconds
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, CallerReading, KnownCaller, Service, WholeTx
from forewarn.core.access import LONGEST_LIFE, Grant, Right, Role
from forewarn.core.words import ProjectName
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.token_answers import CallerAnswer, NewTokenAnswer, RevokedTokenAnswer, TokenAnswer

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
