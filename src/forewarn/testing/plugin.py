"""What pytest loads in every run, so it imports nothing but pytest: the fixture `forewarn`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forewarn.testing.fleet import Fleet

NO_SERVER = (
    "the fixture `forewarn` runs forewarn's server, and {name} is missing: pip install 'forewarn[server]'"
)


@pytest.fixture
def forewarn(request: pytest.FixtureRequest) -> "Iterator[Fleet]":
    """Give a fleet of this test's own: machines with real guest endpoints, and a clock that it turns."""
    try:
        from forewarn.testing.fleet import opened_fleet
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "forewarn":
            raise
        # Not a failure inside forewarn, so the way there is of no interest.
        pytest.fail(NO_SERVER.format(name=error.name), pytrace=False)
    with opened_fleet() as fleet:
        yield fleet
    # Printed if the test has failed: then one wants to know what the guests did.
    request.node.add_report_section("teardown", "forewarn", "\n".join(fleet.log))
