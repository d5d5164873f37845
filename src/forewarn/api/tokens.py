"""Tokens: who may do what. For operators."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import PageQuery, TokenBody
from forewarn.api.errors import documented
from forewarn.api.paths import Name, known_name, listed
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
from forewarn.core.access import Grant
from forewarn.core.words import ProjectName
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute, tags=["tokens"])


@router.get("/v1/tokens", summary="List tokens", response_model=shapes.Tokens, responses=documented())
async def list_tokens(page: Annotated[PageQuery, Query()], service: Service) -> JSONResponse:
    """List tokens, the oldest first, revoked ones too; their secrets are kept nowhere."""
    found, after = await service.run(lambda: service.tokens.list(after=page.after, limit=page.limit))
    return listed("tokens", found, after, operator.token)


@router.post(
    "/v1/tokens",
    summary="Make a token",
    status_code=201,
    response_model=shapes.NewToken,
    responses=documented(409, 413),
)
async def create_token(body: TokenBody, request: Request, service: Service, caller: Caller) -> JSONResponse:
    """Make a token, and show its secret this once; the first one must be an operator's."""
    wanted = Grant(
        name=body.name,
        role=body.role,
        project=None if body.project is None else ProjectName(body.project),
        life=None if body.expires_seconds is None else timedelta(seconds=body.expires_seconds),
    )
    token, secret = await service.run(lambda: service.tokens.create(wanted, by=caller))
    request.app.state.door.forget()
    return JSONResponse({"token": operator.token(token), "secret": secret}, status_code=201)


@router.post(
    "/v1/tokens/{name}/revoke",
    summary="Revoke a token",
    response_model=shapes.RevokedToken,
    responses=documented(404),
)
async def revoke_token(name: Name, request: Request, service: Service, caller: Caller) -> JSONResponse:
    """End a token: from now on nothing can be done with it; `warnings` say what that leaves behind."""
    name = known_name(name, "token")
    revoked = await service.run(lambda: service.tokens.revoke(name, by=caller))
    request.app.state.door.forget()
    return JSONResponse({"token": operator.token(revoked.token), "warnings": list(revoked.warnings)})
