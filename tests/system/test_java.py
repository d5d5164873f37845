"""Java's own client, which requests HTTP/2 with every request, including those with a body."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.programs.process import NEWEST, PATIENCE, Program, sample_fleet

SOURCE = Path(__file__).with_name("Approve.java")


def has_compiler() -> bool:
    if shutil.which("java") is None:
        return False
    known = subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=False).stdout
    return "jdk.compiler@" in known


@pytest.mark.skipif(not has_compiler(), reason="no Java development kit is installed; nothing installs one")
def test_javas_client_polls_and_approves(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(sample_fleet(tmp_path).read_text().replace('"127.0.1.10"', '"127.0.0.1"'))
    with Program(tmp_path, "--fleet", fleet) as program:
        program.guest("127.0.0.1").document()
        event = program.post("/v1/machines/web-0/restart")["event"]
        url = f"{program.guests[0]}/metadata/scheduledevents?api-version={NEWEST}"
        command = ["java", "-Djava.net.preferIPv4Stack=true", str(SOURCE), url, event["id"]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        approved, polled = done.stdout.splitlines()
        assert approved.strip() == "200 HTTP_1_1"
        assert polled.startswith("200 HTTP_1_1 {")
        assert event["id"] in polled
        approvals = program.get(f"/v1/events/{event['id']}")["event"]["approvals"]
        assert [word["by"] for word in approvals] == ["web-0"]
