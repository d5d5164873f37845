"""The operator API as an ASGI app: all endpoints, the middleware and the error handlers."""

import json
from functools import cache

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forewarn.api import error_answers, middleware
from forewarn.api.audit import AuditMiddleware
from forewarn.api.authentication import Authenticator
from forewarn.api.endpoints import (
    clock_endpoints,
    event_endpoints,
    fleet_endpoints,
    history_endpoints,
    hold_endpoints,
    host_endpoints,
    machine_endpoints,
    order_endpoints,
    overview_endpoints,
    probe_endpoints,
    project_endpoints,
    rehearsal_endpoints,
    rollout_endpoints,
    stream_endpoints,
    token_endpoints,
    webhook_endpoints,
)
from forewarn.api.endpoints.probe_endpoints import ProbeLog
from forewarn.api.limits import BodyBudget, CallerTable, CallRefusals
from forewarn.api.services import ApiSettings, Services
from forewarn.durations import Durations

# In the order of the OpenAPI document.
MODULES = (
    machine_endpoints,
    project_endpoints,
    host_endpoints,
    rehearsal_endpoints,
    order_endpoints,
    rollout_endpoints,
    event_endpoints,
    hold_endpoints,
    history_endpoints,
    stream_endpoints,
    webhook_endpoints,
    fleet_endpoints,
    overview_endpoints,
    clock_endpoints,
    token_endpoints,
    probe_endpoints,
)
ENDPOINTS = tuple(route for module in MODULES for route in module.router.routes)


def create_app(services: Services, settings: ApiSettings | None = None) -> Starlette:
    """Create the operator API: an ASGI app."""
    settings = settings or ApiSettings()
    authenticator = Authenticator(services.sessions, run=services.run_read, now=services.timekeeper.now)
    refusals = CallRefusals()
    callers = CallerTable(settings.limits, refusals)
    app = Starlette(
        routes=(*ENDPOINTS, Route("/openapi.json", _show_document)),
        middleware=[
            *middleware.address_middleware(names=settings.names, origins=settings.origins),
            Middleware(middleware.AuthenticationMiddleware, authenticator=authenticator, callers=callers),
            Middleware(middleware.LimitMiddleware, callers=callers),
            Middleware(AuditMiddleware),
            Middleware(middleware.CsrfMiddleware),
            Middleware(middleware.BodySizeMiddleware, budget=BodyBudget(settings.bodies, refusals)),
        ],
        exception_handlers=error_answers.HANDLERS,
    )
    app.router.redirect_slashes = False
    app.state.services = services
    app.state.settings = settings
    app.state.authenticator = authenticator
    app.state.refusals = refusals
    app.state.durations = Durations()
    app.state.probe_log = ProbeLog()
    return app


async def _show_document(_: Request) -> Response:
    return Response(_document(), media_type="application/json")


@cache
def _document() -> bytes:
    from forewarn.api.openapi import document  # the server does not need it to start

    return json.dumps(document(ENDPOINTS), ensure_ascii=False, separators=(",", ":")).encode()
