"""The app: all endpoints behind the guards, with errors of one form."""

import json
from functools import cache

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forewarn.api import middleware
from forewarn.api import error_answers
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
from forewarn.api.limits import Bodies, CallerTable, CallRefusals
from forewarn.api.services import ApiSettings, Services
from forewarn.durations import Durations

# In the order in which the OpenAPI document shows them.
ROUTERS = (
    machine_endpoints.router,
    project_endpoints.group_router,
    host_endpoints.router,
    host_endpoints.driver_router,
    project_endpoints.router,
    rehearsal_endpoints.router,
    order_endpoints.router,
    rollout_endpoints.router,
    event_endpoints.router,
    hold_endpoints.router,
    history_endpoints.calendar_router,
    history_endpoints.router,
    history_endpoints.promise_router,
    stream_endpoints.router,
    webhook_endpoints.router,
    fleet_endpoints.router,
    overview_endpoints.router,
    fleet_endpoints.import_router,
    host_endpoints.declaration_router,
    project_endpoints.declaration_router,
    clock_endpoints.router,
    token_endpoints.router,
    token_endpoints.session_router,
    probe_endpoints.router,
)
ENDPOINTS = tuple(route for router in ROUTERS for route in router.routes)


def create_app(services: Services, settings: ApiSettings | None = None) -> Starlette:
    """Make the operator API: an ASGI app that any server can serve."""
    settings = settings or ApiSettings()
    authenticator = Authenticator(services.sessions, run=services.run_read, now=services.timekeeper.now)
    refusals = CallRefusals()
    app = Starlette(
        routes=(*ENDPOINTS, DOCUMENT),
        middleware=middleware.guards(
            names=settings.names,
            origins=settings.origins,
            authenticator=authenticator,
            callers=CallerTable(settings.limits, refusals),
            bodies=Bodies(settings.bodies, refusals),
        ),
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
    from forewarn.api.openapi import document  # loaded when it is asked for

    return json.dumps(document(ENDPOINTS), ensure_ascii=False, separators=(",", ":")).encode()


DOCUMENT = Route("/openapi.json", _show_document)
