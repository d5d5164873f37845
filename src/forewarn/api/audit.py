"""The audit: a line for each change that somebody asks for: who, from where, what, and what came of it."""

import logging

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forewarn.core.access import Caller

# A logger of its own: what is audited is logged whatever else is not, and may go to syslog too.
AUDIT = logging.getLogger("forewarn.audit")

READING = frozenset({"GET", "HEAD", "OPTIONS"})
# It says that work goes on, over and over, and changes nothing.
HEARTBEAT = "/heartbeat"
# What a call is marked with that only shows what would be.
CHANGES_NOTHING = "changes_nothing"
# By the class of the status.
RESULTS = {4: "refused", 5: "failed"}
# As much as says what was asked for.
LONGEST_QUERY = 200


def audit(*, who: str, where: str, what: str, result: str, **more: object) -> None:
    """Log a change that was asked for, and what came of it: done, refused or failed."""
    fields = {"who": who, "from": where, "what": what, "result": result, **more}
    AUDIT.info("audit", extra={"fields": fields})


def changes_nothing(scope: Scope) -> None:
    """Leave a call out, whatever its method: a dry run."""
    scope["state"][CHANGES_NOTHING] = True


class AuditedChanges:
    """Logs each call of a known caller that may change something, once it is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, and look at its answer."""
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
    return "caller" in scope.get("state", {})  # probes need no token, whatever their method


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
