"""The bed that tests on machines share: two hosts stand for the whole run, guests only for one test."""

from collections.abc import Iterator

import pytest

from tests.machines import bed as beds
from tests.machines.bed import Bed


@pytest.fixture(scope="session")
def standing_bed() -> Iterator[Bed]:
    with beds.built() as made:
        yield made


@pytest.fixture
def bed(standing_bed: Bed) -> Iterator[Bed]:
    """Two hosts without a guest; what a test puts on them is gone after it."""
    yield standing_bed
    standing_bed.remove_guests()
