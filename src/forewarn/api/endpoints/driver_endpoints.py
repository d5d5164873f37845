"""Drivers: which there are."""

from forewarn.api.routing import ApiRouter
from forewarn.api.services import Service
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import DriverAnswer

router = ApiRouter("drivers")


@router.call("GET /v1/drivers", "List drivers")
async def list_drivers(service: Service) -> Page[DriverAnswer]:
    """List by name who can do work, and those that hosts name though they are not installed."""
    found = await service.run(service.fleet.views.drivers)
    return Page(kind=DriverAnswer, items=[DriverAnswer.like(each) for each in found])
