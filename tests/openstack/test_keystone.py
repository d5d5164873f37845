"""The user and the names of projects come from keystone, here a small fake."""

from pathlib import Path

import pytest

from forewarn.control.driver import Unknown
from forewarn.core.errors import Unavailable
from forewarn.drivers.openstack.driver import OpenStackDriver
from tests.openstack.driver_calls import LIBRARY_WARNINGS, made, task
from tests.openstack.real_nova import Nova
from tests.openstack.small_keystone import a_keystone

pytestmark = LIBRARY_WARNINGS


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", f"{tmp_path / 'clouds.yaml'}")
    return tmp_path


def driver(nova: Nova, clouds: Path, keystone: str) -> OpenStackDriver:
    nova.write_clouds(clouds, keystone=keystone)
    return made()


def test_project_names_come_from_keystone(nova: Nova, clouds: Path) -> None:
    nova.create("web")
    with a_keystone(nova.url) as keystone:
        (web,) = driver(nova, clouds, keystone).inventory([]).machines
    assert web.project == "shop"


def test_without_names_from_keystone_projects_have_their_ids(nova: Nova, clouds: Path) -> None:
    web = nova.create("web")
    with a_keystone(nova.url, lists=403) as keystone:
        (found,) = driver(nova, clouds, keystone).inventory([]).machines
    assert found.project == nova.server(web)["tenant_id"]


def test_an_outage_of_keystone_renames_no_project(nova: Nova, clouds: Path) -> None:
    nova.create("web")
    with (
        a_keystone(nova.url, lists=503) as keystone,
        pytest.raises(Unavailable, match="keystone answers with 503"),
    ):
        driver(nova, clouds, keystone).inventory([])


def test_a_wrong_password_is_no_failure_of_a_step(nova: Nova, clouds: Path) -> None:
    with a_keystone(nova.url, password="changed") as keystone:
        answer = driver(nova, clouds, keystone).begin(task("u"))
    assert isinstance(answer, Unknown)
    assert "wrong name or password" in answer.why
