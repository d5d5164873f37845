"""Fixtures for tests of the console: a shared browser, servers and visitors."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from forewarn.core.model.clock_slew import TimeKind
from forewarn.store.store import open_store
from tests.helpers.console import browsing
from tests.helpers.console.browsing import MILLISECONDS, Profiles, Visitor
from tests.helpers.database import stores
from tests.helpers.database.transactions import writing
from tests.helpers.programs.process import PATIENCE, Program, free_port, sample_fleet

# A fixed Monday morning with nothing due, so that screenshots always show the same times.
MORNING = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)

expect.set_options(timeout=PATIENCE * MILLISECONDS)

Serve = Callable[..., Program]
Visit = Callable[..., Visitor]


# Ends with the last test of the folder, because other tests have their own event loops.
@pytest.fixture(scope="package")
def profiles() -> Iterator[Profiles]:
    """Start one browser for all tests. Visitors share only the cached files of the console."""
    with browsing.chromium() as browser:
        yield Profiles(browser)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start servers with a manual clock at a Monday morning. `serve()` has the sample fleet.

    `serve(fleet=TEXT)` has another, `serve(fleet=None)` none; with `store`, what makes one in a folder, there
    is what it makes. Flags and other keywords are those of `Program`.
    """
    with ExitStack() as running:
        numbers = itertools.count()

        def start(
            *flags: str | Path,
            fleet: str | None = "",
            store: Callable[[Path], None] | None = None,
            **more: Any,
        ) -> Program:
            number = next(numbers)
            folder = tmp_path / f"server-{number}"
            folder.mkdir()
            (store or begin_in_the_morning)(folder)
            given = [*flags, *_fleet(folder, None if store else fleet)]
            more.setdefault("operator", _address(number))
            return running.enter_context(Program(folder, *given, **more))

        yield start


@pytest.fixture
def server(serve: Serve) -> Program:
    """Start a server with the sample fleet, without tokens."""
    return serve()


@pytest.fixture(scope="package")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Start one server with the sample fleet, shared by tests that change nothing."""
    folder = tmp_path_factory.mktemp("calm")
    begin_in_the_morning(folder)
    with Program(folder, *_fleet(folder, "")) as program:
        yield program


@pytest.fixture
def visit(profiles: Profiles, serve: Serve) -> Iterator[Visit]:
    """Open pages: `visit(server).open("/console/fleet")`. An error on a page fails the test.

    Their pages close before the servers of `serve` stop.
    """
    visitors: list[Visitor] = []

    def arrive(program: Program, **more: Any) -> Visitor:
        visitors.append(Visitor(profiles, program, **more))
        return visitors[-1]

    yield arrive
    with ExitStack() as leaving:
        for visitor in visitors:
            leaving.callback(visitor.leave)


def let_in(program: Program, name: str, role: str, project: str | None = None) -> str:
    """Create a token and return its secret. The first token must be an operator's."""
    answer = program.call("POST", "/v1/tokens", json={"name": name, "role": role, "project": project})
    assert answer.status_code == 201, answer.text
    secret: str = answer.json()["secret"]
    if not program.has_token:
        program.operator(secret)
    return secret


@cache
def _address(number: int) -> str:
    """Return the address of a test's nth server. Equal addresses keep the browser's cached files."""
    return f"127.0.0.1:{free_port()}"


def _fleet(folder: Path, text: str | None) -> list[str | Path]:
    if text is None:
        return []
    if text:
        (folder / "fleet.toml").write_text(text, encoding="utf-8")
    else:
        sample_fleet(folder)
    return ["--fleet", folder / "fleet.toml"]


def begin_in_the_morning(folder: Path) -> None:
    """Create a store whose clock is at that morning."""
    stores.prepared_sqlite(folder, "monday morning", _set_time)


def _set_time(url: str) -> None:
    store = open_store(url, new_id=lambda: "D0000000-0000-4000-8000-000000000000")
    with writing(store) as tx:
        tx.time.set_reached(MORNING)
        tx.time.set_kind(TimeKind.TURNED)
    store.close()
