"""Opening a store: new, older, newer or invalid databases, and one server at a time."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, inspect, text

from forewarn.core.errors import Conflict, Invalid, Unavailable
from forewarn.store import tables
from forewarn.store.opening.copying import backup
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.lock import ConnectionLock, hold
from forewarn.store.opening.schema import VERSION_TABLE, alembic_config, migrate, revision, revisions
from forewarn.store.store import Store, open_store
from tests.contract.later_forewarn import upgrade_forewarn
from tests.contract.samples import everything, machine, save_fleet
from tests.helpers.database.transactions import writing
from tests.helpers.programs.process import until

# How to read the indexes of each database. SQLite returns the original statements.
INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql LIKE '%CASE%'",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema",
}


def never() -> str:
    raise AssertionError("a store that exists has its lineage")


def run(url: str, *statements: str) -> None:
    """Change a database without the store's knowledge."""
    engines = create_engines(parse_database(url))
    with engines.writing.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engines.dispose()


def test_saved_values_are_there_after_reopening(store_at_url: Store, url: str) -> None:
    save_fleet(store_at_url, [machine("web-0")])
    again = open_store(url, new_id=never)
    assert everything(again) == everything(store_at_url)
    with again.read() as snapshot:
        assert snapshot.feed.lineage() == "LINEAGE"
    again.close()


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based index")
def test_migrations_lead_to_the_schema_of_a_new_store(url: str) -> None:
    engines = create_engines(parse_database(url))
    with engines.writing.connect() as connection:
        with connection.begin() as made:
            migrate(connection, name=url)
            at_once = described(connection)
            made.rollback()
        with connection.begin():
            command.upgrade(alembic_config(connection), "head")
            # Alembic compares expression indexes by their text; `described` covers them.
            compared = {"version_table": VERSION_TABLE, "include_object": has_columns_alone}
            context = MigrationContext.configure(connection, opts=compared)
            assert compare_metadata(context, tables.metadata) == []
            assert described(connection) == at_once
    engines.dispose()


def has_columns_alone(what: Any, _name: str | None, kind: str, *_: Any) -> bool:
    return kind != "index" or all(isinstance(each, Column) for each in what.expressions)


def described(connection: Connection) -> dict[str, Any]:
    """Return the schema of a database, without the order of columns."""
    about = inspect(connection)
    found: dict[str, Any] = {
        table: {
            "columns": {each["name"]: str(each) for each in about.get_columns(table)},
            "key": about.get_pk_constraint(table),
            "unique": {each["name"]: each["column_names"] for each in about.get_unique_constraints(table)},
            "indexes": {each["name"]: _index(each) for each in about.get_indexes(table)},
        }
        for table in about.get_table_names()
    }
    found["indexes"] = dict(connection.exec_driver_sql(INDEXES[connection.dialect.name]).all())
    found["version"] = revision(connection)
    return found


def _index(each: Any) -> str:
    options = {name: str(value) for name, value in each.get("dialect_options", {}).items()}
    return str({**each, "dialect_options": options})


def test_an_older_store_is_migrated_and_keeps_its_values(
    store_at_url: Store, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_fleet(store_at_url, [machine("web-0"), machine("web-1", size="large")])
    before = everything(store_at_url)
    new = upgrade_forewarn(monkeypatch, tmp_path)
    for _ in ("brought up to date", "up to date"):
        opened = open_store(url, new_id=never)
        assert everything(opened) == before
        opened.close()
    assert rows(url, "SELECT version_num FROM forewarn_schema") == [(new,)]
    assert rows(url, "SELECT name, shelf FROM machines ORDER BY name") == [
        ("web-0", "top"),
        ("web-1", "large"),
    ]


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    engines = create_engines(parse_database(url))
    with engines.reading.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(query))]
    engines.dispose()
    return found


