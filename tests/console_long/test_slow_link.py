"""The first view over a slow connection: 150 ms and 1.6 Mbit/s, emulated by Chromium."""

import sys
from pathlib import Path

import pytest
from bench.fleets import racks

from tests.console_long.test_speed import FIRST_VIEW, with_fleet
from tests.helpers.console.browsing import wait_until
from tests.helpers.console.console_fixtures import Serve, Visit
from tests.helpers.programs import wheels

LATENCY = 150  # milliseconds
BYTES_PER_SECOND = 200_000
SLOW = {
    "offline": False,
    "latency": LATENCY,
    "downloadThroughput": BYTES_PER_SECOND,
    "uploadThroughput": BYTES_PER_SECOND,
}
TRIES = 3
SOON = 2000  # milliseconds


@pytest.mark.parametrize(("hundreds", "is_bundled"), [(1, False), (1, True), (10, False), (10, True)])
def test_a_first_view_over_a_slow_link(
    serve: Serve,
    visit: Visit,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    hundreds: int,
    is_bundled: bool,
) -> None:
    environment = {"PYTHONPATH": str(wheels.unpacked(tmp_path))} if is_bundled else {}
    program = serve(store=with_fleet(racks(hundreds)), clock="x1", environment=environment)
    took, asked, kilobytes = [], 0, 0.0
    for _ in range(TRIES):
        visitor = visit(program, is_first=True)
        page = visitor.open("/healthz")
        link = page.context.new_cdp_session(page)
        sizes: list[float] = []
        link.on("Network.loadingFinished", lambda done, sizes=sizes: sizes.append(done["encodedDataLength"]))
        link.send("Network.enable")
        link.send("Network.emulateNetworkConditions", SLOW)
        requests: list[object] = []
        visitor.watch(lambda request, heard=requests: heard.append(request))
        page.goto(f"{program.operators}/console/fleet")
        wait_until(page, FIRST_VIEW)
        took.append(float(page.evaluate(FIRST_VIEW)))
        visitor.leave()
        asked, kilobytes = len(requests), sum(sizes) / 1000
    kind = "a wheel's bundle" if is_bundled else "a clone's files"
    with capsys.disabled():
        times = ", ".join(f"{each:.0f} ms" for each in took)
        load = f"{asked} requests, {kilobytes:.0f} kB"
        sys.stdout.write(f"\nslow link, first view of {hundreds}00 machines, {kind}: {times}; {load}\n")
    if is_bundled:
        assert min(took) < SOON, f"milliseconds: {took}"
