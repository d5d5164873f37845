"""Probes and metrics, for whatever watches over the service."""

import logging

from starlette.requests import Request
from starlette.responses import Response

from forewarn.api.error_answers import ProbeFailed
from forewarn.api.limits import CallRefusals
from forewarn.api.routing import ApiRouter
from forewarn.api.services import OpenService, Service
from forewarn.core.errors import Unavailable
from forewarn.wire.answers.service_answers import StatusAnswer

log = logging.getLogger(__name__)


class ProbeLog:
    """Remembers what each probe was answered last."""

    def __init__(self) -> None:
        self._told: dict[str, str | None] = {}

    def note(self, path: str, trouble: str | None) -> None:
        """Log what a probe is answered, if it was answered something else before."""
        before = self._told.get(path)
        self._told[path] = trouble
        if trouble == before:
            return
        if trouble is None:
            log.info("GET %s is answered with 200 again", path)
        else:
            log.warning("GET %s is answered with 503: %s", path, trouble)


router = ApiRouter("probes")


@router.call("GET /healthz", "Report whether the service works")
async def check_health(request: Request, service: OpenService) -> StatusAnswer:
    """Answer 200 while the service works: its guests are answered too."""
    return _answer(request, "ok", trouble=service.probes.unhealthy())


@router.call("GET /readyz", "Report whether requests can be served")
async def check_readiness(request: Request, service: OpenService) -> StatusAnswer:
    """Answer 200 while requests can be served: what is asked for can be saved."""
    return _answer(request, "ready", trouble=service.probes.unready())


def _answer(request: Request, well: str, *, trouble: str | None) -> StatusAnswer:
    request.app.state.probe_log.note(request.url.path, trouble)
    if trouble is not None:
        raise ProbeFailed(trouble)
    return StatusAnswer(status=well)


# A balancer that asks with HEAD is answered alike; the server leaves the body out.
router.call("HEAD /healthz", "", shown=False)(check_health)
router.call("HEAD /readyz", "", shown=False)(check_readiness)


@router.call("GET /metrics", "Measure the service")
async def show_metrics(request: Request, service: Service) -> Response:
    """Show counts of everything, in the text format of Prometheus."""
    from forewarn.api.meter import (
        CONTENT_TYPE,
        Counted,
        Meter,
        Saving,
        Unanswered,
    )  # loaded by those who are asked for it

    counted: Counted | None
    try:
        counted = await service.read(
            lambda reads: Counted(reads.fleet.views.counts(), reads.webhooks.webhooks()[0])
        )
    except Unavailable:
        # The rest must be seen all the same, and that this is missing.
        counted = None
    refusals: CallRefusals = request.app.state.refusals
    driver_calls = service.driver_calls()
    meter = Meter(
        service.guest_counters,
        unanswered=Unanswered(
            connections=service.refused(), requests=refusals.counts, hang_ups=service.hang_ups()
        ),
        saving=Saving(
            possible=service.probes.writable(),
            silences=service.probes.silences(),
            unsaved_holds=len(service.fleet.unsaved_holds.in_force),
            refused_holds=service.fleet.unsaved_holds.refused_total,
        ),
        clock_offset=lambda: service.clock.offset,
        durations={
            "request": request.app.state.durations.seen(),
            "store": service.store_durations(),
            "driver_call": driver_calls.durations,
        },
        background=service.background,
    )
    return Response(meter.text(counted, driver_calls, service.read_counts()), media_type=CONTENT_TYPE)