def test_a_reader_does_not_migrate_an_older_store(
    store_at_url: Store, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_fleet(store_at_url)
    old, new = revisions()[-1], upgrade_forewarn(monkeypatch, tmp_path)
    with pytest.raises(
        Conflict, match=f"has schema {old}, but this version of forewarn needs {new}: use the version"
    ):
        open_store(url, new_id=never, without_migration=True)
    assert rows(url, "SELECT version_num FROM forewarn_schema") == [(old,)]


def test_a_newer_schema_is_refused(store_at_url: Store, url: str) -> None:
    run(url, f"UPDATE {VERSION_TABLE} SET version_num = '0042'")
    with pytest.raises(
        Conflict, match=rf"newer forewarn \(schema 0042, this one knows up to {revisions()[-1]}\): upgrade"
    ):
        open_store(url, new_id=never)


def test_a_migration_that_fails_leaves_nothing_behind(
    store_at_url: Store, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_fleet(store_at_url, [machine("web-0")])
    before = everything(store_at_url)
    upgrade_forewarn(monkeypatch, tmp_path, last="UPDATE nothing SET nothing = 0")
    with pytest.raises(Exception, match="nothing"):
        open_store(url, new_id=never)
    monkeypatch.undo()
    again = open_store(url, new_id=never)
    assert everything(again) == before
    again.close()
    run(url, "ALTER TABLE machines ADD COLUMN shelf TEXT")  # it does not exist


def test_a_foreign_database_is_not_changed(url: str) -> None:
    run(url, "CREATE TABLE recipes (name TEXT)")
    with pytest.raises(Invalid, match="belongs to another program"):
        open_store(url, new_id=never)


def test_migration_files_are_named_by_revision() -> None:
    script = ScriptDirectory.from_config(alembic_config(None))  # type: ignore[arg-type]
    assert [each.revision for each in reversed(list(script.walk_revisions()))] == revisions()


@pytest.mark.parametrize(
    "nonsense",
    [
        "",
        "forewarn.db",
        "mysql://root@localhost/forewarn",
        "sqlite+aiosqlite:///forewarn.db",
        "sqlite://host/forewarn.db",
        "sqlite:///forewarn.db?mode=ro",
        "postgresql://localhost:port/forewarn",
    ],
)
def test_an_invalid_url_is_refused(nonsense: str) -> None:
    with pytest.raises(Invalid, match="expected sqlite:///FILE or postgresql://USER@HOST/NAME"):
        open_store(nonsense, new_id=never)


def test_a_password_is_never_shown() -> None:
    with pytest.raises(Unavailable) as raised:
        open_store("postgresql://me:secret@127.0.0.1:1/forewarn", new_id=never)
    assert "forewarn on 127.0.0.1" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_missing_folder_is_named_as_the_cause(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/missing/forewarn.db"
    with pytest.raises(Unavailable, match="check that its folder exists"):
        open_store(url, new_id=never)
    with pytest.raises(Unavailable, match="check that its folder exists"):
        hold(url)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be looked at as one\n" * 40)
    with pytest.raises(Invalid, match="not an SQLite database"):
        open_store(f"sqlite:///{tmp_path}/notes.txt", new_id=never)


def test_a_relative_path_stays_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened = open_store("sqlite:///forewarn.db", new_id=lambda: "HERE")
    monkeypatch.chdir("/")
    with opened.read() as snapshot:
        assert snapshot.feed.lineage() == "HERE"
    opened.close()
    assert (tmp_path / "forewarn.db").exists()


def test_a_store_can_live_in_memory() -> None:
    opened = open_store("sqlite://", new_id=lambda: "MEMORY")
    with hold("sqlite://"):
        save_fleet(opened, [machine("web-0")])
    assert len(everything(opened).machines) == 1
    opened.close()


@pytest.mark.usefixtures("with_fsync")
def test_an_sqlite_store_survives_a_power_cut(sqlite_url: str) -> None:
    opened = open_store(sqlite_url, new_id=lambda: "X")
    with writing(opened) as tx:
        assert tx.transaction.connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert tx.transaction.connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
    opened.close()


# One server at a time


def test_a_second_server_on_the_same_database_is_refused(url: str) -> None:
    with (
        hold(url),
        pytest.raises(Conflict, match=rf"another server uses .* \(process {os.getpid()}\): stop it first"),
    ):
        hold(url)
    with hold(url):
        pass


def test_the_lock_does_not_block_reads_and_writes(url: str) -> None:
    with hold(url):
        opened = open_store(url, new_id=lambda: "X")
        save_fleet(opened)
        opened.close()


HOLD_FOREVER = """
import sys
from forewarn.store.opening.lock import hold
with hold(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_server_releases_the_lock(url: str) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_FOREVER, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"held\n"
        with pytest.raises(Conflict, match=f"process {server.pid}"):
            hold(url)
        server.send_signal(signal.SIGKILL)
        server.wait()
    with take(url):
        pass


def take(url: str) -> AbstractContextManager[object]:
    """Take the lock. PostgreSQL may need a moment to notice that a client is gone."""
    for _ in range(1_000):
        try:
            return hold(url)
        except Conflict:
            continue
    return hold(url)


def test_a_second_server_is_refused_whatever_was_removed_beside_the_file(
    tmp_path: Path, sqlite_url: str
) -> None:
    with hold(sqlite_url):
        for each in tmp_path.iterdir():
            if each.name != "forewarn.db":
                each.unlink()
        with pytest.raises(Conflict, match=f"process {os.getpid()}"):
            hold(sqlite_url)


def test_a_second_server_is_refused_through_a_hard_link(tmp_path: Path, sqlite_url: str) -> None:
    with hold(sqlite_url):
        (tmp_path / "apart").mkdir()
        (tmp_path / "apart" / "link.db").hardlink_to(tmp_path / "forewarn.db")
        with pytest.raises(Conflict, match=f"process {os.getpid()}"):
            hold(f"sqlite:///{tmp_path}/apart/link.db")


def test_the_lock_outlives_other_descriptors_of_the_file(tmp_path: Path, sqlite_url: str) -> None:
    with hold(sqlite_url):
        open_store(sqlite_url, new_id=lambda: "X").close()
        (tmp_path / "forewarn.db").read_bytes()
        with pytest.raises(Conflict, match=f"process {os.getpid()}"):
            hold(sqlite_url)


@pytest.mark.parametrize("through", ["forewarn.db", "link.db"])
def test_a_server_whose_file_was_replaced_must_not_go_on(tmp_path: Path, through: str) -> None:
    (tmp_path / "link.db").symlink_to("forewarn.db")
    url = f"sqlite:///{tmp_path}/{through}"
    with hold(url) as held:
        held.keep()
        (tmp_path / "new.db").touch()
        (tmp_path / "new.db").rename(tmp_path / "forewarn.db")
        with pytest.raises(Conflict, match="was replaced while this server used it"):
            held.keep()


def test_a_server_whose_file_was_removed_must_not_go_on(tmp_path: Path) -> None:
    with hold(f"sqlite:///{tmp_path}/forewarn.db") as held:
        (tmp_path / "forewarn.db").unlink()
        with pytest.raises(Conflict, match="was removed while this server used it"):
            held.keep()


def test_a_file_that_replaces_an_open_one_is_not_changed(tmp_path: Path, sqlite_url: str) -> None:
    opened = open_store(sqlite_url, new_id=lambda: "X")
    save_fleet(opened)
    backup(sqlite_url, tmp_path / "copy.db", new_lineage="COPY")
    before = (tmp_path / "copy.db").read_bytes()
    (tmp_path / "copy.db").rename(tmp_path / "forewarn.db")
    with pytest.raises(Unavailable, match="was removed or replaced"), opened.read(), opened.read():
        pass
    opened.close()
    assert (tmp_path / "forewarn.db").read_bytes() == before


def test_opening_creates_no_other_files(tmp_path: Path, sqlite_url: str) -> None:
    open_store(sqlite_url, new_id=lambda: "X").close()
    assert [path.name for path in tmp_path.iterdir()] == ["forewarn.db"]
    with closing(sqlite3.connect(tmp_path / "forewarn.db")) as plain:
        assert plain.execute("SELECT lineage FROM meta").fetchone() == ("X",)


def test_the_lock_of_a_lost_connection_does_not_count_as_another_server(postgres_url: str) -> None:
    with hold(postgres_url) as held:
        assert isinstance(held, ConnectionLock)
        ending = held.connection
        held.connection = held.engine.connect()
        held.connection.close()
        with pytest.raises(Unavailable, match="has not ended yet"):
            held.keep()
        ending.close()
        until(lambda: _is_kept(held), what="the lock to be had again")
        with pytest.raises(Conflict, match="another server uses"):
            hold(postgres_url)


def _is_kept(held: ConnectionLock) -> bool:
    try:
        held.keep()
    except Unavailable:  # PostgreSQL needs a moment to notice that its client is gone
        return False
    return True
