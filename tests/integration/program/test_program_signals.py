"""Signals to a running server, and its notifications to systemd."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.helpers.programs import certificates
from tests.helpers.programs.process import FOREWARN, PATIENCE, Program, until

UNIT = Path(__file__).parents[3] / "packaging/systemd/forewarn.service"


class Systemd:
    """systemd's end of the notification socket."""

    def __init__(self, ear: socket.socket) -> None:
        self._ear = ear

    def wait_for(self, *lines: str) -> list[str]:
        """Return the next message with lines that begin with these texts."""
        while True:
            heard = self._ear.recv(4096).decode().split("\n")
            if all(any(each.startswith(line) for each in heard) for line in lines):
                return heard


@pytest.fixture
def notified() -> Iterator[tuple[str, Systemd]]:
    """Listen like systemd on an abstract socket with a short name."""
    address = f"@forewarn-tests-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(f"\0{address[1:]}")
        ear.settimeout(PATIENCE)
        yield address, Systemd(ear)


def test_systemd_is_notified_of_each_change(tmp_path: Path, notified: tuple[str, Systemd]) -> None:
    address, systemd = notified
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"}
    with Program(tmp_path, environment=environment) as program:
        systemd.wait_for("READY=1")
        systemd.wait_for("WATCHDOG=1")
        systemd.wait_for("WATCHDOG=1")
        program.process.send_signal(signal.SIGHUP)
        systemd.wait_for("RELOADING=1", "MONOTONIC_USEC=")
        systemd.wait_for("READY=1")
        program.process.send_signal(signal.SIGTERM)
        systemd.wait_for("STOPPING=1")
        assert program.stop() == 0


def test_a_sighup_without_changes_is_harmless(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        program.process.send_signal(signal.SIGHUP)
        program.err.wait_for("the settings were reloaded")
        assert program.get("/healthz") == {"status": "ok"}
        assert program.stop() == 0


def test_settings_that_cannot_be_reloaded_stay_unchanged(tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[guest]\nrate = 7\n")
    with Program(tmp_path, "--config", settings) as program:
        settings.write_text("[guest]\nrat = 7\n")
        program.process.send_signal(signal.SIGHUP)
        program.err.wait_for("the settings cannot be read and stay unchanged: guest.rat")
        settings.write_text("[guest]\nrate = 8\n")
        program.process.send_signal(signal.SIGHUP)
        program.err.wait_for("guest has changed: restart the server to apply it")
        assert program.get("/healthz") == {"status": "ok"}


RUBBISH = {
    "deep": "a = " + "[" * 5000 + "]" * 5000,
    "huge": f"[guest]\nrate = {'9' * 5000}",
    "NUL": '[operator]\ncertificate = "a\\u0000b"\nkey = "c"',
}


@pytest.mark.parametrize("rubbish", RUBBISH.values(), ids=RUBBISH)
def test_a_sighup_with_invalid_settings_changes_nothing(tmp_path: Path, rubbish: str) -> None:
    tls = certificates.made(tmp_path)
    settings = tmp_path / "settings.toml"
    good = f'[operator]\ncertificate = "{tls.certificate}"\nkey = "{tls.key}"\n'
    settings.write_text(good)
    with Program(tmp_path, "--config", settings) as program:
        settings.write_text(rubbish)
        program.process.send_signal(signal.SIGHUP)
        until(lambda: "unchanged: " in program.err.text, what="a line")
        assert "Traceback" not in program.err.text
        settings.write_text(good)
        program.process.send_signal(signal.SIGHUP)
        program.err.wait_for("new connections use the certificate")
        assert program.get("/readyz") == {"status": "ready"}
        assert program.stop() == 0


def test_a_sighup_loads_a_new_certificate_and_keeps_the_old_one_if_it_is_invalid(tmp_path: Path) -> None:
    tls = certificates.made(tmp_path)
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[operator]\ncertificate = "{tls.certificate}"\nkey = "{tls.key}"\n')
    with Program(tmp_path, "--config", settings) as program:
        place = httpx.URL(program.operators)

        def shown() -> str:
            assert place.port is not None
            return ssl.get_server_certificate((place.host, place.port))

        assert shown() == Path(tls.certificate).read_text()
        first = shown()
        certificates.made(tmp_path)
        assert shown() == first
        program.process.send_signal(signal.SIGHUP)
        until(lambda: shown() != first, what="the new certificate")
        second = Path(tls.certificate).read_text()
        assert shown() == second
        Path(tls.certificate).write_text("no certificate\n")
        program.process.send_signal(signal.SIGHUP)
        program.err.wait_for("the certificate cannot be used and stays unchanged: [operator] certificate")
        assert shown() == second
        assert program.get("/healthz") == {"status": "ok"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is absent")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    # The version in Debian 12 does not know this type.
    unit = UNIT.read_text().replace("Type=notify-reload", "Type=notify")
    copy.write_text(unit.replace("/usr/local/bin/forewarn", FOREWARN))
    ran = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert [line for line in ran.stderr.splitlines() if UNIT.name in line] == []


def test_a_sighup_changes_the_settings_of_the_log(tmp_path: Path) -> None:
    config = tmp_path / "forewarn.toml"
    config.write_text('[log]\nformat = "json"\n')
    with Program(tmp_path, "--config", config) as program:
        assert program.call("POST", "/v1/holds", json={"reason": "holidays"}).status_code == 201
        program.err.wait_for('"audit"')
        said = {line["message"]: line for line in map(json.loads, program.err.text.splitlines())}
        assert said["hold-set"]["reason"] == "the whole fleet: holidays"
        audited = said["audit"]
        assert (audited["who"], audited["from"], audited["status"]) == ("operator", "127.0.0.1", 201)
        config.write_text('[log]\nlevel = "warning"\n')
        program.process.send_signal(signal.SIGHUP)
        until(lambda: _logs_nothing(program), what="the log to be quiet")


def _logs_nothing(program: Program) -> bool:
    """Change something; return whether the log has a line for it besides the audit line."""
    before = len(program.err.text)
    for hold in program.get("/v1/holds")["holds"]:
        program.post(f"/v1/holds/{hold['id']}/release")
    assert program.call("POST", "/v1/holds", json={"reason": "holidays"}).status_code == 201
    until(lambda: 'POST /v1/holds"' in program.err.text[before:], what="the audit")
    return "hold-set" not in program.err.text[before:]
