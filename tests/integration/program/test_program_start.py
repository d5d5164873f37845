"""The program on the sample fleet: it starts, prints its addresses, answers callers, and stops."""

import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.helpers.programs.process import PATIENCE, Held, Program, free_port, sample_fleet, until

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.usefixtures("unforked")


def machines(fleet: Path) -> list[dict[str, Any]]:
    declared: list[dict[str, Any]] = tomllib.loads(fleet.read_text())["machines"]
    return declared


def name_of(guest: httpx.Client) -> str:
    """Return a guest's name from instance metadata."""
    params = {"api-version": "2021-02-01", "format": "text"}
    answer = guest.get("/metadata/instance/compute/name", params=params, headers={"Metadata": "true"})
    assert answer.status_code == 200, answer.text
    return answer.text


def test_every_machine_of_the_sample_fleet_is_answered_by_address_and_by_port(tmp_path: Path) -> None:
    fleet = sample_fleet(tmp_path, ports=True)
    with Program(tmp_path, "--fleet", fleet, clock="system") as program:
        for machine in machines(fleet):
            for guest in (program.guest(machine["address"]), program.at_port(machine["port"])):
                assert guest.document() == {"DocumentIncarnation": 1, "Events": []}
                assert name_of(guest.client) == machine["name"]


def test_an_unknown_caller_gets_no_data(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        assert program.guest("127.0.1.99").poll().status_code == 404


def test_the_start_prints_addresses_and_commands_to_try(tmp_path: Path) -> None:
    fleet = sample_fleet(tmp_path, ports=True)
    with Program(tmp_path, "--fleet", fleet) as program:
        ports = sorted(machine["port"] for machine in machines(fleet))
        assert program.stop() == 0
        said = program.out.text
    assert (
        f"guests     {program.guests[0]}, identified by source address; 14 machines have their own ports"
        in said
    )
    assert f"{ports[0]} to {ports[-1]}" in said
    assert f"operators  {program.operators}" in said
    assert "machine restart web-0" in said


def test_without_a_fleet_the_start_prints_how_to_declare_one(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        said = program.out.wait_for("There is no machine yet.")
        assert "docs/reference/fleet-file.md" in said
        assert program.out.wait_for(f"--server {program.operators} fleet apply FILE") == ""


def test_an_unknown_variable_causes_a_warning(tmp_path: Path) -> None:
    with Program(tmp_path, environment={"FOREWARN_GUEST_RAT": "7", "FOREWARN_TOKEN": "x"}) as program:
        assert program.stop() == 0
    assert "FOREWARN_GUEST_RAT is not a setting and is ignored; did you mean FOREWARN_GUEST_RATE?" in (
        program.err.text
    )
    assert "FOREWARN_TOKEN" not in program.err.text


def test_health_is_answered_only_after_guests_are_answered(tmp_path: Path) -> None:
    fleet, place = sample_fleet(tmp_path, ports=True), f"127.0.0.1:{free_port()}"
    program = Program(tmp_path, "--fleet", fleet, operator=place)
    program.spawn()
    try:
        # Polled from the start, to get the first possible answer.
        answer = until(lambda: _health(place), what="an answer of /healthz")
        assert answer.json() == {"status": "ok"}
        for machine in machines(fleet):
            assert program.at_port(machine["port"]).poll().status_code == 200
    finally:
        program.kill()


def _health(place: str) -> httpx.Response | None:
    try:
        return httpx.get(f"http://{place}/healthz", timeout=PATIENCE, trust_env=False, verify=False)
    except httpx.ConnectError:
        return None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_ends_the_server_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    quiet = {"FOREWARN_LOG_LEVEL": "warning"}
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), environment=quiet) as program:
        etag = program.guest("127.0.1.10").poll().headers["etag"]
        # Neither an idle connection nor a long poll delays the end.
        held = Held(program.guests[0], address="127.0.1.11", If_None_Match=etag, Prefer="wait=300")
        assert program.guest("127.0.1.12").poll().status_code == 200
        assert not held.answered
        program.process.send_signal(number)
        assert program.process.wait(PATIENCE) == 0
        assert held.answer().startswith("HTTP/1.1 304 ")
        program.err.finish()
        program.out.finish()
        assert program.err.text == ""
        assert program.out.lines[-1] == "Stopping …"


def test_make_prints_its_command_in_one_line() -> None:
    words = ["make", "--dry-run", "run", "GUEST=127.0.0.1:1"]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    (line,) = (line for line in told.stdout.splitlines() if "forewarn serve" in line)
    assert line.endswith("--clock system --guest 127.0.0.1:1")
