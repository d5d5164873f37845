"""The modules that a start imports: imports take most of its time."""

from pathlib import Path

import pytest

from forewarn.cli.main import COMMANDS, LazyCommand
from tests.helpers.programs.process import Program, run, sample_fleet

# Makes Python print its imports.
TELLING = {"PYTHONPROFILEIMPORTTIME": "1"}


def loaded(said: str) -> set[str]:
    """Return all modules that a program has loaded, and their packages."""
    names = {line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:")}
    return names | {name.partition(".")[0] for name in names}


def test_help_imports_no_command_and_no_server_code(tmp_path: Path) -> None:
    shown = run(tmp_path, "--help", environment=TELLING)
    assert "Server:" in shown.stdout
    names = loaded(shown.stderr)
    assert "click" in names
    assert not names & {"httpx", "pydantic", "sqlalchemy", "asyncio", "rich"}
    heavy = ("forewarn.core.model", "forewarn.core.policy", "forewarn.wire.answers", "forewarn.cli.commands")
    assert not [name for name in names if name.startswith(heavy)]


@pytest.mark.parametrize("before", ["no store", "a store"])
def test_a_server_imports_only_modules_that_its_store_needs(tmp_path: Path, before: str) -> None:
    fleet = sample_fleet(tmp_path)
    with Program(tmp_path, "--fleet", fleet, "--database", "sqlite:///own.db") as program:
        program.stop()
    if before == "no store":
        (tmp_path / "own.db").unlink()
    with Program(
        tmp_path, "--fleet", fleet, "--database", "sqlite:///own.db", environment=TELLING
    ) as program:
        program.stop()
        names = loaded(program.err.text)
    assert {"sqlalchemy.dialects.sqlite", "starlette"} <= names
    # Migrations, calls of webhooks, metrics, another database.
    assert not names & {"alembic", "httpx", "prometheus_client", "psycopg", "sqlalchemy.dialects.postgresql"}


@pytest.mark.parametrize(("name", "about"), COMMANDS.items())
def test_a_command_is_listed_as_it_describes_itself(name: str, about: str) -> None:
    assert LazyCommand(name, about).load().get_short_help_str() == about
