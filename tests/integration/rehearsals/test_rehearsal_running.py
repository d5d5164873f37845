"""`forewarn rehearse` on a running server, in a project for rehearsals only."""

import json
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Any

import pytest

from tests.helpers.programs.process import (
    FOREWARN,
    PATIENCE,
    Output,
    Program,
    ending,
    free_port,
    run,
    started,
    until,
)

CURL = Path(__file__).with_name("curl-guest.sh")

FLEET = """
[projects.lab]
rehearsal = true
[projects.shop]

[groups.front]
kind = "availability-set"
update-domains = 2
project = "lab"

[defaults]
driver = "simulated"

[hosts.rack-1]
[hosts.rack-2]
[hosts.shared]

[[machines]]
name = "front-0"
group = "front"
host = "rack-1"
port = {front}

[[machines]]
name = "front-1"
group = "front"
host = "shared"
update-domain = 1
address = "127.0.0.51"

[[machines]]
name = "batch_0"
project = "lab"
host = "rack-2"
priority = "spot"
port = {batch}

[[machines]]
name = "till"
project = "shop"
host = "shared"
"""

# Redeployed in a week, unless a guest approves.
SLOW = """
[scenario]
name = "slow"
clock = "x10"
start = "now"

[[steps]]
order = { host = "host-1", action = "degrade" }

[expect]
"""
ROUGH = """
[scenario]
name = "rough"
clock = "x60"

[[steps]]
fault = { kind = "503", machines = ["batch_0"], for = "1m" }

[[steps]]
at = "2m"
order = { machine = "batch_0", action = "restart" }

[[steps]]
at = "2m"
fault = { kind = "vanished", for = "1m" }

[[steps]]
at = "4m"
fault = { kind = "empty", for = "1m" }

[expect]
saw = true
recovered = true
"""


class Site:
    """A server with a project for rehearsals and another one, and guests that use curl."""

    def __init__(self, folder: Path, stack: ExitStack, clock: str, operator: str) -> None:
        self.ports = {"front-0": free_port(), "batch_0": free_port()}
        fleet = FLEET.format(front=self.ports["front-0"], batch=self.ports["batch_0"])
        (folder / "fleet.toml").write_text(fleet)
        self.folder = folder
        self._stack = stack
        # No rate limit: on a fast clock, guests poll more often than usual.
        unlimited = {"FOREWARN_GUEST_RATE": "0"}
        self.program = stack.enter_context(
            Program(folder, "--fleet", "fleet.toml", clock=clock, operator=operator, environment=unlimited)
        )

    def guest(self, machine: str) -> None:
        """Start a guest that approves every event."""
        command = [str(CURL), f"http://127.0.0.1:{self.ports[machine]}", "approve"]
        process = self._stack.enter_context(ending(started(command, self.folder)))
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            Output(stream)

    def command(self, scenario: str, *more: str | Path, project: str | None = "lab") -> list[str | Path]:
        where = ("--project", project) if project else ()
        return ["rehearse", scenario, "--server", self.program.operators, *where, *more]

    def rehearse(
        self, scenario: str, *more: str | Path, project: str | None = "lab"
    ) -> CompletedProcess[str]:
        return run(self.folder, *self.command(scenario, *more, project=project))

    @contextmanager
    def playing(self, scenario: str) -> Iterator[tuple[Popen[str], Output]]:
        """Begin a rehearsal of front-0 without waiting for it."""
        (self.folder / "playing.toml").write_text(scenario)
        command = [FOREWARN, *map(str, self.command("playing.toml", "--machine", "web-0=front-0"))]
        with ending(started(command, self.folder)) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            out, _ = Output(process.stdout), Output(process.stderr)
            yield process, out

    def orders(self) -> list[dict[str, Any]]:
        return self.program.all("orders")


