"""Opening a store: on nothing, on what is older, newer or nonsense; and one server at a time."""

import json
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
from forewarn.core.model.group import GroupPolicy
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.opening.backup import backup
from forewarn.store.opening.database import create_engines, parse_database
from forewarn.store.opening.lock import ConnectionLock, hold
from forewarn.store.opening.schema import VERSION_TABLE, alembic_config, migrate, revision, revisions
from forewarn.store.sql import Store, open_store
from tests.contract.samples import everything, machine, save_fleet
from tests.process import until
from tests.transactions import writing

# How each database says what its indexes are; SQLite says it as it was told.
INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql LIKE '%CASE%'",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema",
}


def never() -> str:
    raise AssertionError("a store that exists has its lineage")


def run(url: str, *statements: str) -> None:
    """Change a database behind the store's back."""
    engines = create_engines(parse_database(url))
    with engines.writing.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engines.dispose()


def test_what_was_saved_is_there_when_it_is_opened_again(store_at_url: Store, url: str) -> None:
    save_fleet(store_at_url, [machine("web-0")])
    again = open_store(url, new_id=never)
    assert everything(again) == everything(store_at_url)
    with again.read() as snapshot:
        assert snapshot.feed.lineage() == "LINEAGE"
    again.close()


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based index")
def test_migrations_lead_to_what_a_new_store_is_made_with(url: str) -> None:
    engines = create_engines(parse_database(url))
    with engines.writing.connect() as connection:
        with connection.begin() as made:
            migrate(connection, name=url)
            at_once = described(connection)
            made.rollback()
        with connection.begin():
            command.upgrade(alembic_config(connection), "head")
            # Indexes by expressions Alembic compares by how they are written; they are among those described.
            compared = {"version_table": VERSION_TABLE, "include_object": has_columns_alone}
            context = MigrationContext.configure(connection, opts=compared)
            assert compare_metadata(context, tables.metadata) == []
            assert described(connection) == at_once
    engines.dispose()


def has_columns_alone(what: Any, _name: str | None, kind: str, *_: Any) -> bool:
    return kind != "index" or all(isinstance(each, Column) for each in what.expressions)


def described(connection: Connection) -> dict[str, Any]:
    """All that a database says of its tables; in which order their columns stand is of no matter."""
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


