"""Refused starts: the program names the error and changes nothing."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.programs.process import Program, free_port, run, sample_fleet

FREE = ("--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--clock", "manual")


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


# Another server


def test_a_second_server_on_the_same_database_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        second = run(tmp_path, "serve", *FREE)
        assert second.returncode == 1
        assert second.stderr == (
            f"forewarn: another server uses forewarn.db (process {program.process.pid}): "
            "stop it first, or use another --database\n"
        )
        assert program.guest("127.0.1.10").poll().status_code == 200
        program.post("/v1/machines/web-0/restart")


def test_a_killed_server_leaves_no_lock_behind(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        program.restart()
        assert program.get("/healthz") == {"status": "ok"}


# The fleet file


def test_a_bad_fleet_file_names_the_field_and_changes_nothing(tmp_path: Path) -> None:
    fleet = sample_fleet(tmp_path)
    with Program(tmp_path, "--fleet", fleet) as program:
        before = program.get("/v1/fleet"), program.history()
        program.stop()
    sound = fleet.read_text()
    fleet.write_text(
        sound.replace('name = "web-3"\ngroup = "web"\nhost = "host-1"', 'name = "web-3"\nhost = 7')
    )
    refused = run(tmp_path, "serve", "--fleet", fleet, *FREE)
    assert refused.returncode == 2
    assert 'machines[3] "web-3": host: expected' in refused.stderr
    assert "fleet.toml" in refused.stderr
    with Program(tmp_path) as program:
        assert (program.get("/v1/fleet"), program.history()) == before


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("[groups.web\n", 2, "is not TOML"),
        ('[[machines]]\nname = "web-0"\nhost = 7\n', 2, "host: expected"),
        ('[[machines]]\nname = "web-0"\nhost = "nowhere"\n', 2, 'machines[0] "web-0": host: expected'),
        ('[hosts.a]\ndriver = "vmware"\n', 2, "hosts.a: driver: expected"),
    ],
)
def test_a_refused_first_fleet_file_leaves_no_store(tmp_path: Path, text: str, code: int, why: str) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(text)
    refused = run(tmp_path, "serve", "--fleet", fleet, "--database", f"sqlite:///{folder}/new.db", *FREE)
    assert refused.returncode == code
    assert why in refused.stderr
    assert f"{fleet}" in refused.stderr
    assert list(folder.iterdir()) == []


def test_a_fleet_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text("[groups.web\n")
    refused = run(tmp_path, "serve", "--fleet", fleet, *FREE)
    assert refused.returncode == 2
    assert f"{fleet} is not TOML" in refused.stderr


def test_a_fleet_file_that_conflicts_with_open_work_is_refused(tmp_path: Path) -> None:
    fleet = sample_fleet(tmp_path)
    with Program(tmp_path, "--fleet", fleet) as program:
        program.guest("127.0.1.10").document()
        program.post("/v1/machines/web-0/restart")
    fleet.write_text(fleet.read_text().replace('group = "web"', 'project = "default"'))
    refused = run(tmp_path, "serve", "--fleet", fleet, "--clock", "manual", *FREE)
    assert refused.returncode == 1
    assert f'forewarn: {fleet}: machine "web-0" is named in event' in refused.stderr


def test_a_fleet_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", "--fleet", "nowhere.toml", *FREE)
    assert refused.returncode == 2
    assert "fleet file nowhere.toml cannot be read" in refused.stderr


def test_a_fleet_file_is_applied_only_if_it_differs_from_the_last_one(tmp_path: Path) -> None:
    fleet = sample_fleet(tmp_path)
    with Program(tmp_path, "--fleet", fleet) as program:
        assert "  + 1 project, 3 hosts, 3 groups, 14 machines" in program.out.lines
        # A change by an operator stays as long as the file does not change.
        assert program.call("DELETE", "/v1/machines/db").status_code == 200
        program.stop()
        program.start()
        assert not [line for line in program.out.lines if "Applying" in line]
        assert program.call("GET", "/v1/machines/db").status_code == 404
        program.stop()
        fleet.write_text(fleet.read_text().replace('name = "batch_2"', 'name = "batch_7"'))
        program.start()
        first, *rest = program.out.lines
        assert first == f"Applying {fleet}:"
        assert sorted(line.split()[:3] for line in rest[:3]) == [
            ["+", "machine", "batch_7"],
            ["+", "machine", "db"],
            ["-", "machine", "batch_2"],
        ]
        assert program.call("GET", "/v1/machines/batch_7").status_code == 200


# Settings


@pytest.mark.parametrize(
    ("settings", "environment", "named"),
    [
        ("[guest]\nrat = 5\n", {}, "guest.rat: there is no such setting; did you mean rate?"),
        ("[guest]\ninstance = 'half'\n", {}, "guest.instance: expected full, name or off, got 'half'"),
        ("", {"FOREWARN_GUEST_RATE": "fast"}, "FOREWARN_GUEST_RATE: expected a number, got 'fast'"),
        ("", {"FOREWARN_CLOCK": "backwards"}, "clock 'backwards': expected system, manual or xN"),
        ("", {"FOREWARN_DATABASE": "mysql://x/y"}, "expected sqlite:///FILE or postgresql://"),
        ("", {"FOREWARN_GUEST_LISTEN": "127.0.0.1"}, "address '127.0.0.1': expected HOST:PORT"),
        (
            "[operator]\norigins = ['https://a.example/']\n",
            {},
            "[operator] origins 'https://a.example/': expected https://NAME or https://NAME:PORT",
        ),
        (
            "[operator]\norigins = ['https://a.example']\n",
            {},
            "[operator] origins 'https://a.example': expected a loopback address: without a token",
        ),
    ],
)
def test_a_bad_setting_is_named(
    tmp_path: Path, settings: str, environment: dict[str, str], named: str
) -> None:
    (tmp_path / "settings.toml").write_text(settings)
    refused = run(tmp_path, "serve", "--config", "settings.toml", environment=environment)
    assert refused.returncode == 2
    assert named in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "forewarn.db").exists()


def test_a_settings_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", "--config", "nowhere.toml", *FREE)
    assert refused.returncode == 2
    assert "settings file nowhere.toml cannot be read" in refused.stderr


def test_a_fleet_file_that_does_not_exist_is_named_and_leaves_no_store_behind(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", "--fleet", "missing.toml", *FREE)
    assert refused.returncode != 0
    assert "missing.toml" in refused.stderr
    assert not (tmp_path / "forewarn.db").exists()


# Addresses


def test_a_public_operator_address_is_refused(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", *FREE, "--operator", "0.0.0.0:0")
    assert refused.returncode == 2
    assert "operator address 0.0.0.0:0: expected a loopback address" in refused.stderr
    assert not (tmp_path / "forewarn.db").exists()


def test_a_guest_port_in_use_is_named(tmp_path: Path, taken: int) -> None:
    refused = run(tmp_path, "serve", "--guest", f"127.0.0.1:{taken}", "--operator", "127.0.0.1:0")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"forewarn: guest address 127.0.0.1:{taken} is in use: "
        "choose another with --guest, FOREWARN_GUEST_LISTEN or [guest] listen\n"
    )


def test_an_operator_port_in_use_is_named(tmp_path: Path, taken: int) -> None:
    refused = run(tmp_path, "serve", "--guest", "127.0.0.1:0", "--operator", f"127.0.0.1:{taken}")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"forewarn: operator address 127.0.0.1:{taken} is in use: "
        "choose another with --operator, FOREWARN_OPERATOR_LISTEN or [operator] listen\n"
    )


def test_a_machines_own_port_in_use_is_named_with_the_machine(tmp_path: Path, taken: int) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(f'[hosts.h]\n[[machines]]\nname = "vm"\nhost = "h"\nport = {taken}\n')
    refused = run(tmp_path, "serve", "--fleet", fleet, *FREE)
    assert refused.returncode == 1
    assert refused.stderr.endswith(  # after the log of the applied fleet
        f'forewarn: machine "vm": port {taken} is in use: give the machine another in the fleet file, '
        "or in a copy of it (--fleet FILE; make run FLEET=FILE)\n"
    )


def test_a_copy_of_the_fleet_with_another_port_works_if_a_port_is_in_use(tmp_path: Path, taken: int) -> None:
    fleet, copy = tmp_path / "fleet.toml", tmp_path / "mine.toml"
    fleet.write_text(f'[hosts.h]\n[[machines]]\nname = "vm"\nhost = "h"\nport = {taken}\n')
    assert run(tmp_path, "serve", "--fleet", fleet, *FREE).returncode == 1
    copy.write_text(fleet.read_text().replace(str(taken), str(free_port())))
    with Program(tmp_path, "--fleet", copy) as program:
        assert [each["name"] for each in program.get("/v1/machines")["machines"]] == ["vm"]


def test_an_address_of_another_computer_is_named(tmp_path: Path) -> None:
    refused = run(tmp_path, "serve", *FREE, "--guest", f"192.0.2.7:{free_port()}")
    assert refused.returncode == 1
    assert "is not an address of this computer" in refused.stderr
