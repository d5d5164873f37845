"""Which right each call needs: the whole list, and what holds for calls that are not in it."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from fastapi import Request, Response
from fastapi.routing import APIRoute

from forewarn.core.access import Right, check

Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]

_OWN = (
    "machines",
    "machines/{name}",
    "groups",
    "groups/{name}",
    "projects",
    "projects/{name}",
    "projects/{name}/rehearsal",
    "orders",
    "orders/{id}",
    "events",
    "events/{id}",
    "calendar.ics",
    "stream",
)
_USES = (
    *("machines/{name}/restart", "machines/{name}/redeploy"),
    *("machines/{name}/terminate", "machines/{name}/start"),
    *("orders/{id}/cancel", "orders/{id}/retry", "orders/{id}/abandon"),
    *("events/{id}/approve", "events/{id}/cancel"),
    "webhooks",
    "webhooks/{id}/test",
)
# Their addresses are often secrets: who may not keep any need not know those of others.
_WEBHOOKS = (
    ("GET", "/v1/webhooks"),
    ("GET", "/v1/webhooks/{id}"),
    ("DELETE", "/v1/webhooks/{id}"),
)

_REHEARSAL = (
    ("PUT", "/v1/projects/{name}/rehearsal"),
    ("DELETE", "/v1/projects/{name}/rehearsal"),
)

RIGHTS: Mapping[tuple[str, str], Right] = {
    **{("GET", f"/v1/{path}"): Right.SEE for path in (*_OWN, "history", "clock")},
    **{("POST", f"/v1/{path}"): Right.USE for path in _USES},
    **dict.fromkeys((*_WEBHOOKS, *_REHEARSAL), Right.USE),
    ("GET", "/v1/tokens"): Right.RUN,
}


def needed(method: str, path: str) -> Right:
    """Say which right a call needs.

    What nobody has thought of is not for the people of a project: it may show, or do, more than is theirs.
    """
    default = Right.SURVEY if method == "GET" else Right.RUN
    return RIGHTS.get((method, path), default)


class GuardedRoute(APIRoute):
    """An endpoint that refuses callers who have no right to it, before anything of their body is read."""

    def get_route_handler(self) -> Handler:
        """Make what answers."""
        answer = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            # Those who need no token have no caller.
            caller = getattr(request.state, "caller", None)
            if caller is not None:
                check(caller, needed(request.method, self.path))
            return await answer(request)

        return guarded
