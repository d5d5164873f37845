"""The sources of settings, their precedence, and the addresses for guests."""

from pathlib import Path

import httpx
import pytest

from tests.helpers.programs.process import Guest, Program

FLEET = """
[defaults]
driver = "simulated"

[hosts.h]

[[machines]]
name = "four"
host = "h"
address = "127.0.0.1"

[[machines]]
name = "six"
host = "h"
address = "::1"

[[machines]]
name = "blue"
host = "h"
network = "blue"
address = "127.0.0.1"
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    return path


def name_of(url: str, address: str) -> str:
    params = {"api-version": "2021-02-01", "format": "text"}
    with Guest(url, address=address).client as client:
        path, headers = "/metadata/instance/compute/name", {"Metadata": "true"}
        return client.get(path, params=params, headers=headers).text


def polls_in_a_row(program: Program) -> list[int]:
    guest = program.guest("127.0.0.1")
    return [guest.poll().status_code for _ in range(30)]


def test_guests_are_answered_at_several_ipv4_and_ipv6_addresses_and_by_network(
    tmp_path: Path, fleet: Path
) -> None:
    places = ("127.0.0.1:0", "127.0.0.5:0", "[::1]:0", "blue@127.0.0.1:0")
    with Program(tmp_path, "--fleet", fleet, listen=places) as program:
        first, second, sixth, blue = program.guests
        assert name_of(first, "127.0.0.1") == "four"
        assert name_of(second, "127.0.0.1") == "four"
        assert name_of(sixth, "::1") == "six"
        assert name_of(blue, "127.0.0.1") == "blue"
        assert httpx.URL(second).host == "127.0.0.5"
        assert httpx.URL(sixth).host == "::1"


def test_a_host_name_listens_on_all_its_addresses(tmp_path: Path, fleet: Path) -> None:
    with Program(tmp_path, "--fleet", fleet, listen=["localhost:0"]) as program:
        named = {name_of(url, httpx.URL(url).host) for url in program.guests}
        assert "four" in named
        assert named <= {"four", "six"}


def test_a_setting_is_read_from_the_file(tmp_path: Path, fleet: Path) -> None:
    (tmp_path / "settings.toml").write_text(f"""
        fleet = "{fleet}"
        clock = "manual"
        database = "sqlite:///other.db"
        [guest]
        rate = 0
        listen = ["127.0.0.1:0", "127.0.0.5:0"]
        [operator]
        listen = "127.0.0.1:0"
        [times]
        reboot-notice = "20m"
        """)
    with Program(tmp_path, "--config", "settings.toml", clock=None, operator=None, listen=()) as program:
        assert set(polls_in_a_row(program)) == {200}
        assert len(program.guests) == 2
        assert (tmp_path / "other.db").exists()
        clock = program.get("/v1/clock")
        assert clock["kind"] == "manual"
        event = program.post("/v1/machines/four/restart")["event"]
        program.advance(20 * 60 - 1)
        assert program.get(f"/v1/events/{event['id']}")["event"]["status"] == "Scheduled"
        program.advance(2)  # NotBefore is rounded up to a whole second
        assert program.get(f"/v1/events/{event['id']}")["event"]["status"] == "Started"


def test_the_environment_overrides_the_file(tmp_path: Path, fleet: Path) -> None:
    (tmp_path / "settings.toml").write_text('database = "sqlite:///file.db"\n[guest]\nrate = 0\n')
    environment = {"FOREWARN_GUEST_RATE": "1", "FOREWARN_DATABASE": "sqlite:///environment.db"}
    flags = ("--config", "settings.toml", "--fleet", fleet)
    with Program(tmp_path, *flags, environment=environment) as program:
        assert 429 in polls_in_a_row(program)
        assert (tmp_path / "environment.db").exists()
        assert not (tmp_path / "file.db").exists()


def test_a_flag_overrides_the_environment(tmp_path: Path, fleet: Path) -> None:
    environment = {
        "FOREWARN_CLOCK": "x10",
        "FOREWARN_DATABASE": "sqlite:///environment.db",
        "FOREWARN_GUEST_LISTEN": "127.0.0.6:0,127.0.0.7:0",
        "FOREWARN_OPERATOR_LISTEN": "127.0.0.8:0",
    }
    flags = ("--database", "sqlite:///flag.db", "--fleet", fleet)
    with Program(tmp_path, *flags, environment=environment) as program:
        assert program.get("/v1/clock")["kind"] == "manual"
        assert [httpx.URL(url).host for url in program.guests] == ["127.0.0.1"]
        assert httpx.URL(program.operators).host == "127.0.0.1"
        assert (tmp_path / "flag.db").exists()
        assert not (tmp_path / "environment.db").exists()


def test_the_environment_may_have_several_addresses(tmp_path: Path, fleet: Path) -> None:
    environment = {
        "FOREWARN_GUEST_LISTEN": "127.0.0.6:0,127.0.0.7:0",
        "FOREWARN_OPERATOR_LISTEN": "[::1]:0",
        "FOREWARN_FLEET": str(fleet),
    }
    with Program(tmp_path, listen=(), operator=None, environment=environment) as program:
        assert [httpx.URL(url).host for url in program.guests] == ["127.0.0.6", "127.0.0.7"]
        assert httpx.URL(program.operators).host == "::1"
        assert len(program.get("/v1/machines")["machines"]) == 3
