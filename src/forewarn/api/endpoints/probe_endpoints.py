"""Endpoints for monitoring: probes and metrics."""

import logging

from starlette.requests import Request
from starlette.responses import Response

from forewarn.api.error_answers import ProbeFailed
from forewarn.api.routing import ApiRouter
from forewarn.api.services import OpenService, Service
from forewarn.core.errors import Unavailable
from forewarn.wire.answers.service_answers import StatusAnswer

log = logging.getLogger(__name__)


class ProbeLog:
    """Logs the result of a probe when it changes."""

    def __init__(self) -> None:
        self._last: dict[str, str | None] = {}

    def note(self, path: str, problem: str | None) -> None:
        """Log a result that differs from the last one."""
        before = self._last.get(path)
        self._last[path] = problem
        if problem == before:
            return
        if problem is None:
            log.info("GET %s is answered with 200 again", path)
        else:
            log.warning("GET %s is answered with 503: %s", path, problem)


router = ApiRouter("probes")


@router.call("GET /healthz", "Check liveness")
async def check_health(request: Request, service: OpenService) -> StatusAnswer:
    """Return 200 while the server works. Restart it after a 503."""
    return _answer(request, "ok", problem=service.parts.probes.unhealthy())


@router.call("GET /readyz", "Check readiness")
async def check_readiness(request: Request, service: OpenService) -> StatusAnswer:
    """Return 200 while the server can carry out requests: the database can be written."""
    return _answer(request, "ready", problem=service.parts.probes.unready())


def _answer(request: Request, well: str, *, problem: str | None) -> StatusAnswer:
    request.app.state.probe_log.note(request.url.path, problem)
    if problem is not None:
        raise ProbeFailed(problem)
    return StatusAnswer(status=well)


# Load balancers may use HEAD. Uvicorn leaves the body out.
router.call("HEAD /healthz", "", is_documented=False)(check_health)
router.call("HEAD /readyz", "", is_documented=False)(check_readiness)


@router.call("GET /metrics", "Show metrics")
async def show_metrics(request: Request, service: Service) -> Response:
    """Return the metrics of the server in the text format of Prometheus."""
    from forewarn.api import server_metrics  # the server does not need it to start

    try:
        stored = await service.read(
            lambda reads: server_metrics.StoreCounts(reads.fleet.views.counts(), reads.webhooks.webhooks()[0])
        )
    except Unavailable:
        stored = None  # the other metrics are needed most now
    state = request.app.state
    text = server_metrics.write_metrics(service, stored, refusals=state.refusals, durations=state.durations)
    return Response(text, media_type=server_metrics.CONTENT_TYPE)
