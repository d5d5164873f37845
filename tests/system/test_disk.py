"""Full disks, and databases that cannot be written."""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.database import outage_load
from tests.helpers.database.outage_load import Load
from tests.helpers.database.own_postgresql import OwnPostgres, own_postgres
from tests.helpers.programs.process import Program, run, sample_fleet, until

WEB_0, WEB_1 = "127.0.1.10", "127.0.1.11"
FREE = ("--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0")


def test_a_full_disk_refuses_writes_and_polls_continue(tmp_path: Path) -> None:
    fleet, disk = sample_fleet(tmp_path), tmp_path / "disk"
    disk.mkdir()
    # The disk is mounted in the server's own mount namespace, and disappears with it.
    mount = f'mount -t tmpfs -o size=8m tmpfs "{disk}" && exec "$@"'
    flags = ("--database", f"sqlite:///{disk}/forewarn.db", "--fleet", fleet)
    with Program(tmp_path, *flags, before=["unshare", "--mount", "sh", "-c", mount, "sh"]) as program:
        guest = program.guest(WEB_0)
        guest.document()
        event = program.post("/v1/machines/web-0/restart")["event"]
        before = guest.poll().content
        seen = Path(f"/proc/{program.process.pid}/root", *disk.parts[1:])
        filler = fill(seen / "filler")

        refused = [program.call("POST", f"/v1/machines/web-{number}/restart") for number in range(1, 6)]
        assert {answer.status_code for answer in refused} == {503}
        assert "the disk is full: free some space" in refused[0].json()["error"]["message"]
        assert guest.approve(event["id"]).status_code == 503
        assert guest.poll().content == before
        assert program.guest(WEB_1).poll().content == before

        filler.unlink()
        assert program.call("POST", "/v1/machines/web-1/restart").status_code == 202
        assert guest.approve(event["id"]).status_code == 200
        program.advance(900)
        assert program.stop() == 0
        assert "Traceback" not in program.err.text


@pytest.fixture
def postgres() -> Iterator[OwnPostgres]:
    with own_postgres(disk="160m") as server:
        # The first log lines already have their space. The test needs files that must grow.
        server.run("ALTER SYSTEM SET max_wal_size = '32MB'")
        server.run("ALTER SYSTEM SET min_wal_size = '32MB'")
        server.run("SELECT pg_reload_conf()")
        yield server


def test_a_postgresql_with_a_full_disk_keeps_everything_that_was_answered(
    tmp_path: Path, postgres: OwnPostgres
) -> None:
    flags = ("--database", postgres.url, "--fleet", outage_load.write_fleet(tmp_path))
    environment = {"FOREWARN_GUEST_RATE": "0", "FOREWARN_OPERATOR_RATE": "0"}
    with Program(tmp_path, *flags, clock="system", environment=environment) as program:
        guest, load = program.guest(outage_load.address_of(899)), Load(program)
        before = guest.document()
        with load.going_on():
            until(lambda: len(load.answered(202)) >= 8, what="some orders")
            filler = fill(postgres.data / "filler")
            until(lambda: len(load.answered(503)) >= 8, what="refusals")
            assert guest.document() == before
            assert program.post("/v1/holds", json={"reason": "no space"})["hold"]["saved"] is False
            filler.unlink()
            if not postgres.runs:  # PostgreSQL stops when it cannot even write its log
                postgres.control("start")
        outage_load.check_in_time(load)
        until(lambda: program.call("GET", "/readyz").status_code == 200, what="it to be ready again")
        until(
            lambda: [hold["saved"] for hold in program.get("/v1/holds")["holds"]] == [True],
            what="the hold to be saved",
        )
        outage_load.check_books(load, program)
        assert program.stop() == 0
        assert "Traceback" not in program.err.text


def fill(path: Path) -> Path:
    """Write until not even a byte fits."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with pytest.raises(OSError, match="No space left on device"):
                all(file.write(b"x" * size) for _ in itertools.count())
    return path


@contextmanager
def immutable(*files: Path) -> Iterator[None]:
    """Make files unwritable, even for processes that have them open."""
    done = subprocess.run(["chattr", "+i", *map(str, files)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this file system has no immutable files: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *map(str, files)], check=True)


def test_a_database_that_becomes_read_only_refuses_writes_and_polls_continue(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        guest = program.guest(WEB_0)
        guest.document()
        event = program.post("/v1/machines/web-0/restart")["event"]
        before = guest.poll().content
        # Not the index in shared memory: the kernel kills a process that writes to a mapped file once it is
        # immutable.
        with immutable(tmp_path / "forewarn.db", tmp_path / "forewarn.db-wal"):
            assert program.call("POST", "/v1/machines/web-1/restart").status_code == 503
            assert guest.approve(event["id"]).status_code == 503
            assert guest.poll().content == before
        assert program.call("POST", "/v1/machines/web-1/restart").status_code == 202
        assert guest.approve(event["id"]).status_code == 200
        assert program.stop() == 0
        assert "Traceback" not in program.err.text


def test_an_unwritable_database_is_named_at_start(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        assert program.stop() == 0
    for file in tmp_path.glob("forewarn.db*"):
        file.chmod(0o444)
    # Root may write every file unless it drops these capabilities.
    humble = "-dac_override,-dac_read_search"
    before = ("setpriv", f"--bounding-set={humble}", f"--inh-caps={humble}")
    refused = run(tmp_path, "serve", *FREE, before=before)
    assert refused.returncode == 1
    assert "forewarn: forewarn.db cannot be" in refused.stderr
    assert "check" in refused.stderr
    assert "Traceback" not in refused.stderr
