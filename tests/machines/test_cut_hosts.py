"""Hosts drop packets at random: libvirt's client library may crash, and guests still get answers.

With FOREWARN_TEST_LONG=1, the test runs for ten minutes.
"""

import os
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from forewarn.clock import monotonic
from tests.helpers.programs import process
from tests.helpers.programs.process import FOREWARN, Output
from tests.helpers.service.counts import LONG
from tests.machines.bed import Bed, Guest
from tests.machines.bed.bed import METADATA, SERVER
from tests.machines.lifecycle import lifecycle
from tests.machines.serving import Service, serving

# Seconds in total, of each cut, and between libvirt's keepalive messages. A cut must be longer than four of
# these intervals: then the library closes the connection, and may crash.
SECONDS, CUT, KEEPALIVE = (600.0, 40.0, "5s") if LONG else (45.0, 10.0, "1s")
POLL_EVERY = 0.25
# A client in the server's own network instead of a machine.
CALLER = f"""
[hosts.beside]
driver = "external"
[[machines]]
name = "caller"
host = "beside"
address = "{SERVER}"
"""


class Polls:
    """Consecutive polls of one client."""

    def __init__(self) -> None:
        self.answered = 0
        self.failed: list[str] = []
        self.longest = 0.0
        self._over = threading.Event()

    def go_on(self, bed: Bed) -> None:
        """Poll until `stop`."""
        with bed.entered():
            while not self._over.wait(POLL_EVERY):
                began = monotonic()
                try:
                    caller = process.Guest(f"http://{METADATA}", address=SERVER)
                    with caller.client:
                        caller.document()
                except Exception as error:  # noqa: BLE001 - counted
                    self.failed.append(repr(error))
                else:
                    self.answered += 1
                self.longest = max(self.longest, monotonic() - began)

    def stop(self) -> None:
        self._over.set()


@contextmanager
def polling(bed: Bed) -> Iterator[Polls]:
    polls = Polls()
    thread = threading.Thread(target=polls.go_on, args=(bed,))
    thread.start()
    try:
        yield polls
    finally:
        polls.stop()
        thread.join()


@contextmanager
def importing(bed: Bed, folder: Path) -> Iterator[Output]:
    """Poll the hosts continuously."""
    command = [FOREWARN, "fleet", "import", "--from", "libvirt", "--watch", "--every", "1s"]
    with subprocess.Popen(
        [*bed.inside, *command],
        cwd=folder,
        env={**os.environ, "FOREWARN_SERVER": "http://127.0.0.1:8170"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        assert program.stdout is not None
        output = Output(program.stdout)
        try:
            yield output
            assert program.poll() is None, output.text
        finally:
            program.kill()
            output.finish()


def test_guests_are_answered_while_hosts_are_cut_at_random(
    bed: Bed, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    guests = {
        bed.guest(f"web-{number}", number=21 + number, on=host, flags=["approve=yes"]): host
        for number, host in enumerate(bed.hosts)
    }
    options = {"keepalive": f'"{KEEPALIVE}"', "connect-for": '"5s"', "freeze-for": '"2s"'}
    with (
        lifecycle(bed) as happened,
        serving(bed, tmp_path, guests, options=options, more=CALLER) as service,
    ):
        for guest in guests:
            guest.console.wait_for("guest sees")
        server = service.process.pid
        with polling(bed) as polls, importing(bed, tmp_path) as imports:
            cuts = cut_at_random(bed, service, guests)
        crashes = driver_crashes(service)
        figure(
            f"{cuts.total()} cuts of {CUT:g} s: {polls.answered} polls answered, {len(polls.failed)} failed, "
            f"the longest {polls.longest * 1000:.0f} ms; {crashes} crashes of libvirt's client library"
        )
        assert polls.failed == []
        assert service.runs
        assert service.process.pid == server
        assert "libvirt.so" not in Path(f"/proc/{server}/maps").read_text()
        assert (
            sum("error: the process of driver libvirt was killed" in line for line in service.err.lines)
            == crashes
        )
        # The reason is a timeout or a crash of the driver's process.
        assert "cannot be reached" in imports.text, imports.text
        for guest in guests:
            seen = next(at for at, line in enumerate(guest.console.lines) if "guest sees" in line)
            assert "guest is not answered" not in guest.console.lines[seen:]
    for guest in guests:
        assert happened.count(guest.name, "Suspended Paused") == cuts[guest.name]
        assert guest.console.boots == 1


def cut_at_random(bed: Bed, service: Service, guests: Mapping[Guest, str]) -> Counter[str]:
    """Cut a host shortly before or after the beginning of a freeze; count by guest."""
    chosen, pause = random.Random(os.environ.get("FOREWARN_TEST_SEED")), threading.Event()
    ends, cuts = monotonic() + SECONDS, Counter[str]()
    while monotonic() < ends:
        guest, host = chosen.choice(list(guests.items()))
        order = service.order(f"/v1/machines/{guest.name}/freeze")
        pause.wait(chosen.uniform(0, 4))
        with bed.hosts[host].cut():
            pause.wait(CUT)
        cuts[guest.name] += 1
        service.wait_for_order(order)
    return cuts


def driver_crashes(service: Service) -> int:
    metrics = service.call("GET", "/metrics").text
    name = 'forewarn_driver_crashes_total{driver="libvirt"} '
    return int(float(next(line for line in metrics.splitlines() if line.startswith(name)).removeprefix(name)))