@contextmanager
def site_with(folder: Path, *, clock: str, operator: str = "127.0.0.1:0") -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(folder, stack, clock, operator)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_with(tmp_path, clock="manual") as built:
        yield built


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a site without any orders."""
    with site_with(tmp_path_factory.mktemp("quiet"), clock="manual") as built:
        yield built


needs_curl = pytest.mark.skipif(
    shutil.which("curl") is None, reason="curl, the guest of these tests, is absent"
)


# Rehearsals


@needs_curl
def test_running_guests_rehearse_an_eviction(site: Site) -> None:
    site.guest("batch_0")
    ran = site.rehearse("spot-eviction", "--json")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    (guest,) = json.loads(ran.stdout)["guests"]
    (event,) = guest["events"]
    assert (guest["machine"], event["type"]) == ("batch_0", "Preempt")
    assert event["announced_seconds"] <= event["seen_seconds"] <= event["approved_seconds"]
    assert event["used_seconds"] < event["notice_seconds"]
    (order,) = site.orders()
    assert (order["rehearsal"], order["by"], order["state"]) == ("spot-eviction", "operator", "done")
    placed = next(each for each in site.program.history() if each["kind"] == "order-placed")
    assert placed["reason"] == "evict (rehearsal of spot-eviction)"


@needs_curl
def test_running_guests_meet_faults(site: Site) -> None:
    site.guest("batch_0")
    (site.folder / "rough.toml").write_text(ROUGH)
    ran = site.rehearse("rough.toml", "--json")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    (guest,) = json.loads(ran.stdout)["guests"]
    (event,) = guest["events"]
    assert guest["polls"] > guest["spoiled"] > 0
    assert event["seen_seconds"] >= 180
    for met in ("a 503", "an empty answer"):
        assert f"meets {met}" in ran.stderr
    told = [(each["kind"], each["reason"]) for each in site.program.history()]
    assert ("rehearsal-faults", "rough: 503 for batch_0, vanished, empty") in told
    assert told[-1] == ("rehearsal-ended", "rough")


@needs_curl
def test_other_machines_can_replace_those_of_the_scenario_with_their_hosts(site: Site) -> None:
    site.guest("front-0")
    ran = site.rehearse("host-update", "--machine", "web-0=front-0")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert "maintenance rack-1 (reboot)" in ran.stdout
    assert "host-update: as expected" in ran.stdout
    (order,) = site.orders()
    assert (order["host"], order["rehearsal"]) == ("rack-1", "host-update")


@needs_curl
def test_a_manual_clock_is_not_advanced_more_often_than_necessary(site: Site) -> None:
    site.guest("front-0")
    ran = site.rehearse("user-restart", "--machine", "web-0=front-0", "--speed", "20")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    turned = [each for each in site.program.history() if each["kind"] == "clock-advanced"]
    assert not [each["reason"] for each in turned if re.match(r"by \d(\.\d+)? s ", each["reason"])]
    listed = run(site.folder, "history", "--server", site.program.operators).stdout
    assert listed.count("clock-advanced") < len(turned)


@needs_curl
def test_a_terminated_machine_has_completed_its_rehearsal(site: Site) -> None:
    site.guest("front-0")
    ran = site.rehearse("terminate", "--machine", "web-0=front-0")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert site.program.call("GET", "/v1/machines/front-0").status_code == 404


@needs_curl
def test_a_clock_that_runs_by_itself_is_not_advanced(tmp_path: Path) -> None:
    with site_with(tmp_path, clock="x60") as site:
        site.guest("front-0")
        ran = site.rehearse("user-restart", "--machine", "web-0=front-0")
        assert ran.returncode == 0, ran.stderr + ran.stdout
        assert "(clock x60)" in ran.stdout
        # Ten seconds, 15 minutes of notice, and the 90 seconds in which the event stays listed.
        assert "Without approvals it then takes about 17 s." in ran.stdout
        refused = site.rehearse("user-restart", "--machine", "web-0=front-0", "--speed", "9")
        assert refused.returncode == 1
        assert "--speed needs a manual clock, and the server's clock is x60" in refused.stderr


def test_an_interrupted_rehearsal_cancels_its_orders(site: Site) -> None:
    with site.playing(SLOW) as (process, out):
        out.wait_for("Redeploy of front-0 is announced")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 1
        out.finish()
    assert "it was interrupted" in out.text
    (order,) = site.orders()
    assert order["state"] == "cancelled"
    assert f"order {order['id']} is cancelled" in out.text


def test_a_rehearsal_ended_by_another_user_cancels_its_orders_and_reports(site: Site) -> None:
    with site.playing(SLOW) as (process, out):
        out.wait_for("Redeploy of front-0 is announced")
        ran = run(site.folder, "project", "rehearsal", "lab", "--end", "--server", site.program.operators)
        assert ran.returncode == 0, ran.stderr
        assert process.wait(PATIENCE) == 1
        out.finish()
    (order,) = site.orders()
    assert order["state"] == "cancelled"
    assert (
        f"Rehearsal ended; the guests get normal answers again. Cancelled orders: {order['id']}."
        in ran.stdout
    )
    assert "it could not go on: operator has ended the rehearsal of slow in project lab" in out.text


def test_it_continues_over_a_restart_of_the_server(tmp_path: Path) -> None:
    with site_with(tmp_path, clock="manual", operator=f"127.0.0.1:{free_port()}") as site:
        with site.playing(SLOW) as (process, out):
            out.wait_for("Redeploy of front-0 is announced")
            site.program.restart()
            until(
                lambda: site.program.call("GET", "/v1/projects/lab/rehearsal").status_code == 200,
                what="the server to be told again",
            )
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 1
            out.finish()
        (order,) = site.orders()
        assert order["state"] == "cancelled"


@needs_curl
def test_a_user_rehearses_in_their_only_project(tmp_path: Path) -> None:
    with site_with(tmp_path, clock="x120") as site:
        site.guest("front-0")
        operator = token(site, "--name", "olga", "--role", "operator")
        user = token(site, "--name", "lea", "--role", "user", "--project", "lab", "--token", operator)
        play = ("--machine", "web-0=front-0", "--token", user)
        ran = site.rehearse("user-restart", *play, project=None)
        assert ran.returncode == 0, ran.stderr + ran.stdout
        assert "Rehearsing user-restart in project lab" in ran.stdout
        refused = site.rehearse("live-migration", *play, project=None)
        assert refused.returncode == 1
        assert "live-migration orders freeze web-0, which needs an operator's token" in refused.stderr


def token(site: Site, *given: str) -> str:
    made = run(site.folder, "token", "create", *given, "--server", site.program.operators, "--json")
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["secret"])


# Refusals


@pytest.mark.parametrize(
    ("scenario", "more", "project", "why"),
    [
        (
            "spot-eviction",
            (),
            "shop",
            "project shop is not for rehearsals: declare `rehearsal = true` in [projects.shop] of the fleet",
        ),
        ("spot-eviction", (), "none", 'project "none" does not exist'),
        ("spot-eviction", (), None, "name a project with --project; projects for rehearsals: lab"),
        ("user-restart", (), "lab", 'project lab has no machine "web-0": --machine web-0=NAME says which'),
        (
            "user-restart",
            ("--machine", "web-9=front-0"),
            "lab",
            "user-restart has no machine web-9, only web-0",
        ),
        (
            "user-restart",
            ("--machine", "web-0=front-0?x=1"),
            "lab",
            'project lab has no machine "front-0?x=1": --machine web-0=NAME says which',
        ),
        (
            "host-update",
            ("--machine", "web-0=front-1"),
            "lab",
            "host shared also carries machines of shop, and an order on a host affects all its machines",
        ),
        (
            "rolling-host-update",
            ("--machine", "web-0=front-0", "--machine", "web-1=front-0", "--machine", "web-2=batch_0"),
            "lab",
            "machine front-0 cannot play both web-0 and web-1",
        ),
        (
            "spot-eviction",
            ("--machine", "batch_0=front-0"),
            "lab",
            "spot-eviction evicts batch_0, but machine front-0 is regular: only spot machines are evicted",
        ),
    ],
)
def test_a_refused_rehearsal_has_no_effect(
    quiet: Site, scenario: str, more: tuple[str, ...], project: str | None, why: str
) -> None:
    before = quiet.program.history(), quiet.program.get("/v1/clock")
    ran = quiet.rehearse(scenario, *more, project=project)
    assert ran.returncode == 1
    assert why in ran.stderr
    assert (quiet.program.history(), quiet.program.get("/v1/clock")) == before


@pytest.mark.parametrize(
    "more", [("--", "true"), ("--client-url-file", "urls.json"), ("--machine", "web-0"), ("--wait", "soon")]
)
def test_options_of_a_private_service_are_wrong_usage_on_a_running_server(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    ran = run(tmp_path, "rehearse", "user-restart", "--server", "http://127.0.0.1:1", *more)
    assert ran.returncode == 2


def test_an_unreachable_server_is_reported(tmp_path: Path) -> None:
    ran = run(tmp_path, "rehearse", "user-restart", "--project", "lab", "--server", "http://127.0.0.1:1")
    assert ran.returncode == 3
    assert "no server answers at http://127.0.0.1:1" in ran.stderr


def test_a_rehearsal_without_polls_ends_and_names_the_url(site: Site) -> None:
    play = ("--machine", "web-0=front-1", "--wait", "0.5")
    ran = site.rehearse("user-restart", *play)
    assert ran.returncode == 1
    assert (
        "front-1 did not poll within 0.5 s: its guest polls /metadata/scheduledevents of the server's guest "
        "endpoint, from 127.0.0.51"
    ) in ran.stdout
    assert site.orders() == []
