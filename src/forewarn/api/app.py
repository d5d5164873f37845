"""The app: all endpoints behind the guards, with errors of one form."""

from fastapi import Depends
from fastapi.security import HTTPBearer

from forewarn.api import errors, guards
from forewarn.api.authentication import Authenticator
from forewarn.api.endpoints import (
    calendar_endpoints,
    clock_endpoints,
    event_endpoints,
    fleet_endpoints,
    group_endpoints,
    history_endpoints,
    hold_endpoints,
    host_endpoints,
    machine_endpoints,
    order_endpoints,
    probe_endpoints,
    project_endpoints,
    rehearsal_endpoints,
    rollout_endpoints,
    stream_endpoints,
    token_endpoints,
    webhook_endpoints,
)
from forewarn.api.openapi import DocumentedApp
from forewarn.api.routing import ApiRoute
from forewarn.api.services import ApiSettings, Services

ABOUT = """An open Scheduled Events service for any fleet of virtual machines.

Times are RFC 3339 with Z. Ids are upper-case GUIDs, accepted in any case. Lists are answered page by page:
send `next` back as `after`. Once there is a token, every call but the probes needs one. Errors of every
kind are `{"error": {"code": …, "message": …}}`."""


# For the OpenAPI document; the authenticator reads the header itself.
BEARER = HTTPBearer(auto_error=False, description="A token, as `forewarn token create` shows it.")


PARTS = (
    *(machine_endpoints, group_endpoints, host_endpoints, project_endpoints, rehearsal_endpoints),
    *(order_endpoints, rollout_endpoints, event_endpoints, hold_endpoints, calendar_endpoints),
    *(history_endpoints, stream_endpoints, webhook_endpoints, fleet_endpoints, clock_endpoints),
    *(token_endpoints, probe_endpoints),
)
ENDPOINTS = tuple(route for part in PARTS for route in part.router.routes if isinstance(route, ApiRoute))


def create_app(services: Services, settings: ApiSettings | None = None) -> DocumentedApp:
    """Make the operator API: an ASGI app that any server can serve."""
    settings = settings or ApiSettings()
    authenticator = Authenticator(services.fleet.tokens, run=services.run, now=services.timekeeper.now)
    app = DocumentedApp(
        title="forewarn",
        description=ABOUT,
        version="1",
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(BEARER)],
        middleware=guards.guards(
            names=settings.names, authenticator=authenticator, body_bytes=settings.body_bytes
        ),
    )
    app.state.services = services
    app.state.settings = settings
    app.state.authenticator = authenticator
    errors.install(app)
    for part in PARTS:
        app.include_router(part.router)
    app.endpoints = ENDPOINTS
    return app
