"""One nova for all tests, reset before each test."""

from collections.abc import Iterator

import pytest

from tests.openstack.real_nova import Nova, a_nova


@pytest.fixture(scope="session")
def _nova(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nova]:
    with a_nova(tmp_path_factory.mktemp("nova")) as nova:
        yield nova


@pytest.fixture
def nova(_nova: Nova) -> Nova:
    _nova.reset()
    return _nova
