"""Drivers: which there are."""

from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.fleet_answers import DriverAnswer

router = ApiRouter("drivers")


@router.call("GET /v1/drivers", "List drivers")
def list_drivers(reads: CallerReading) -> Page[DriverAnswer]:
    """List by name who can do work, and those that hosts name though they are not installed."""
    found = reads.fleet.views.drivers()
    return Page(kind=DriverAnswer, items=[DriverAnswer.like(each) for each in found])
