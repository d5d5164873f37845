"""The bed itself: guests boot, log and move, and nothing of the bed remains."""

import os
import signal
import subprocess
import sys

from tests.helpers.programs.process import until
from tests.machines.bed import Bed
from tests.machines.bed.bed import BEDS, SERVER, remove_stale


def test_a_guest_boots_and_a_reboot_shows_on_its_console(bed: Bed) -> None:
    guest = bed.guest("web-0", number=21)
    first = guest.console.wait_for_boot()
    bed.hosts["kvm01"].virsh("reset", "web-0")
    assert guest.console.wait_for_boot(2) != first


def test_a_guest_shuts_down_at_its_power_button_unless_it_ignores_it(bed: Bed) -> None:
    host = bed.hosts["kvm01"]
    heeds, ignores = bed.guest("heeds", number=21), bed.guest("ignores", number=22, flags=["acpi=ignore"])
    for guest in (heeds, ignores):
        guest.console.wait_for_boot()
        host.virsh("shutdown", guest.name, "--mode", "acpi")
    until(lambda: host.state("heeds") == "shut off", what="a guest that is off")
    ignores.console.wait_for("ignores its power button")
    assert host.state("ignores") == "running"


def test_a_running_guest_moves_with_its_network_disk(bed: Bed) -> None:
    guest = bed.guest("web-0", number=21, disks=[bed.network_disk("web-0")])
    guest.console.wait_for("guest has disk vda: nothing")
    guest.console.wait_for_boot()
    target = bed.hosts["kvm02"]
    bed.hosts["kvm01"].virsh(
        "migrate", "--live", "--p2p", "--persistent", "--undefinesource", guest.name, target.uri
    )
    ticks = len(guest.console.matching("guest ticks"))
    guest.console.wait_for("guest ticks", times=ticks + 2)
    assert (bed.where(guest.name), guest.console.boots) == ({"kvm02": "running"}, 1)


def test_guests_run_on_while_libvirtd_is_restarted(bed: Bed) -> None:
    host = bed.hosts["kvm01"]
    guest = bed.guest("web-0", number=21)
    guest.console.wait_for_boot()
    host.kill()
    host.start()
    assert (host.state(guest.name), guest.console.boots) == ("running", 1)


def test_a_thread_that_enters_the_bed_is_in_the_servers_network(bed: Bed) -> None:
    outside = os.readlink("/proc/thread-self/ns/net")
    with bed.entered():
        assert SERVER in subprocess.check_output(["ip", "addr"], text=True)
    assert os.readlink("/proc/thread-self/ns/net") == outside


def test_nothing_remains_of_a_bed_whose_builder_was_killed() -> None:
    program = (
        "from tests.machines import bed\n"
        "with bed.built('killed') as made:\n"
        "    print(*(host.keeper.number for host in made.hosts.values()), flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as builder:
        assert builder.stdout is not None
        numbers = builder.stdout.readline().split()
        assert (BEDS / "killed").exists()
        builder.send_signal(signal.SIGKILL)
        until(
            lambda: not any(os.path.exists(f"/proc/{number}") for number in numbers),
            what="the end of all that ran in it",
        )
    remove_stale()
    assert not (BEDS / "killed").exists()
