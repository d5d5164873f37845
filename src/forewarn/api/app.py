"""The app: all endpoints behind the guards, with errors of one form."""

from fastapi import FastAPI

from forewarn.api import (
    clock,
    errors,
    events,
    fleet,
    guards,
    history,
    holds,
    hosts,
    machines,
    orders,
    probes,
    reports,
    rollouts,
)
from forewarn.api.services import ApiSettings, Services

ABOUT = """An open Scheduled Events service for any fleet of virtual machines.

Times are RFC 3339 with Z. Ids are upper-case GUIDs, accepted in any case. Lists are answered page by page:
send `next` back as `after`. Errors of every kind are `{"error": {"code": …, "message": …}}`."""


def create_app(services: Services, settings: ApiSettings | None = None) -> FastAPI:
    """Make the operator API: an ASGI app that any server can serve."""
    settings = settings or ApiSettings()
    app = FastAPI(
        title="forewarn",
        description=ABOUT,
        version="1",
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=guards.guards(names=settings.names, body_bytes=settings.body_bytes),
    )
    app.state.services = services
    app.state.meter = probes.Meter(services.guest_counters)
    errors.install(app)
    for part in (machines, hosts, orders, reports, rollouts, events, holds, history, fleet, clock, probes):
        app.include_router(part.router)
    return app
