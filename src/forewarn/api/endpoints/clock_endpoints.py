"""Service time: read it and, with a manual clock, turn it."""

from forewarn.api.declared import Body, declared, given
from forewarn.api.request_fields import seconds
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, Service
from forewarn.core.access import Right
from forewarn.wire.answers.service_answers import ClockAnswer

router = ApiRouter("clock")


@declared
class AdvanceBody(Body):
    """How far the clock is to be turned."""

    seconds: float = given(seconds(minimum=0))


@router.call("GET /v1/clock", "Tell the time", right=Right.SEE)
async def show_clock(service: Service) -> ClockAnswer:
    """Return service time, and how it runs."""
    return ClockAnswer.like(service.clock, now=service.clock.now())


@router.call("POST /v1/clock/advance", "Turn a manual clock", errors=(409, 413))
async def advance_clock(body: AdvanceBody, service: Service, caller: CallerName) -> ClockAnswer:
    """Turn a manual clock forward; answered when all that fell due on the way is done."""
    await service.run(lambda: service.timekeeper.advance(body.seconds, by=caller))
    return await show_clock(service)
