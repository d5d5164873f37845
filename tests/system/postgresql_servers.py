"""PostgreSQL servers of Debian's package, and checks of their roles and of acknowledged writes."""

import os
import pwd
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

from tests.helpers.programs.process import on_a_thread, until

BIN = Path("/usr/lib/postgresql/15/bin")
TABLE = "CREATE TABLE numbers (number integer PRIMARY KEY)"
WORTH_A_SWITCHOVER = 50


@contextmanager
def folder_for_postgres() -> Iterator[Path]:
    """Create a folder that the user postgres can reach, unlike the folders of pytest."""
    with tempfile.TemporaryDirectory(prefix="forewarn-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def as_postgres(
    *words: str | Path, given: str = "", environment: Mapping[str, str] | None = None, check: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Run one of PostgreSQL's programs as the user postgres, because they refuse to run as root."""
    ran = subprocess.run(
        list(map(str, words)),
        user="postgres",
        group="postgres",
        extra_groups=[],
        cwd="/",
        env=environment,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0 or not check, ran.stdout
    return ran


def give_to_postgres(*paths: Path) -> None:
    account = pwd.getpwnam("postgres")
    for path in paths:
        os.chown(path, account.pw_uid, account.pw_gid)


class Database:
    """A server on its own port, queried as its superuser `tester`."""

    def __init__(self, port: int, data: Path) -> None:
        self.port = port
        self.data = data

    def kill(self) -> None:
        """Kill it as if its machine lost power, and wait until its processes are gone."""
        as_postgres(BIN / "pg_ctl", "stop", "-w", "-m", "immediate", "-D", self.data, check=False)

    def ask(self, query: str) -> str:
        """Return the only value of a query."""
        with self.connection() as connection:
            row = connection.execute(query).fetchone()  # type: ignore[call-overload]
            assert row is not None
            return str(row[0])

    def connection(self) -> "psycopg.Connection[tuple[object, ...]]":
        where = f"host=127.0.0.1 port={self.port} user=tester dbname=postgres connect_timeout=10"
        return psycopg.connect(where, autocommit=True)

    def is_primary(self) -> bool:
        """Return whether it accepts writes now. A server that does not answer accepts none."""
        try:
            return self.ask("SELECT NOT pg_is_in_recovery()") == "True"
        except psycopg.OperationalError:
            return False

    def streams(self) -> bool:
        try:
            return self.ask("SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'") == "1"
        except psycopg.OperationalError:
            return False


class Look:
    """Repeatedly counts the primaries."""

    def __init__(self, servers: Sequence[Database]) -> None:
        self._servers = servers
        self._over = threading.Event()
        self.looks = 0
        self.two_at_once = False

    @contextmanager
    def looking(self) -> Iterator[None]:
        with on_a_thread(self._look, self._over):
            yield
        assert self.looks
        assert not self.two_at_once

    def _look(self) -> None:
        first, second = self._servers
        while not self._over.is_set():
            # The role may move between two queries. It does not move back within three.
            seen = [first.is_primary(), second.is_primary(), first.is_primary()]
            self.two_at_once |= all(seen)
            self.looks += 1
            self._over.wait(0.05)


class Writer:
    """Writes consecutive numbers to the primary, and records the acknowledged ones."""

    def __init__(self, servers: Sequence[Database]) -> None:
        hosts, ports = ",".join(["127.0.0.1"] * len(servers)), ",".join(str(each.port) for each in servers)
        self._where = f"host={hosts} port={ports} user=tester dbname=postgres target_session_attrs=read-write"
        self.acknowledged: list[int] = []
        self._over = threading.Event()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with on_a_thread(self._write, self._over):
            yield

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
        """Wait for some more acknowledged writes."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + WORTH_A_SWITCHOVER, what="more to be written")

    def assert_all_are_in(self, server: Database) -> None:
        with server.connection() as connection:
            found = {row[0] for row in connection.execute("SELECT number FROM numbers").fetchall()}
        assert len(self.acknowledged) >= WORTH_A_SWITCHOVER
        assert set(self.acknowledged) <= found
