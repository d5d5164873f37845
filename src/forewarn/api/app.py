"""The app: all endpoints behind the guards, with errors of one form."""

import json
from functools import cache

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forewarn.api import errors, guards
from forewarn.api.authentication import Authenticator
from forewarn.api.endpoints import (
    calendar_endpoints,
    clock_endpoints,
    driver_endpoints,
    event_endpoints,
    fleet_endpoints,
    group_endpoints,
    history_endpoints,
    hold_endpoints,
    host_endpoints,
    import_endpoints,
    machine_endpoints,
    order_endpoints,
    overview_endpoints,
    probe_endpoints,
    project_endpoints,
    promise_endpoints,
    put_endpoints,
    rehearsal_endpoints,
    rollout_endpoints,
    session_endpoints,
    stream_endpoints,
    token_endpoints,
    webhook_endpoints,
)
from forewarn.api.limits import Bodies, CallerTable, Refusals
from forewarn.api.probe_log import ProbeLog
from forewarn.api.services import ApiSettings, Services
from forewarn.durations import Durations

PARTS = (
    *(machine_endpoints, group_endpoints, host_endpoints, driver_endpoints, project_endpoints),
    *(rehearsal_endpoints, order_endpoints, rollout_endpoints, event_endpoints, hold_endpoints),
    *(calendar_endpoints, history_endpoints, promise_endpoints, stream_endpoints, webhook_endpoints),
    *(fleet_endpoints, overview_endpoints, import_endpoints, put_endpoints),
    *(clock_endpoints, token_endpoints, session_endpoints, probe_endpoints),
)
ENDPOINTS = tuple(route for part in PARTS for route in part.router.routes)


def create_app(services: Services, settings: ApiSettings | None = None) -> Starlette:
    """Make the operator API: an ASGI app that any server can serve."""
    settings = settings or ApiSettings()
    authenticator = Authenticator(services.sessions, run=services.run_read, now=services.timekeeper.now)
    refusals = Refusals()
    app = Starlette(
        routes=(*ENDPOINTS, DOCUMENT),
        middleware=guards.guards(
            names=settings.names,
            origins=settings.origins,
            authenticator=authenticator,
            callers=CallerTable(settings.limits, refusals),
            bodies=Bodies(settings.bodies, refusals),
        ),
        exception_handlers=errors.HANDLERS,
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
