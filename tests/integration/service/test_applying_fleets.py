"""A large fleet is checked as a whole and applied in parts."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.control.fleet import declarations
from forewarn.control.fleet.fleet_application import FleetApplication
from forewarn.core.basic_types import Action, Kind, ProjectName, Work
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.model.project import Project
from forewarn.core.toml_text import parse_toml
from forewarn.server.fleet_file import apply_file
from forewarn.store.batch import Transact
from forewarn.wire.fleet import read_fleet, write_fleet
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import Api, app_of

MANY = 6
on_both = pytest.mark.parametrize("service", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(params=["sqlite"])
def service(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Service]:
    """Return a service that saves two items of a fleet per part."""
    monkeypatch.setattr(declarations, "AT_ONCE", 2)
    sqlite = request.param == "sqlite"
    service = Service(sqlite_url(tmp_path) if sqlite else request.getfixturevalue("postgres_url"))
    yield service
    service.close()


def declared(*, shift: int = 0) -> FleetSpec:
    names = [f"web-{number}" for number in range(MANY)]
    addresses = [f"10.0.0.{(number + shift) % MANY}" for number in range(MANY)]
    made = (machine(name, "host-1", group="web") for name in names)
    return fleet(group("web"), *(replace(each, address=at) for each, at in zip(made, addresses, strict=True)))


def names(service: Service) -> list[str]:
    return sorted(each.name for each in service.everything().machines.values())


def applied(service: Service) -> list[str]:
    return [line.reason for line in service.history() if line.kind == Kind.FLEET_APPLIED]


def begin(service: Service, spec: FleetSpec, *, digest: str | None = None) -> FleetApplication:
    commands = service.fleet.declarations
    return commands.application(commands.check(spec, by="test"), digest=digest, by="test")


def finish(service: Service, application: FleetApplication) -> None:
    while not application.over:
        application.apply_next(service.transact)


def test_a_fleet_is_applied_in_parts_and_recorded_at_the_end(service: Service) -> None:
    application = begin(service, declared(), digest="new")
    while not application.over:
        assert (service.fleet.declarations.applied_fleet(), applied(service)) == (None, [])
        application.apply_next(service.transact)
    assert len(names(service)) == MANY
    assert service.fleet.declarations.applied_fleet() == "new"
    assert applied(service) == [f"{len(application.changes)} changes"]
    assert service.apply(declared()) == ()


def test_other_callers_are_served_between_two_parts(service: Service) -> None:
    application = begin(service, declared())
    while not names(service):
        application.apply_next(service.transact)
    first = names(service)[0]
    service.delete(first)
    service.put("web-5", host="host-2", group="web", zone="2")
    finish(service, application)
    assert names(service) == [f"web-{number}" for number in range(MANY) if f"web-{number}" != first]
    assert service.machine("web-5").zone == ""


def test_after_a_crash_applying_the_fleet_again_does_the_rest(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(FILE)
    said: list[str] = []
    apply_next = FleetApplication.apply_next

    def crash(self: FleetApplication, transact: Transact) -> None:
        apply_next(self, transact)
        if names(service):
            raise KeyboardInterrupt

    with monkeypatch.context() as crashing:
        crashing.setattr(FleetApplication, "apply_next", crash)
        with pytest.raises(KeyboardInterrupt):
            apply_file(service.use_cases.declarations, service.transact, str(path), say=said.append)
    assert 0 < len(names(service)) < MANY
    service.restart()
    apply_file(service.use_cases.declarations, service.transact, str(path), say=said.append)
    assert names(service) == [f"web-{number}" for number in range(MANY)]
    said.clear()
    apply_file(service.use_cases.declarations, service.transact, str(path), say=said.append)
    assert said == []


def test_after_a_crash_the_previous_fleet_file_can_be_applied(service: Service, tmp_path: Path) -> None:
    before = tmp_path / "before.toml"
    before.write_text(FILE)
    apply_file(service.use_cases.declarations, service.transact, str(before), say=print)
    application = begin(service, declared(shift=1), digest="the next one")
    application.apply_next(service.transact)
    service.restart()
    apply_file(service.use_cases.declarations, service.transact, str(before), say=print)
    begun = begin(service, read_fleet(parse_toml(FILE, name="before")))
    assert begun.changes == ()


FILE = "[hosts.host-1]\n" + "".join(
    f'[[machines]]\nname = "web-{number}"\nhost = "host-1"\naddress = "10.0.0.{number}"\n'
    for number in range(MANY)
)


def test_a_declaration_that_is_refused_changes_nothing(service: Service) -> None:
    service.apply(declared())
    before = service.everything()
    bad = replace(declared(), machines=(*declared().machines[1:], machine("web-9", "host-9")))
    with pytest.raises(Invalid, match="host-9"):
        service.apply(bad)
    assert service.everything() == before


@on_both
def test_machines_may_swap_their_addresses_whatever_the_parts(service: Service) -> None:
    service.apply(declared())
    assert len(service.apply(declared(shift=1))) == MANY
    assert service.machine("web-5").address == "10.0.0.0"


@on_both
def test_the_error_of_a_refused_part_names_the_progress(service: Service) -> None:
    application = begin(service, declared())
    while not names(service):
        application.apply_next(service.transact)
    last = sorted({each.name for each in declared().machines} - set(names(service)))[-1]
    service.put("taken", host="host-2", address=f"10.0.0.{last[-1]}")
    with pytest.raises(Conflict) as refused:
        finish(service, application)
    assert "another machine has that address. The fleet is applied up to there" in str(refused.value)
    assert "apply it again to continue" in str(refused.value)
    service.delete("taken")
    service.apply(declared())
    assert len(names(service)) == MANY


def test_the_error_of_the_first_part_is_unchanged(service: Service) -> None:
    service.apply(declared())
    fewer = fleet(group("web"), *declared().machines)
    application = begin(service, replace(fewer, hosts=fewer.hosts[:2]))
    service.put("late", host="host-3")
    with pytest.raises(Conflict) as refused:
        application.apply_next(service.transact)
    assert str(refused.value) == 'hosts: "host-3" still carries "late": move it, or keep the host'


def test_a_project_that_is_used_meanwhile_is_not_removed(service: Service) -> None:
    more = replace(declared(), projects=(*declared().projects, Project(name=ProjectName("shop"))))
    service.apply(more)
    application = begin(service, declared())
    service.put("late", host="host-1", project=ProjectName("shop"))
    with pytest.raises(Conflict, match='projects: "shop" still has "late"'):
        application.apply_next(service.transact)
    service.delete("late")
    application.apply_next(service.transact)
    assert application.over


def test_a_host_that_a_machine_is_bound_for_meanwhile_does_not_become_bare_metal(service: Service) -> None:
    ssd = {"disk": "ssd"}
    spec = fleet(machine("db", "host-1", labels=ssd), hosts=2)
    first, second = (replace(host, labels=ssd) for host in spec.hosts)
    service.apply(replace(spec, hosts=(first, second)))
    application = begin(service, replace(spec, hosts=(first, replace(second, bare_metal=True))))
    service.host_order("host-1", Action.MAINTENANCE, Work.REDEPLOY)
    with pytest.raises(Conflict, match='bare-metal: "db" is moving here: wait for it'):
        finish(service, application)


def test_a_second_fleet_is_refused_while_one_is_applied(service: Service) -> None:
    api = Api(app_of(service))
    with service.fleet.declarations.apply_lock.exclusive():
        answer = api("PUT", "/v1/fleet", json=write_fleet(declared()))
        assert (answer.status_code, answer.json()["error"]["message"]) == (
            409,
            "another fleet is being applied: try again later",
        )
        assert api("PUT", "/v1/fleet?dry_run=true", json=write_fleet(declared())).status_code == 200
    answer = api("PUT", "/v1/fleet", json=write_fleet(declared()))
    assert answer.status_code == 200
    assert applied(service) == [f"{len(answer.json()['changes'])} changes"]
    assert len(names(service)) == MANY