def test_an_older_schema_is_brought_up_to_date(url: str) -> None:
    run(url, f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    opened = open_store(url, new_id=lambda: "NEW")
    with opened.read() as snapshot:
        assert snapshot.feed.lineage() == "NEW"
    opened.close()


def test_a_store_of_the_first_schema_keeps_what_it_has(url: str) -> None:
    engines = create_engines(parse_database(url))
    with engines.writing.begin() as connection:
        command.upgrade(alembic_config(connection), "0001")
        connection.execute(text("INSERT INTO projects (name) VALUES ('team')"))
        connection.execute(text("INSERT INTO hosts (name, state) VALUES ('host-1', 'cordoned')"))
        connection.execute(
            text(
                "INSERT INTO groups (name, project, kind, update_domains, born, incarnation, version, "
                "changed) "
                "VALUES ('web', 'team', 'scale-set', 3, 1, 7, 1, 1)"
            )
        )
    engines.dispose()
    opened = open_store(url, new_id=lambda: "NEW")
    with opened.read() as snapshot:
        whole = snapshot.rules.everything()
        assert [(group.name, group.incarnation, group.policy) for group in whole.groups.values()] == [
            ("web", 7, GroupPolicy())
        ]
        assert list(whole.hosts) == ["host-1"]
        assert not any(snapshot.metrics.tallies().values())
        assert (snapshot.webhooks.count(), snapshot.tokens.any()) == (0, False)
    opened.close()


def test_hosts_that_were_removed_before_are_known_by_their_names(url: str) -> None:
    engines = create_engines(parse_database(url))
    with engines.writing.begin() as connection:
        command.upgrade(alembic_config(connection), "0014")
        connection.execute(text("INSERT INTO meta (id, number, lineage) VALUES (1, 3, 'L')"))
        for number, kind, host in ((1, "host-added", "old"), (2, "host-removed", "old"), (3, "x", "other")):
            connection.execute(
                text(
                    "INSERT INTO records (number, at, kind, host, by, reason) "
                    f"VALUES ({number}, 0, '{kind}', '{host}', '', '')"
                )
            )
    engines.dispose()
    opened = open_store(url, new_id=never)
    with opened.read() as snapshot:
        assert snapshot.fleet.names_among(["old", "other"], project=ProjectName("a")).hosts == {"old"}
        assert snapshot.feed.since(0).removed_groups == ()
    opened.close()


def test_promises_are_counted_from_the_records_that_are_still_there(url: str) -> None:
    november, december = 1_793_491_200_000_000, 1_796_083_200_000_000  # the first of each in 2026
    engines = create_engines(parse_database(url))
    with engines.writing.begin() as connection:
        command.upgrade(alembic_config(connection), "0017")
        put(connection, "meta", id=1, number=9, lineage="L")
        for order, driver in (("O1", "external"), ("O2", "simulated")):
            words = {"action": "maintenance", "work": "freeze", "source": "Platform", "state": "done"}
            empty = {"by": "", "reason": "", "why": "", "stages": "[]", "waiting": "[]"}
            put(connection, "orders", id=order, number=1, driver=driver, created_at=0, **words, **empty)
        # The last one starts as it is announced, and promises nothing.
        for id_, order, ahead, start in (
            ("E1", "O1", 900, november),
            ("E2", "O2", 900, december),
            ("E3", "O1", 0, december),
        ):
            words = {"group_name": "web", "type": "Freeze", "status": "Started", "source": "Platform"}
            empty = {"stage": 0, "domain": 0, "duration_seconds": 5, "description": "", "why": ""}
            named = json.dumps([{"machine": str(number), "name": str(number)} for number in range(4)])
            times = {"announced_at": start - ahead, "not_before": start, "started_at": start}
            lists = {"resources": named, "approvals": "[]"}
            put(connection, "events", id=id_, number=1, order_id=order, **words, **empty, **times, **lists)
        records = (
            *((november, "event-started", "E1", "O1", ""), (november, "event-left", "E1", "O1", "")),
            (november, "notice-late", "E1", "O1", "promised 15 m: web-0 got 10 m, web-1 got 9 m"),
            (november, "notice-never", "E1", "O1", "promised 15 m: web-2"),
            *((december, "event-started", "E2", "O2", ""), (december, "event-started", "E3", "O1", "")),
            (december, "promise-broken", "E3", "O1", "fire: 2 m of notice instead of 15 m"),
        )
        for number, (at, kind, event, order, reason) in enumerate(records):
            about = {"event_id": event, "order_id": order, "reason": reason, "project": "a", "by": ""}
            put(connection, "records", number=number, at=at, kind=kind, **about)
    engines.dispose()
    opened = open_store(url, new_id=never)
    with opened.read() as snapshot:
        found, _ = snapshot.work.promises(after=None, limit=9)
    opened.close()
    assert [
        (each.month, each.simulated, each.kept, each.late, each.never, each.broken) for each in found
    ] == [
        ("2026-11", False, 2, 2, 1, 0),
        ("2026-12", False, 0, 0, 0, 1),
        ("2026-12", True, 4, 0, 0, 0),
    ]


def put(connection: Connection, table: str, **values: object) -> None:
    """Insert a row as an older version would."""
    names, given = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({given})"), values)


def test_a_newer_schema_is_refused(store_at_url: Store, url: str) -> None:
    run(url, f"UPDATE {VERSION_TABLE} SET version_num = '0042'")
    with pytest.raises(
        Conflict, match=rf"newer forewarn \(schema 0042, this one knows up to {revisions()[-1]}\): upgrade"
    ):
        open_store(url, new_id=never)


def test_a_migration_that_fails_leaves_nothing_behind(url: str) -> None:
    run(
        url,
        f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
        "CREATE TABLE records (number INTEGER)",
    )
    with pytest.raises(Exception, match="records"):
        open_store(url, new_id=never)
    run(url, "CREATE TABLE meta (id INTEGER)", "CREATE TABLE machines (id INTEGER)")


def test_somebody_elses_database_is_left_alone(url: str) -> None:
    run(url, "CREATE TABLE recipes (name TEXT)")
    with pytest.raises(Invalid, match="holds something else"):
        open_store(url, new_id=never)


def test_files_of_migrations_are_named_by_their_revisions() -> None:
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
def test_a_nonsense_url_is_refused(nonsense: str) -> None:
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
        assert tx._transaction.connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert tx._transaction.connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
    opened.close()


# One server at a time


def test_a_second_server_on_the_same_database_is_refused(url: str) -> None:
    with (
        hold(url),
        pytest.raises(
            Conflict, match=rf"another forewarn serves .* \(process {os.getpid()}\): stop it first"
        ),
    ):
        hold(url)
    with hold(url):
        pass


def test_the_lock_keeps_nobody_from_reading_and_writing(url: str) -> None:
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


def test_a_killed_server_lets_go(url: str) -> None:
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
    """Take the lock; PostgreSQL may need a moment to notice that its client is gone."""
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
        with pytest.raises(Conflict, match="was replaced while this forewarn served it"):
            held.keep()


def test_a_server_whose_file_was_removed_must_not_go_on(tmp_path: Path) -> None:
    with hold(f"sqlite:///{tmp_path}/forewarn.db") as held:
        (tmp_path / "forewarn.db").unlink()
        with pytest.raises(Conflict, match="was removed while this forewarn served it"):
            held.keep()


def test_a_file_that_takes_the_place_of_an_open_one_is_not_touched(tmp_path: Path, sqlite_url: str) -> None:
    opened = open_store(sqlite_url, new_id=lambda: "X")
    save_fleet(opened)
    backup(sqlite_url, tmp_path / "copy.db", new_lineage="COPY")
    before = (tmp_path / "copy.db").read_bytes()
    (tmp_path / "copy.db").rename(tmp_path / "forewarn.db")
    with pytest.raises(Unavailable, match="was removed or replaced"), opened.read(), opened.read():
        pass
    opened.close()
    assert (tmp_path / "forewarn.db").read_bytes() == before


def test_opening_makes_no_other_files(tmp_path: Path, sqlite_url: str) -> None:
    open_store(sqlite_url, new_id=lambda: "X").close()
    assert [path.name for path in tmp_path.iterdir()] == ["forewarn.db"]
    with closing(sqlite3.connect(tmp_path / "forewarn.db")) as plain:
        assert plain.execute("SELECT lineage FROM meta").fetchone() == ("X",)


def test_a_lock_that_a_lost_connection_still_has_is_not_another_servers(postgres_url: str) -> None:
    with hold(postgres_url) as held:
        assert isinstance(held, ConnectionLock)
        ending = held._connection
        held._connection = held._engine.connect()
        held._connection.close()
        with pytest.raises(Unavailable, match="has not ended yet"):
            held.keep()
        ending.close()
        until(lambda: _is_kept(held), what="the lock to be had again")
        with pytest.raises(Conflict, match="another forewarn serves"):
            hold(postgres_url)


def _is_kept(held: ConnectionLock) -> bool:
    try:
        held.keep()
    except Unavailable:  # PostgreSQL needs a moment to notice that its client is gone
        return False
    return True
