"""Service time: read it and, with a manual clock, turn it."""

from collections.abc import Mapping
from typing import Any

from forewarn.api.declared import Body, declared, given
from forewarn.api.request_fields import seconds
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, Service, Services, WholeTx
from forewarn.core.access import Right
from forewarn.wire.answers.service_answers import ClockAnswer, ClockOffsetAnswer
from forewarn.wire.rfc3339 import read_time

router = ApiRouter("clock")


@declared
class AdvanceBody(Body):
    """How far the clock is to be turned."""

    seconds: float = given(seconds(minimum=0))


@router.call("GET /v1/clock", "Tell the time", right=Right.SEE)
async def show_clock(service: Service) -> ClockAnswer:
    """Return service time, and how it runs."""
    return ClockAnswer.like(service.clock, now=service.clock.now())


# Apart from the time, which is the same for all who ask at one moment of a clock that stands.
@router.call("GET /v1/clock/offset", "Tell the time apart from the system's", right=Right.SEE)
async def show_clock_offset(service: Service) -> ClockOffsetAnswer:
    """Return how far service time is ahead of the system's; less than nothing if it is behind."""
    return ClockOffsetAnswer.like(service.clock)


def _run_to(services: Services, answer: Mapping[str, Any]) -> None:
    services.timekeeper.run_to(read_time(answer["now"]))


@router.call("POST /v1/clock/advance", "Turn a manual clock", errors=(409, 413), finish=_run_to)
def advance_clock(body: AdvanceBody, service: Service, tx: WholeTx, caller: CallerName) -> ClockAnswer:
    """Turn a manual clock forward; answered when all that fell due on the way is done."""
    target = service.timekeeper.begin_advance(tx, body.seconds, by=caller)
    return ClockAnswer.like(service.clock, now=target)
