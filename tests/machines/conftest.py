"""The bed that tests share: two hosts for the whole run, and guests for one test."""

from collections.abc import Callable, Iterator

import pytest

from tests.machines import bed as beds
from tests.machines.bed import Bed
from tests.machines.libvirt_steps import LibvirtBed

_figures = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def standing_bed() -> Iterator[Bed]:
    with beds.built() as made:
        yield made


@pytest.fixture
def bed(standing_bed: Bed) -> Iterator[Bed]:
    """Two hosts without guests; each test's guests are removed after it."""
    yield standing_bed
    standing_bed.remove_guests()


@pytest.fixture
def hosts(bed: Bed) -> Iterator[LibvirtBed]:
    """The bed's hosts, with this thread in the server's network."""
    with bed.entered():
        made = LibvirtBed(bed)
        yield made
        made.stop()


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Record a measurement for the summary of the run."""
    return request.config.stash.setdefault(_figures, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if figures := config.stash.get(_figures, []):
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.write_line(line)
