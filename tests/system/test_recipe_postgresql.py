"""The recipe for a pair of PostgreSQL servers, with two real ones: no acknowledged write is lost."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Ending, Over
from tests.agent_program import AgentProgram, serving
from tests.process import PATIENCE, Program, free_port, until
from tests.recipe_agents import EXAMPLES, agent_with, readme, rehearsed

BIN = Path("/usr/lib/postgresql/15/bin")
TRY_AGAIN = 75
WORTH_A_SWITCHOVER = 50
# What a server of PostgreSQL needs beyond the README to be quick and to run beside another.
CONFIG = """
data_directory = '{folder}/data'
hba_file = '{folder}/hba'
port = {port}
listen_addresses = '127.0.0.1'
fsync = off
shared_buffers = 8MB
wal_log_hints = on
wal_retrieve_retry_interval = 200ms
"""
HBA = """
local all postgres peer
host all,replication forewarn 127.0.0.1/32 scram-sha-256
host all tester 127.0.0.1/32 trust
"""


def as_postgres(*words: str | Path, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run one of PostgreSQL's own programs, which refuse to run as root."""
    ran = subprocess.run(
        list(map(str, words)),
        user="postgres",
        group="postgres",
        extra_groups=[],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0 or not check, ran.stdout
    return ran


class Server:
    """A Debian cluster `15/main` of a machine of its own, that is, with folders of its own."""

    def __init__(self, folder: Path, data: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.port = free_port()
        self.data = folder / "data"
        subprocess.run(["cp", "-a", data, self.data], check=True)
        self._cluster = folder / "etc" / "15" / "main"
        self._cluster.mkdir(parents=True)
        (folder / "log").touch()
        (folder / "hba").write_text(HBA)
        (self._cluster / "log").symlink_to(folder / "log")
        (self._cluster / "postgresql.conf").write_text(CONFIG.format(folder=folder, port=self.port))
        give_to_postgres(folder, folder / "log", folder / "hba")

    @property
    def peer(self) -> str:
        """The words by which the other server finds this one."""
        passwords = self.folder.parent / "passwords"
        return f"host=127.0.0.1 port={self.port} user=forewarn passfile={passwords}"

    def follow(self, other: "Server") -> None:
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = '{other.peer}'\n")
        (self.data / "standby.signal").touch()
        give_to_postgres(self.data / "standby.signal")

    def start(self) -> None:
        """Start it as it is configured, as the boot of its machine does."""
        options = f"-c config_file={self._cluster}/postgresql.conf"
        as_postgres(BIN / "pg_ctl", "start", "-w", "-D", self.data, "-l", self.folder / "log", "-o", options)

    def kill(self) -> None:
        """End it as a machine that is switched off does; its processes are gone when this returns."""
        as_postgres(BIN / "pg_ctl", "stop", "-w", "-m", "immediate", "-D", self.data, check=False)

    def runs(self) -> bool:
        return as_postgres(BIN / "pg_ctl", "status", "-D", self.data, check=False).returncode == 0

    def ask(self, query: str) -> str:
        """Return the one value of a query."""
        with self.connection() as connection:
            row = connection.execute(query).fetchone()  # type: ignore[call-overload]
            assert row is not None
            return str(row[0])

    def connection(self) -> "psycopg.Connection[tuple[object, ...]]":
        where = f"host=127.0.0.1 port={self.port} user=tester dbname=postgres connect_timeout=10"
        return psycopg.connect(where, autocommit=True)

    def is_primary(self) -> bool:
        """Tell whether it takes writes now; a server that does not answer takes none."""
        try:
            return self.ask("SELECT NOT pg_is_in_recovery()") == "True"
        except psycopg.OperationalError:
            return False

    def streams(self) -> bool:
        try:
            return self.ask("SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'") == "1"
        except psycopg.OperationalError:
            return False

    def places(self, other: "Server") -> dict[str, str]:
        """Return what the recipe's config says for this machine, whose peer is the other one."""
        return {
            "host=10.0.0.11 port=5432 user=forewarn": other.peer,
            '"5432"': f'"{self.port}"',
            "/var/lib/postgresql/15/main": str(self.data),
            "/etc/postgresql/15": f"{self._cluster.parent}",
            "/var/lib/forewarn/postgresql.state": str(self.folder / "state"),
            'REPAIR = "yes"': f'REPAIR = "yes"\nPG_CLUSTER_CONF_ROOT = "{self.folder}/etc"',
            'retry = "5s"': 'retry = "1s"',
        }

    def run(self, side: str, other: "Server", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run the recipe's program by itself."""
        own = {
            "PEER": other.peer,
            "PORT": str(self.port),
            "DATA": str(self.data),
            "CONFIG": str(self._cluster / "postgresql.conf"),
            "BIN": str(BIN),
            "START": "pg_ctlcluster 15 main start",
            "STOP": "pg_ctlcluster 15 main stop",
            "STATE": str(self.folder / "state"),
            "STANDBY_SECONDS": "3",
            "REPAIR": "yes",
            "PG_CLUSTER_CONF_ROOT": str(self.folder / "etc"),
        }
        words = [EXAMPLES / "postgresql" / "switchover", side]
        return subprocess.run(
            words,
            env=os.environ | own | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def give_to_postgres(*paths: Path) -> None:
    account = pwd.getpwnam("postgres")
    for path in paths:
        os.chown(path, account.pw_uid, account.pw_gid)


class Look:
    """Looks all the time how many primaries there are."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = servers
        self._over = threading.Event()
        self.looks = 0
        self.two_at_once = False

    @contextmanager
    def looking(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
        assert self.looks
        assert not self.two_at_once

    def _look(self) -> None:
        first, second = self._servers
        while not self._over.is_set():
            # The role may move between two questions. It does not come back within three.
            seen = [first.is_primary(), second.is_primary(), first.is_primary()]
            self.two_at_once |= all(seen)
            self.looks += 1
            self._over.wait(0.05)


class Writer:
    """Writes one number after the other to the primary, and remembers which were acknowledged."""

    def __init__(self, servers: Sequence[Server]) -> None:
        hosts, ports = ",".join(["127.0.0.1"] * len(servers)), ",".join(str(each.port) for each in servers)
        self._where = f"host={hosts} port={ports} user=tester dbname=postgres target_session_attrs=read-write"
        self.acknowledged: list[int] = []
        self._over = threading.Event()

    @contextmanager
    def writing(self) -> Iterator[None]:
        thread = threading.Thread(target=self._write)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _write(self) -> None:
        numbers = count()
        while not self._over.is_set():
            try:
                with psycopg.connect(self._where, autocommit=True, connect_timeout=10) as connection:
                    while not self._over.is_set():
                        number = next(numbers)
                        connection.execute("INSERT INTO numbers VALUES (%s)", [number])
                        self.acknowledged.append(number)
                        self._over.wait(0.005)
            except psycopg.Error:
                self._over.wait(0.02)

    def more(self) -> None:
        """Wait until some more are written."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + WORTH_A_SWITCHOVER, what="more to be written")

    def assert_all_are_in(self, server: Server) -> None:
        with server.connection() as connection:
            found = {row[0] for row in connection.execute("SELECT number FROM numbers").fetchall()}
        assert len(self.acknowledged) >= WORTH_A_SWITCHOVER
        assert set(self.acknowledged) <= found


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Make a folder that the user postgres can reach, unlike those of the tests."""
    with tempfile.TemporaryDirectory(prefix="forewarn-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def template(place: Path) -> Path:
    """Make the data that both servers of each pair begin with, prepared as the README says."""
    made = place / "template"
    made.mkdir()
    give_to_postgres(made)
    data = made / "data"
    # Small segments: they are copied for every test.
    as_postgres(
        BIN / "initdb",
        *("--pgdata", data, "--no-sync", "--no-instructions", "--auth", "trust", "--wal-segsize", "1"),
    )
    sql = [part[1] for part in re.finditer(r"```sql\n(.*?)```", readme("postgresql"), re.DOTALL)]
    sql += ["CREATE ROLE tester SUPERUSER LOGIN;", "CREATE TABLE numbers (number integer PRIMARY KEY);"]
    words = [BIN / "postgres", "--single", "-F", "-j", "-D", data, "postgres"]
    subprocess.run(
        list(map(str, words)),
        input="\n\n".join(re.sub(r";\n(?=.)", ";\n\n", part) for part in sql) + "\n\n",
        user="postgres",
        group="postgres",
        extra_groups=[],
        cwd="/",
        text=True,
        capture_output=True,
        check=True,
    )
    (passwords := place / "passwords").write_text("127.0.0.1:*:*:forewarn:change-me\n")
    passwords.chmod(0o600)
    give_to_postgres(passwords)
    return data


@pytest.fixture
def pair(place: Path, template: Path) -> Iterator[tuple[Server, Server]]:
    """Run a primary and its standby."""
    for name in ("a", "b"):
        shutil.rmtree(place / name, ignore_errors=True)
    primary, standby = Server(place / "a", template), Server(place / "b", template)
    standby.follow(primary)
    try:
        primary.start()
        standby.start()
        until(standby.streams, what="the standby to stream")
        yield primary, standby
    finally:
        primary.kill()
        standby.kill()


def agent_of(service: Program, machine: str, folder: Path, server: Server, other: Server) -> AgentProgram:
    return agent_with(
        "postgresql", service=service, machine=machine, folder=folder, places=server.places(other)
    )


def test_the_standby_takes_over_and_gives_back_and_no_write_is_lost(
    tmp_path: Path, pair: tuple[Server, Server]
) -> None:
    first, second = pair
    writer, look = Writer(pair), Look(pair)
    with (
        serving(tmp_path) as service,
        agent_of(service, "db", tmp_path, first, second) as agent,
        agent_of(service, "web-0", tmp_path, second, first) as other_agent,
        look.looking(),
        writer.writing(),
    ):
        writer.more()
        service.post("/v1/machines/db/redeploy")
        # The agent ends in the middle; what it has begun goes on, and the next one waits for that.
        agent.out.wait_for("stopping the primary")
        agent.kill()
        agent.start()
        agent.wait_for(Approved)
        # The role was handed over before the approval, not because of it.
        assert (first.is_primary(), second.is_primary()) == (False, True)
        writer.more()

        first.kill()
        agent.kill()
        writer.more()
        first.start()
        agent.start()
        service.advance(900)
        agent.wait_for(Over)
        agent.out.wait_for(f"this is a standby of 127.0.0.1:{second.port}")
        assert first.streams()

        # The next event finds nothing to hand over; one of the other machine hands the role back.
        event = service.post("/v1/machines/db/restart")["event"]["id"]
        agent.wait_for(Approved, event=event)
        agent.out.wait_for("this is a standby: nothing to hand over")
        assert second.is_primary()
        service.advance(900)
        agent.wait_for(Over, event=event)
        service.post("/v1/machines/web-0/restart")
        other_agent.wait_for(Approved)
        assert (first.is_primary(), second.is_primary()) == (True, False)
        writer.more()
        service.advance(900)
        other_agent.wait_for(Over)
    writer.assert_all_are_in(first)
    until(second.streams, what="the other to stream")
    current = first.ask("SELECT pg_current_wal_lsn()")
    until(
        lambda: second.ask(f"SELECT pg_last_wal_replay_lsn() >= '{current}'") == "True",
        what="the standby to have everything",
    )
    writer.assert_all_are_in(second)


def test_without_a_healthy_standby_nothing_is_approved_until_there_is_one(
    tmp_path: Path, pair: tuple[Server, Server]
) -> None:
    first, second = pair
    second.kill()
    with serving(tmp_path) as service, agent_of(service, "db", tmp_path, first, second) as agent:
        service.post("/v1/machines/db/redeploy")
        agent.wait_for(Ended, side=Side.PREPARE, ending=Ending.AGAIN)
        agent.out.wait_for(f"127.0.0.1:{second.port} does not answer")
        assert first.is_primary()
        assert not any(isinstance(entry, Approved) for entry in agent.entries())
        second.start()
        agent.wait_for(Approved)
        assert second.is_primary()
