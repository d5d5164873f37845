"""Imports of machines from a driver: dry run, import, and protection against surprises."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.control.driver import DriverLimits
from forewarn.control.fleet.fleet_import import normalized
from forewarn.core.basic_types import HostName, MachineId, MachineName
from forewarn.core.errors import Unavailable
from forewarn.core.fleet.import_terms import ImportTerms
from forewarn.core.model.found_fleet import FoundFleet, FoundMachine
from forewarn.wire.answers.fleet_answers import ImportAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.listing_driver import IDS, Hypervisor
from tests.helpers.service.served import Api, app_of, check_answer


@pytest.fixture
def hypervisor() -> Iterator[Hypervisor]:
    made = Hypervisor()
    made.domains["kvm01"] = {IDS[0]: "web-0", IDS[1]: "web-1"}
    yield made
    made.hangs.set()


@pytest.fixture
def service(tmp_path: Path, hypervisor: Hypervisor) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.close()
    service.more_drivers["libvirt"] = hypervisor
    service.open()
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


HOSTS = {"kvm01": "qemu+ssh://kvm01/system", "kvm02": "qemu+ssh://kvm02/system"}


def imported(api: Api, **more: Any) -> dict[str, Any]:
    answer = api("POST", "/v1/fleet/import", json={"from": "libvirt", **more})
    assert answer.status_code == 200, answer.text
    check_answer(ImportAnswer, answer.json())
    whole: dict[str, Any] = answer.json()
    return whole


def refused(api: Api, **more: Any) -> tuple[int, str]:
    answer = api("POST", "/v1/fleet/import", json={"from": "libvirt", **more})
    return answer.status_code, answer.json()["error"]["message"]


def test_a_dry_run_shows_the_difference_and_changes_nothing(api: Api) -> None:
    shown = imported(api, hosts=HOSTS, dry_run=True)
    assert shown["changes"] == [
        "+ project default",
        "+ host kvm01",
        "+ host kvm02",
        "+ machine web-0 on kvm01",
        "+ machine web-1 on kvm01",
    ]
    assert (shown["applied"], api("GET", "/v1/machines").json()["machines"]) == (False, [])


def test_an_import_applies_the_dry_run_and_records_the_source(service: Service, api: Api) -> None:
    shown = imported(api, hosts=HOSTS, dry_run=True)
    done = imported(api, hosts=HOSTS, digest=shown["digest"])
    assert (done["changes"], done["applied"]) == (shown["changes"], True)
    web = api("GET", "/v1/machines/web-0").json()["machine"]
    assert (web["vm_id"], web["host"], web["source"]) == (IDS[0], "kvm01", "libvirt")
    assert web["mac"] == "52:54:00:00:00:01"
    host = api("GET", "/v1/hosts/kvm01").json()["host"]
    assert (host["driver"], host["uri"], host["source"]) == ("libvirt", HOSTS["kvm01"], "libvirt")
    assert imported(api)["changes"] == []
    (record,) = api("GET", "/v1/history?kind=fleet-applied").json()["records"]
    assert record["reason"] == "5 changes imported from libvirt"


def test_an_import_with_the_digest_of_another_difference_is_refused(api: Api, hypervisor: Hypervisor) -> None:
    shown = imported(api, hosts=HOSTS, dry_run=True)
    hypervisor.domains["kvm02"] = {IDS[2]: "web-2"}
    assert refused(api, hosts=HOSTS, digest=shown["digest"]) == (
        409,
        "the changes of the import are no longer those that were shown: check them again",
    )
    assert api("GET", "/v1/machines").json()["machines"] == []


def test_an_import_that_changes_nothing_is_not_audited(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """Importing once a minute must not fill the audit log."""
    caplog.set_level("INFO", logger="forewarn.audit")
    imported(api, hosts=HOSTS)
    assert len(caplog.records) == 1
    imported(api)
    assert len(caplog.records) == 1
    refused(api, digest="another")
    assert len(caplog.records) == 2


def test_applying_a_file_keeps_imported_machines(service: Service, api: Api) -> None:
    imported(api, hosts=HOSTS)
    service.apply(fleet(machine("db", host="host-1"), hosts=1))
    names = [each["name"] for each in api("GET", "/v1/machines").json()["machines"]]
    assert names == ["db", "web-0", "web-1"]
    hosts = {each["name"]: each["source"] for each in api("GET", "/v1/hosts").json()["hosts"]}
    assert hosts == {"host-1": "declared", "kvm01": "libvirt", "kvm02": "libvirt"}


def test_a_machine_moved_outside_forewarn_counts_as_unannounced(api: Api, hypervisor: Hypervisor) -> None:
    imported(api, hosts=HOSTS)
    hypervisor.domains["kvm02"] = {IDS[1]: hypervisor.domains["kvm01"].pop(IDS[1])}
    assert imported(api)["changes"] == ["~ machine web-1: moved from kvm01 to kvm02 outside forewarn"]
    assert api("GET", "/v1/machines/web-1").json()["machine"]["host"] == "kvm02"
    (record,) = api("GET", "/v1/history?kind=unannounced-impact").json()["records"]
    assert (record["machine"], record["reason"]) == ("web-1", "moved from kvm01 to kvm02 outside forewarn")
    (counted,) = api("GET", "/v1/promises").json()["promises"]
    assert (counted["unannounced"], counted["judged"], counted["simulated"]) == (1, 0, False)
    assert "forewarn_unannounced_impact_total 1.0" in api("GET", "/metrics").text


def test_a_failed_order_is_retried_from_the_machines_new_host(
    service: Service, api: Api, hypervisor: Hypervisor
) -> None:
    imported(api, hosts=HOSTS)
    hypervisor.fails = "its host does not have it any more"
    order = api("POST", "/v1/machines/web-1/restart").json()["order"]["id"]
    service.tick()
    assert api("GET", f"/v1/orders/{order}").json()["order"]["state"] == "failed"
    hypervisor.domains["kvm02"] = {IDS[1]: hypervisor.domains["kvm01"].pop(IDS[1])}
    found = imported(api)
    assert found["changes"] == ["~ machine web-1: moved from kvm01 to kvm02 outside forewarn"]
    assert found["notes"] == [
        f"machine web-1 is in order {order} (restart), which has failed: "
        "retry it from where the machine is now, or abandon it"
    ]
    hypervisor.fails = ""
    api("POST", f"/v1/orders/{order}/retry")
    service.tick()
    assert api("GET", f"/v1/orders/{order}").json()["order"]["state"] == "done"
    sources = [task.source.name for task in hypervisor.begun if task.source is not None]
    assert sources == ["kvm01", "kvm02"]


def test_a_put_takes_a_machine_over_from_its_source(api: Api, hypervisor: Hypervisor) -> None:
    imported(api, hosts=HOSTS)
    api("PUT", "/v1/machines/web-0", json={"mac": "52:54:00:00:00:99", "host": "kvm02"})
    assert api("GET", "/v1/machines/web-0").json()["machine"]["source"] == "put"
    again = imported(api)
    assert again["changes"] == ["~ machine web-0: moved from kvm02 to kvm01 outside forewarn"]
    assert again["conflicts"] == [
        "machine web-0: mac is 52:54:00:00:00:99, libvirt has 52:54:00:00:00:01 (--take mac)"
    ]
    took = imported(api, take=["mac"])
    assert took["changes"] == ["~ machine web-0: mac 52:54:00:00:00:99 to 52:54:00:00:00:01"]
    assert imported(api)["conflicts"] == []


def test_a_put_during_an_import_is_kept(service: Service, api: Api, hypervisor: Hypervisor) -> None:
    imported(api, hosts=HOSTS)
    before = service.fleet.declarations.import_base("libvirt", {})
    found = hypervisor.inventory(before.hosts[:1])
    service.put("web-0", mac="52:54:00:00:00:99")
    checked = service.fleet.declarations.check_import(before, found, ImportTerms(source="libvirt"), by="anna")
    assert checked.fleet.changes == ()
    assert [line.partition(":")[0] for line in checked.plan.conflicts] == ["machine web-0"]


def test_a_put_without_changes_keeps_the_source(api: Api) -> None:
    imported(api, hosts=HOSTS)
    api("PUT", "/v1/machines/web-0", json={"mac": "52:54:00:00:00:01"})
    assert api("GET", "/v1/machines/web-0").json()["machine"]["source"] == "libvirt"


def test_removing_half_of_the_fleet_needs_confirmation(api: Api, hypervisor: Hypervisor) -> None:
    imported(api, hosts=HOSTS)
    del hypervisor.domains["kvm01"][IDS[0]]
    assert imported(api, dry_run=True)["removes_half"]
    assert refused(api) == (
        409,
        "the import would remove 1 of 2 machines: confirm with --yes if they are really gone",
    )
    assert imported(api, yes=True)["changes"] == ["- machine web-0: destroyed outside forewarn"]


def test_an_unreachable_host_removes_nothing_and_is_noted(api: Api, hypervisor: Hypervisor) -> None:
    hypervisor.domains["kvm02"] = {IDS[2]: "web-2"}
    imported(api, hosts=HOSTS)
    hypervisor.silent["kvm02"] = ValueError("odd")
    del hypervisor.domains["kvm01"][IDS[0]]
    answer = imported(api, yes=True)
    assert (answer["changes"], answer["removes"]) == ([], 0)
    assert answer["notes"] == [
        "host kvm02 cannot be reached: ValueError: odd",
        "machine web-0 is not on kvm01 any more: not removed while kvm02 cannot be reached",
    ]


def test_an_import_that_reaches_no_host_is_refused_with_the_reason(api: Api, hypervisor: Hypervisor) -> None:
    imported(api, hosts=HOSTS)
    hypervisor.silent["kvm01"] = Unavailable("no route to host")
    hypervisor.silent["kvm02"] = ValueError("odd")
    assert refused(api, yes=True) == (
        409,
        "driver libvirt reaches none of its hosts; nothing is imported: "
        "kvm01 (no route to host), kvm02 (ValueError: odd)",
    )
    names = [each["name"] for each in api("GET", "/v1/machines").json()["machines"]]
    assert names == ["web-0", "web-1"]


def test_an_unavailable_source_imports_nothing_and_is_listed_once(api: Api, hypervisor: Hypervisor) -> None:
    hypervisor.lists_by_host = False
    hypervisor.silent["kvm01"] = Unavailable("the cloud cannot be asked: no route to host")
    assert refused(api, hosts={"kvm01": HOSTS["kvm01"]}) == (
        409,
        "driver libvirt cannot list its hosts and machines; nothing is imported: "
        "the cloud cannot be asked: no route to host",
    )


def test_a_hanging_host_does_not_block_other_requests(api: Api, hypervisor: Hypervisor) -> None:
    # The other hosts answer at once, but a busy computer takes a while.
    hypervisor.limits = DriverLimits(timeout=timedelta(seconds=1), at_once=1)
    answer = imported(api, hosts={**HOSTS, "stuck": "test://stuck"})
    assert answer["notes"] == ["host stuck cannot be reached: no answer within 1 s"]
    assert "+ machine web-0 on kvm01" in answer["changes"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"from": "simulated"}, 'from: expected libvirt: driver "simulated" cannot list machines'),
        ({"from": "vmware"}, 'from: expected libvirt, got "vmware"'),
        ({"from": "libvrit"}, 'from: expected libvirt, got "libvrit"; did you mean'),
        ({"from": "libvirt"}, "from: no host has driver libvirt yet: name one (--host NAME=URI)"),
        ({}, "from: expected the name of a driver, but it is missing"),
        ({"from": "libvirt", "hosts": {"a": "x"}}, "hosts.a: expected a URI"),
        ({"from": "libvirt", "take": ["adress"]}, "take: expected some of name, group"),
        ({"from": "libvirt", "what": 1}, "what: there is no such field"),
    ],
)
def test_an_invalid_import_is_refused_in_one_line(api: Api, body: dict[str, Any], message: str) -> None:
    answer = api("POST", "/v1/fleet/import", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(message)
    assert api("GET", "/v1/hosts").json()["hosts"] == []


def test_an_import_connects_to_the_declared_uris(service: Service, api: Api, hypervisor: Hypervisor) -> None:
    api(
        "PUT",
        "/v1/fleet",
        json={"hosts": {"kvm01": {"driver": "libvirt", "uri": "test://declared"}, "other": {}}},
    )
    hypervisor.asked.clear()
    assert imported(api)["changes"] == ["+ machine web-0 on kvm01", "+ machine web-1 on kvm01"]
    assert hypervisor.asked == ["test://declared"]


def test_unreadable_data_of_a_guest_does_not_stop_an_import() -> None:
    odd = FoundMachine(
        vm_id=MachineId(IDS[0].upper()),
        name=MachineName("web-0"),
        host=HostName("kvm01"),
        running=True,
        macs=("?", "52-54-00-00-00-01"),
        addresses=("fe80::1%eth0", "\x00", "10.0.0.1"),
        update_domain=10**20,
        tags={"a": "\n"},
    )
    tidy = normalized(FoundFleet(machines=(odd,)))
    (machine,) = tidy.machines
    assert (machine.vm_id, machine.macs, machine.addresses) == (IDS[0], ("52:54:00:00:00:01",), ("10.0.0.1",))
    assert (machine.update_domain, machine.tags) == (None, None)
    assert [note.partition(": ")[2] for note in tidy.notes] == [
        f"update-domain {odd.update_domain} is invalid: ignored",
        "its tags are invalid: ignored",
    ]
