"""The app: all endpoints behind the guards, with errors of one form."""

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from forewarn.api import (
    calendar,
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
    projects,
    rehearsals,
    rollouts,
    stream,
    tokens,
    webhooks,
)
from forewarn.api.door import Door
from forewarn.api.services import ApiSettings, Services

ABOUT = """An open Scheduled Events service for any fleet of virtual machines.

Times are RFC 3339 with Z. Ids are upper-case GUIDs, accepted in any case. Lists are answered page by page:
send `next` back as `after`. Once there is a token, every call but the probes needs one. Errors of every
kind are `{"error": {"code": …, "message": …}}`."""


# For the OpenAPI document; the door reads the header itself.
BEARER = HTTPBearer(auto_error=False, description="A token, as `forewarn token create` shows it.")


PARTS = (
    *(machines, hosts, projects, rehearsals, orders, rollouts, events, holds),
    *(calendar, history, stream, webhooks, fleet, clock, tokens, probes),
)


def create_app(services: Services, settings: ApiSettings | None = None) -> FastAPI:
    """Make the operator API: an ASGI app that any server can serve."""
    settings = settings or ApiSettings()
    door = Door(services.tokens, run=services.run, now=services.timekeeper.now)
    app = FastAPI(
        title="forewarn",
        description=ABOUT,
        version="1",
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(BEARER)],
        middleware=guards.guards(names=settings.names, door=door, body_bytes=settings.body_bytes),
    )
    app.state.services = services
    app.state.settings = settings
    app.state.door = door
    app.state.meter = probes.Meter(services.guest_counters)
    errors.install(app)
    for part in PARTS:
        app.include_router(part.router)
    return app
