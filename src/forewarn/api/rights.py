"""Which right each call needs: the whole list, and what holds for calls that are not in it."""

from collections.abc import Mapping

from fastapi import Request

from forewarn.core.access import Right, check

_OWN = (
    "machines",
    "machines/{name}",
    "groups",
    "groups/{name}",
    "projects",
    "projects/{name}",
    "orders",
    "orders/{id}",
    "events",
    "events/{id}",
)
_USES = (
    *("machines/{name}/restart", "machines/{name}/redeploy"),
    *("machines/{name}/terminate", "machines/{name}/start"),
    *("orders/{id}/cancel", "orders/{id}/retry", "orders/{id}/abandon"),
    *("events/{id}/approve", "events/{id}/cancel"),
)

RIGHTS: Mapping[tuple[str, str], Right] = {
    **{("GET", f"/v1/{path}"): Right.SEE for path in (*_OWN, "history", "clock")},
    **{("POST", f"/v1/{path}"): Right.USE for path in _USES},
    ("GET", "/v1/tokens"): Right.RUN,
}


def needed(method: str, path: str) -> Right:
    """Say which right a call needs.

    What nobody has thought of is not for the people of a project: it may show, or do, more than is theirs.
    """
    default = Right.SURVEY if method == "GET" else Right.RUN
    return RIGHTS.get((method, path), default)


async def checked(request: Request) -> None:
    """Refuse a call that its caller has no right to; those who need no token have no caller."""
    caller = getattr(request.state, "caller", None)
    if caller is not None:
        check(caller, needed(request.method, request.scope["route"].path))
