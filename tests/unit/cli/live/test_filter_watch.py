"""The watched filter of a host follows the fleet, libvirt's domains and the loaded rules."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from forewarn.cli.live.filter_watch import (
    LOOKS_FOR_FLEET,
    MACHINES_FOR_A_LOOK,
    FilterWatch,
    SavedFleet,
    taps_of,
)
from forewarn.cli.views.host_filter import LoadedFilter, Tap
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.wire.answers.fleet_answers import MachineAnswer
from tests.helpers.programs.process import PATIENCE, until
from tests.unit.cli.views.test_host_filter import MAC, OTHER, as_loaded, machine, tap, wanted

DOMAIN = """<domstatus state='running'><domain type='qemu' id='1'><devices>
<interface type='network'><mac address='{mac}'/><target dev='{device}'/></interface>
</devices></domain></domstatus>"""


@dataclass
class Host:
    """A host with a fleet, taps and rules that the test sets."""

    machines: Sequence[MachineAnswer] = ()
    taps: Sequence[Tap] = ()
    trouble: Exception | None = None
    refuses: bool = False
    emptied: bool = False
    fetched: int = 0
    applied: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    saved: SavedFleet | None = None

    def watch(self) -> FilterWatch:
        known = self.saved.read() if self.saved else None
        return FilterWatch(
            "kvm04",
            fetch=self.fetch,
            look=lambda: self.taps,
            say=self.messages.append,
            apply=self.apply,
            list_loaded=self.loaded,
            run=lambda work: work(),
            machines=known[1] if known else None,
            save=partial(self.saved.write, "kvm04") if self.saved else lambda _: None,
        )

    def fetch(self) -> Sequence[MachineAnswer]:
        self.fetched += 1
        if self.trouble:
            raise self.trouble
        return list(self.machines)

    def apply(self, rules: str) -> None:
        if self.refuses:
            raise RequestRefused("nft: Operation not permitted")
        self.emptied = False
        self.applied.append(rules)

    def loaded(self) -> LoadedFilter | None:
        return None if self.emptied else as_loaded(wanted(*self.machines, taps=self.taps))


@pytest.fixture
def host() -> Host:
    return Host(machines=[machine()], taps=[tap()])


def look(watch: FilterWatch, times: int = 1) -> None:
    for _ in range(times):
        watch.look()


def test_rules_are_loaded_once_while_nothing_changes(host: Host) -> None:
    look(host.watch(), 3 * LOOKS_FOR_FLEET)
    assert len(host.applied) == 1
    assert host.fetched == 3


def test_a_large_fleet_is_fetched_less_often(host: Host) -> None:
    host.machines = [machine()] * (MACHINES_FOR_A_LOOK * 10)
    watch = host.watch()
    look(watch, LOOKS_FOR_FLEET + 10)  # the size is known after the first answer
    assert host.fetched == 2
    look(watch)
    assert host.fetched == 3


def test_changes_that_do_not_affect_the_filter_load_nothing(host: Host) -> None:
    watch = host.watch()
    look(watch, LOOKS_FOR_FLEET)
    host.machines = [machine(host="kvm09")]
    look(watch, LOOKS_FOR_FLEET)
    assert len(host.applied) == 1


def test_a_tap_with_a_new_guest_is_bound_at_the_next_look(host: Host) -> None:
    watch = host.watch()
    look(watch)
    host.taps = [tap(index=8, mac=OTHER)]
    look(watch)
    assert f"elements = {{ 8 . {OTHER} }}" in host.applied[-1]
    assert f"7 . {MAC}" not in host.applied[-1]


def test_a_new_machine_is_loaded(host: Host) -> None:
    watch = host.watch()
    look(watch)
    host.machines = [machine(), machine("web-1", mac=OTHER, address="10.0.0.8")]
    look(watch, LOOKS_FOR_FLEET)
    assert f"{OTHER} . 10.0.0.8" in host.applied[-1]
    assert len(host.applied) == 2


def test_without_a_server_the_rules_stay_and_taps_are_still_followed(host: Host) -> None:
    watch = host.watch()
    look(watch)
    host.trouble = ServerUnreachable("no server")
    look(watch, 2 * LOOKS_FOR_FLEET)
    assert len(host.applied) == 1
    host.taps = [tap(index=9)]
    look(watch)
    assert f"{MAC} . 10.0.0.7" in host.applied[-1]
    assert f"9 . {MAC}" in host.applied[-1]
    host.trouble = None
    look(watch, LOOKS_FOR_FLEET)
    assert [line for line in host.messages if line.startswith("the fleet")] == [
        "the fleet: no server; the last rules stay",
        "the fleet: works again",
    ]


def test_a_hanging_server_does_not_delay_changes_of_taps(host: Host) -> None:
    """Uses the real thread, with a fetch that the test releases."""
    answers, ended = threading.Event(), threading.Event()

    def fetch() -> Sequence[MachineAnswer]:
        try:
            if host.fetched:
                assert answers.wait(PATIENCE)
            return host.fetch()
        finally:
            ended.set()

    watch = FilterWatch(
        "kvm04",
        fetch=fetch,
        look=lambda: host.taps,
        say=host.messages.append,
        apply=host.apply,
        list_loaded=host.loaded,
    )
    watch.look()
    assert ended.wait(PATIENCE)
    until(lambda: look(watch) or host.applied, what="the first answer")
    ended.clear()
    look(watch, 2 * LOOKS_FOR_FLEET)  # fetches again, without an answer
    host.taps = [tap(index=9)]
    look(watch)
    assert f"9 . {MAC}" in host.applied[-1]
    host.machines = [machine(address="10.0.0.9")]
    answers.set()
    assert ended.wait(PATIENCE)
    until(lambda: look(watch) or "10.0.0.9" in host.applied[-1], what="the late answer")
    assert host.fetched == 2


def test_without_a_server_at_start_nothing_is_loaded(host: Host) -> None:
    host.trouble = ServerUnreachable("no server")
    look(host.watch(), 2)
    assert host.applied == []


def test_a_start_without_a_server_loads_the_saved_fleet(host: Host, tmp_path: Path) -> None:
    host.saved = SavedFleet(tmp_path, "KVM04")
    look(host.watch())
    first = host.applied[-1]
    assert host.saved.path.stat().st_mode & 0o777 == 0o600
    host.trouble = ServerUnreachable("no server")
    look(host.watch())
    assert host.applied == [first, first]
    assert SavedFleet(tmp_path, "kvm05").read() is None


def test_the_fleet_is_saved_after_changes_that_affect_the_filter(host: Host, tmp_path: Path) -> None:
    host.saved = SavedFleet(tmp_path, "kvm04")
    watch = host.watch()
    look(watch)
    host.saved.path.unlink()
    host.machines = [machine(host="kvm09")]
    look(watch, LOOKS_FOR_FLEET)
    assert host.saved.read() is None
    host.machines = [machine(address="10.0.0.9")]
    look(watch, LOOKS_FOR_FLEET)
    assert host.saved.read() == ("kvm04", host.machines)


def test_an_unwritable_folder_is_reported_and_delays_nothing(host: Host, tmp_path: Path) -> None:
    host.saved = SavedFleet(tmp_path / "missing", "kvm04")
    look(host.watch(), 2 * LOOKS_FOR_FLEET)
    assert len(host.applied) == 1
    part = tmp_path / "missing" / "fleet.part"
    assert (
        host.messages.count(f"the saved fleet: {part}: No such file or directory; the last rules stay") == 1
    )


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"typed": "kvm04", "host": "kvm04", "machines": [{}]}', "[" * 5000],
    ids=["empty", "list", "object", "machine", "nested without end"],
)
def test_an_unreadable_saved_fleet_is_ignored(tmp_path: Path, text: str) -> None:
    saved = SavedFleet(tmp_path, "kvm04")
    saved.path.write_text(text)
    assert saved.read() is None


def test_rules_removed_by_another_program_are_loaded_again(host: Host) -> None:
    watch = host.watch()
    look(watch)
    host.emptied = True
    look(watch, LOOKS_FOR_FLEET)
    assert len(host.applied) == 2
    assert "another program changed the filter: no filter is loaded" in host.messages


def test_rules_refused_by_nft_are_retried(host: Host) -> None:
    watch = host.watch()
    host.refuses = True
    look(watch, 2)
    host.refuses = False
    look(watch)
    assert len(host.applied) == 1
    assert host.messages[0] == "the rules: nft: Operation not permitted; the last rules stay"


def test_taps_come_from_the_running_domains(tmp_path: Path) -> None:
    (tmp_path / "web-0.xml").write_text(DOMAIN.format(mac=MAC.upper(), device="lo"))
    (tmp_path / "gone.xml").write_text(DOMAIN.format(mac=OTHER, device="not-there"))
    (tmp_path / "torn.xml").write_text("<domstatus")
    (tmp_path / "web-0.pid").write_text("7")
    assert taps_of(tmp_path) == [Tap(device="lo", index=1, macs=(MAC,))]
    assert taps_of(tmp_path / "no-libvirt") == []


def test_a_tap_claimed_by_two_guests_is_not_bound(tmp_path: Path) -> None:
    (tmp_path / "web-0.xml").write_text(DOMAIN.format(mac=MAC, device="lo"))
    (tmp_path / "web-1.xml").write_text(DOMAIN.format(mac=OTHER, device="lo"))
    assert taps_of(tmp_path) == []


def test_a_guest_with_two_devices_may_bond_them(tmp_path: Path) -> None:
    two = DOMAIN.format(mac=MAC, device="lo").replace(
        "</devices>",
        f"<interface type='bridge'><mac address='{OTHER}'/></interface>"
        f"<interface type='bridge'><mac address='{OTHER}'/><target dev='not-there'/></interface></devices>",
    )
    (tmp_path / "web-0.xml").write_text(two)
    assert taps_of(tmp_path) == [Tap(device="lo", index=1, macs=(MAC, OTHER))]


@pytest.mark.parametrize("device", ["", "../lo", "lo/../lo"])
def test_an_invalid_device_name_is_ignored(tmp_path: Path, device: str) -> None:
    (tmp_path / "web-0.xml").write_text(DOMAIN.format(mac=MAC, device=device))
    assert taps_of(tmp_path) == []
