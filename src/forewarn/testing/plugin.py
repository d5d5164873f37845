"""The fixtures `forewarn` and `forewarn_session`. Each pytest run loads this module, so it imports little."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from forewarn.testing.fleet import Fleet

NO_SERVER = "the fixture `forewarn` needs the server, and {name} is missing: pip install 'forewarn[server]'"


@pytest.fixture
def forewarn(request: pytest.FixtureRequest) -> "Iterator[Fleet]":
    """Yield a fleet of the test's own: machines with real guest endpoints, and a manual clock."""
    with _opened() as fleet:
        yield fleet
    # pytest prints it if the test fails.
    request.node.add_report_section("teardown", "forewarn", "\n".join(fleet.log))


@pytest.fixture(scope="session")
def forewarn_session() -> "Iterator[Fleet]":
    """Yield one fleet for all tests of a run, for fixtures that start an application once.

    The clock and unfinished work carry over from test to test.
    """
    with _opened() as fleet:
        yield fleet


def _opened() -> "AbstractContextManager[Fleet]":
    try:
        from forewarn.testing.fleet import opened_fleet
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "forewarn":
            raise
        # A missing extra, not a bug: the traceback would not help.
        pytest.fail(NO_SERVER.format(name=error.name), pytrace=False)
    return opened_fleet()
