"""The audit log: one line for each request that may change something, with caller, address and result."""

import logging

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forewarn.core.access import Caller

# A separate logger: its lines are written at any log level, and can also go to syslog.
AUDIT = logging.getLogger("forewarn.audit")

READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Heartbeats are frequent and change nothing.
HEARTBEAT = "/heartbeat"
# Key in the ASGI state of a request that changes nothing, such as a dry run.
CHANGES_NOTHING = "changes_nothing"
# The results of failed requests, by the first digit of the status.
RESULTS = {4: "refused", 5: "failed"}
LONGEST_QUERY = 200


def audit(*, who: str, where: str, what: str, result: str, **more: object) -> None:
    """Log a requested change and its result: done, refused or failed."""
    fields = {"who": who, "from": where, "what": what, "result": result, **more}
    AUDIT.info("audit", extra={"fields": fields})


def changes_nothing(scope: Scope) -> None:
    """Exclude a request from the audit log, whatever its method."""
    scope["state"][CHANGES_NOTHING] = True


class AuditMiddleware:
    """Logs each request of a known caller that may change something, after the response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and log its status."""
        if not _is_audited(scope):
            await self._app(scope, receive, send)
            return
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except HTTPException as error:
            status = error.status_code
            raise
        finally:
            if CHANGES_NOTHING not in scope["state"]:
                _audit(scope, status)


def _is_audited(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] in READING or scope["path"].endswith(HEARTBEAT):
        return False
    return "caller" in scope.get("state", {})  # probes have no caller


def _audit(scope: Scope, status: int) -> None:
    caller: Caller = scope["state"]["caller"]
    query = scope["query_string"].decode("latin-1")[:LONGEST_QUERY]
    audit(
        who=caller.name,
        where=str((scope.get("client") or ("",))[0]),
        what=f"{scope['method']} {scope['path']}" + (f"?{query}" if query else ""),
        result=RESULTS.get(status // 100, "done"),
        role=caller.role.value,
        project=caller.project,
        status=status,
    )
