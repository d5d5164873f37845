"""What pytest loads in every run, so it imports nothing but pytest: `forewarn` and `forewarn_session`."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
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
    with _opened() as fleet:
        yield fleet
    # Printed if the test has failed: then one wants to know what the guests did.
    request.node.add_report_section("teardown", "forewarn", "\n".join(fleet.log))


@pytest.fixture(scope="session")
def forewarn_session() -> "Iterator[Fleet]":
    """Give one fleet to all tests of a run, for fixtures that start an application once.

    Its clock goes on from test to test, and so does what they leave undone.
    """
    with _opened() as fleet:
        yield fleet


def _opened() -> "AbstractContextManager[Fleet]":
    try:
        from forewarn.testing.fleet import opened_fleet
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "forewarn":
            raise
        # Not a failure inside forewarn, so the way there is of no interest.
        pytest.fail(NO_SERVER.format(name=error.name), pytrace=False)
    return opened_fleet()
