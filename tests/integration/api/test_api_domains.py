"""Alignment of update domains with hosts: dry run, change, and refusal while events are open."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.wire.answers.fleet_answers import FittedDomainsAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import Api, app_of, check_answer


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    webs = (machine(f"web-{n}", group="web", host=f"host-{n // 2 + 1}", domain=n % 2) for n in range(4))
    alone = machine("db", host="host-1")
    service.apply(fleet(group("web", domains=2), *webs, alone, hosts=2))
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def domains(api: Api) -> list[int]:
    machines = api("GET", "/v1/machines?group=web").json()["machines"]
    return [each["update_domain"] for each in machines]


def test_a_dry_run_shows_the_changes_and_changes_nothing(api: Api) -> None:
    answer = api("POST", "/v1/fleet/domains", json={"dry_run": True})
    assert answer.status_code == 200
    check_answer(FittedDomainsAnswer, answer.json())
    shown = answer.json()
    assert (shown["waves_before"], shown["waves_after"], len(shown["changes"])) == (2, 2, 2)
    assert domains(api) == [0, 1, 0, 1]


def test_machines_on_one_host_get_one_domain(api: Api) -> None:
    answer = api("POST", "/v1/fleet/domains", json={"group": "web"}).json()
    assert answer["changes"] == [
        "~ machine web-1: update-domain 1 to 0",
        "~ machine web-2: update-domain 0 to 1",
    ]
    assert domains(api) == [0, 0, 1, 1]
    assert api("POST", "/v1/fleet/domains", json={}).json()["changes"] == []


def test_an_open_event_keeps_the_domains_of_its_machines(service: Service, api: Api) -> None:
    service.poll("web-1")
    api("POST", "/v1/machines/web-1/restart")
    answer = api("POST", "/v1/fleet/domains", json={})
    assert answer.status_code == 409
    assert '"web-1" would change, and open events name them' in answer.json()["error"]["message"]
    assert domains(api) == [0, 1, 0, 1]


def test_an_unknown_group_is_not_found(api: Api) -> None:
    answer = api("POST", "/v1/fleet/domains", json={"group": "wep"})
    assert answer.status_code == 404
    assert "did you mean" in answer.json()["error"]["message"]
