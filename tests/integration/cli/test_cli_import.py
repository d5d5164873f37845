"""`forewarn fleet import`, `host put`, `group put` and `project put`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from forewarn.cli import terminal
from forewarn.cli.commands import fleet_commands
from forewarn.cli.main import app
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.listing_driver import IDS, Hypervisor
from tests.helpers.service.served import app_of, sample, serving

KVM01 = "kvm01=qemu+ssh://kvm01/system"


@pytest.fixture
def hypervisor() -> Hypervisor:
    made = Hypervisor()
    made.domains["kvm01"] = {IDS[0]: "vm-0", IDS[1]: "vm-1"}
    return made


@pytest.fixture(autouse=True)
def server(tmp_path: Path, hypervisor: Hypervisor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.more_drivers["libvirt"] = hypervisor
    service.wire(service.store)
    service.apply(sample())
    with serving(app_of(service)) as url:
        monkeypatch.setenv("FOREWARN_SERVER", url)
        yield service
    service.close()


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def test_the_difference_is_shown_and_imported(hypervisor: Hypervisor) -> None:
    assert run("fleet", "import", "--from", "libvirt", "--host", KVM01).stdout.splitlines() == [
        "+ host kvm01",
        "+ machine vm-0 on kvm01",
        "+ machine vm-1 on kvm01",
        "Imported: 3 changes.",
    ]
    again = run("fleet", "import", "--from", "libvirt").stdout
    assert again == "No changes: the fleet matches libvirt.\n"
    del hypervisor.domains["kvm01"][IDS[0]]
    refused = run("fleet", "import", "--from", "libvirt", code=1)
    assert (
        "this would remove 1 of 2 machines, because libvirt no longer has them; use --yes to confirm"
        in refused.output
    )
    gone = run("fleet", "import", "--from", "libvirt", "--yes").stdout.splitlines()
    assert gone == ["- machine vm-0: destroyed outside forewarn", "Imported: 1 change."]


def test_lists_show_the_source_of_imported_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    run("fleet", "import", "--from", "libvirt", "--host", KVM01)
    run("group", "put", "db", "--kind", "scale-set")
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    sources = {
        "host": {"host-1": "declared", "kvm01": "libvirt"},
        "machine": {"web-0": "declared", "vm-0": "libvirt"},
        "group": {"web": "declared", "db": "put"},
    }
    for noun, expected in sources.items():
        head, _, *rows = run(noun, "list").stdout.splitlines()
        at = head.index("SOURCE")
        shown = {row.split()[0]: row[at:].split()[0] for row in rows if row.strip()}
        assert expected.items() <= shown.items()


def test_hosts_of_a_missing_driver_are_listed_together_with_the_reason(server: Service) -> None:
    hosts = ("--host", KVM01, "--host", "kvm02=qemu+ssh://kvm02/system")
    run("fleet", "import", "--from", "libvirt", *hosts)
    del server.more_drivers["libvirt"]
    server.wire(server.store)
    with serving(app_of(server)) as url:
        shown = run("host", "list", "--server", url).stdout
        one = run("host", "show", "kvm01", "--server", url).stdout
    assert "\nkvm01 and kvm02 cannot be reached: driver libvirt is not installed\n" in shown
    assert "no: driver libvirt is not installed" in one


def test_a_dry_run_changes_nothing() -> None:
    for _ in range(2):
        shown = run("fleet", "import", "--from", "libvirt", "--host", KVM01, "--dry-run").stdout
        assert shown.splitlines()[0] == "+ host kvm01"


def test_a_watch_prints_each_difference_once(hypervisor: Hypervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    hypervisor.silent["kvm02"] = ValueError("odd")
    happenings = [lambda: hypervisor.domains["kvm01"].update({IDS[2]: "vm-2"}), lambda: None]

    def rest(every: float) -> None:
        assert every == 30
        if not happenings:
            raise KeyboardInterrupt
        happenings.pop(0)()

    monkeypatch.setattr(fleet_commands, "rest", rest)
    hosts = ("--host", KVM01, "--host", "kvm02=qemu+ssh://kvm02/system")
    shown = run("fleet", "import", "--from", "libvirt", *hosts, "--watch", "--every", "30s").stdout
    assert shown.splitlines() == [
        "+ host kvm01",
        "+ machine vm-0 on kvm01",
        "+ machine vm-1 on kvm01",
        "? host kvm02 cannot be reached: ValueError: odd",
        "Imported: 3 changes.",
        "+ machine vm-2 on kvm01",
        "Imported: 1 change.",
    ]


def test_a_missing_driver_is_reported_in_one_line() -> None:
    refused = run("fleet", "import", "--from", "vmware", code=2)
    assert refused.output == 'forewarn: --from: expected libvirt, got "vmware"\n'


def test_an_import_that_reaches_no_host_is_reported_in_one_line(hypervisor: Hypervisor) -> None:
    hypervisor.silent["kvm01"] = ValueError("odd")
    refused = run("fleet", "import", "--from", "libvirt", "--host", KVM01, code=1)
    assert refused.output == (
        "forewarn: driver libvirt reaches none of its hosts; nothing is imported: kvm01 (ValueError: odd)\n"
    )


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("machine", "put", "web-0", "--host", "host-2"), ("machine", "show", "web-0")),
        (("group", "put", "web", "--kind", "scale-set"), ("group", "show", "web")),
        (("host", "put", "host-1", "--at-once", "7"), ("host", "show", "host-1")),
        (("project", "put", "default", "--rehearsal"), ("project", "show", "default")),
    ],
)
def test_a_command_that_only_adds_changes_nothing_that_exists(
    command: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    before = run(*shown).stdout
    assert "exists already" in run(*command, "--new", code=1).output
    assert run(*shown).stdout == before
    run(*command)
    assert run(*shown).stdout != before


def test_resources_are_put_and_deleted_one_at_a_time() -> None:
    host = run(
        "host",
        "put",
        "kvm09",
        "--new",
        "--driver",
        "external",
        "--resource",
        "vcpus=64x4",
        "--label",
        "rack=1",
    )
    assert "Source" in host.stdout
    run("project", "put", "shop", "--window", "sat,sun 22:00 4h", "--window", "21:00 2h", "--rehearsal")
    run("group", "put", "db", "--kind", "scale-set", "--project", "shop", "--policy", "notice=1h")
    shown = run("group", "show", "db").stdout
    assert "scale-set" in shown
    assert "shop" in shown
    assert "22:00" in run("project", "show", "shop").stdout
    assert "22:00" not in run("project", "put", "shop", "--no-windows").stdout
    run("project", "put", "shop", "--no-windows", "--window", "21:00 2h", code=2)
    assert "notice" not in run("group", "put", "db", "--policy", "notice=").stdout
    run("host", "put", "kvm09", "--no-labels", "--label", "rack=b", code=2)
    run("host", "put", "kvm09", "--no-resources", "--resource", "vcpus=4", code=2)
    assert "rack=" in run("host", "show", "kvm09").stdout
    assert "rack" not in run("host", "put", "kvm09", "--no-labels", "--driver", "").stdout
    for noun, name in (("group", "db"), ("project", "shop"), ("host", "kvm09")):
        assert run(noun, "delete", name).stdout == f"{noun.capitalize()} {name} removed from the fleet.\n"
    assert "expected [DAYS] START LENGTH" in run("project", "put", "x", "--window", "late", code=2).output
    late = run("project", "put", "x", "--window", "sat,sun 25:00 4h", code=2).output
    assert "'sat,sun 25:00 4h': expected a time of day such as 22:00, got \"25:00\"" in late
    assert "--window" in late
    assert "windows[0]" not in late


def test_consecutive_days_are_shown_as_they_are_given() -> None:
    put = run("project", "put", "lab", "--blackout", "2026-12-24/2027-01-01", "--blackout", "2027-05-01")
    assert "Blackout    2026-12-24/2027-01-01, 2027-05-01" in put.output
    assert "2026-12-24/2027-01-01, 2027-05-01" in run("project", "list").output
