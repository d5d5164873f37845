"""Endpoints of the clock: show service time, and advance a manual clock."""

from collections.abc import Mapping
from typing import Any

from forewarn.api.request_fields import seconds
from forewarn.api.request_models import Body, field, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import Service, Services, WholeTx
from forewarn.core.access import Right
from forewarn.wire.answers.service_answers import ClockAnswer, ClockOffsetAnswer
from forewarn.wire.texts import read_time

router = ApiRouter("clock")


@request_model
class AdvanceBody(Body):
    """An advance of the clock."""

    seconds: float = field(seconds(minimum=0), "Seconds of service time to advance.")


@router.call("GET /v1/clock", "Show service time", right=Right.SEE)
async def show_clock(service: Service) -> ClockAnswer:
    """Return service time, the kind of clock and its speed."""
    return ClockAnswer.like(service.clock, now=service.clock.now())


# Not a field of the clock: its answer is equal for all requests at one moment of a manual clock.
@router.call("GET /v1/clock/offset", "Show the clock's offset", right=Right.SEE)
async def show_clock_offset(service: Service) -> ClockOffsetAnswer:
    """Return service time minus system time. The offset is negative if service time is behind."""
    return ClockOffsetAnswer.like(service.clock)


def _run_to(services: Services, answer: Mapping[str, Any]) -> None:
    services.timekeeper.run_to(read_time(answer["now"]))


@router.call("POST /v1/clock/advance", "Advance a manual clock", finish=_run_to)
def advance_clock(body: AdvanceBody, service: Service, tx: WholeTx) -> ClockAnswer:
    """Advance a manual clock. The response arrives when all work that became due is done.

    Other clocks cannot be advanced: 409.
    """
    target = service.timekeeper.begin_advance(tx, body.seconds, by=service.by)
    return ClockAnswer.like(service.clock, now=target)
