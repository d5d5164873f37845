"""Copies of a store into another database, of either kind, with all its values."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, event, text

from forewarn.core.errors import Conflict, Invalid, NotFound, Unavailable
from forewarn.core.filters import HistoryFilter
from forewarn.store import tables
from forewarn.store.opening.copying import backup, copy
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.opening.lock import hold
from forewarn.store.store import open_store
from tests.contract.later_forewarn import upgrade_forewarn
from tests.contract.samples import everything, machine, save_fleet, session
from tests.helpers.database.transactions import writing
from tests.helpers.programs.process import until


@pytest.fixture(params=["sqlite to postgresql", "postgresql to sqlite"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Return the URLs of two empty databases: source and target of a copy."""
    urls = f"sqlite:///{tmp_path / 'forewarn.db'}", str(request.getfixturevalue("postgres_url"))
    return urls if request.param == "sqlite to postgresql" else (urls[1], urls[0])


def rows(url: str) -> dict[str, list[Any]]:
    """Read all rows of a store except its lineage, which is unique."""
    engines = create_engines(parse_database(url))
    with engines.reading.begin() as connection:
        found = {
            table.name: sorted(map(repr, connection.execute(table.select())))
            for table in tables.metadata.sorted_tables
            if table is not tables.meta
        }
        meta = connection.execute(tables.meta.select()).mappings().one()
    engines.dispose()
    return {**found, "meta": [{**meta, "lineage": ""}]}


def make(url: str) -> None:
    """Create a small store, or migrate one."""
    store = open_store(url, new_id=lambda: "LINEAGE")
    if not everything(store).machines:
        save_fleet(store, [machine("web-0", tags={"a": 'ü "quoted" \\ 漢字', "b": "1.0"}), machine("web-1")])
    with writing(store) as tx:
        tx.sessions.save(session(1))
    store.close()


def test_postgresql_has_analyzed_a_copy_at_its_end(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'forewarn.db'}"
    make(source)
    copy(source, postgres_url, new_lineage="COPY")
    with psycopg.connect(postgres_url) as connection:
        looked_at = connection.execute(
            "SELECT tablename FROM pg_stats WHERE schemaname = 'public'"
        ).fetchall()
    assert ("machines",) in looked_at


def test_a_copy_has_all_values_in_either_direction(
    tmp_path: Path, postgres_url: str, other_postgres_url: str
) -> None:
    files = [f"sqlite:///{tmp_path / name}" for name in ("first.db", "second.db", "third.db")]
    make(files[0])
    whole = rows(files[0])
    told: list[tuple[str, int, int]] = []
    urls = [files[0], postgres_url, other_postgres_url, files[1], files[2]]
    for source, target in pairwise(urls):
        copied = copy(source, target, new_lineage=f"OF {target}", progress=lambda *each: told.append(each))
        assert rows(target) == whole
        assert copied.rows == sum(map(len, whole.values()))
    assert ("copied", copied.rows, copied.rows) in told
    assert told[-1] == ("compared", copied.rows, copied.rows)
    opened = open_store(files[2], new_id=lambda: "UNUSED")
    with opened.read() as snapshot:
        assert snapshot.feed.lineage() == f"OF {files[2]}"
        assert snapshot.time.backup_of() is None
    opened.close()


def test_an_older_store_is_copied_unchanged_and_then_migrated(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [f"sqlite:///{tmp_path / name}" for name in ("first.db", "second.db")]
    make(files[0])
    upgrade_forewarn(monkeypatch, tmp_path)
    copy(files[0], postgres_url, new_lineage="COPY")
    copy(postgres_url, files[1], new_lineage="COPY")
    for url in files:
        make(url)
    assert rows(files[1]) == rows(files[0])


def test_a_backup_is_restored_by_a_copy_and_is_still_a_backup(
    way: tuple[str, str], tmp_path: Path, other_postgres_url: str
) -> None:
    url = way[0]
    make(url)
    backup(url, tmp_path / "backup.db", new_lineage="BACKUP")
    copy(f"sqlite:///{tmp_path / 'backup.db'}", other_postgres_url, new_lineage="COPY")
    store, restored = (open_store(each, new_id=lambda: "UNUSED") for each in (url, other_postgres_url))
    assert everything(restored) == everything(store)
    with restored.read() as there, store.read() as here:
        assert there.records.history(HistoryFilter()) == here.records.history(HistoryFilter())
        assert there.time.backup_of() == here.time.reached()
        assert here.time.backup_of() is None
    store.close()
    restored.close()


# Refusals


def test_a_target_that_is_not_empty_is_refused(way: tuple[str, str]) -> None:
    for url in way:
        make(url)
    before = rows(way[1])
    with pytest.raises(Conflict, match=r"exists already|is not empty"):
        copy(*way, new_lineage="COPY")
    assert rows(way[1]) == before


def test_a_foreign_file_and_a_foreign_database_are_refused(tmp_path: Path, postgres_url: str) -> None:
    url = f"sqlite:///{tmp_path / 'forewarn.db'}"
    make(url)
    (tmp_path / "notes.txt").write_text("precious")
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(Conflict, match="exists already"):
        copy(url, f"sqlite:///{tmp_path / 'notes.txt'}", new_lineage="COPY")
    with pytest.raises(Conflict, match=r"is not empty \(table recipes\)"):
        copy(url, postgres_url, new_lineage="COPY")
    assert (tmp_path / "notes.txt").read_text() == "precious"


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_leftovers_of_another_store_at_the_target_are_not_mixed_in(tmp_path: Path, suffix: str) -> None:
    make(f"sqlite:///{tmp_path / 'forewarn.db'}")
    (tmp_path / f"new.db{suffix}").write_bytes(b"changes of another file")
    with pytest.raises(Conflict, match=rf"new\.db{suffix} belongs to another store"):
        copy(f"sqlite:///{tmp_path / 'forewarn.db'}", f"sqlite:///{tmp_path / 'new.db'}", new_lineage="COPY")
    with pytest.raises(Conflict, match="belongs to another store"):
        backup(f"sqlite:///{tmp_path / 'forewarn.db'}", tmp_path / "new.db", new_lineage="BACKUP")
    assert not (tmp_path / "new.db").exists()


def test_a_store_that_is_served_is_not_copied(way: tuple[str, str]) -> None:
    make(way[0])
    with hold(way[0]), pytest.raises(Conflict, match="another server uses"):
        copy(*way, new_lineage="COPY")
    copy(*way, new_lineage="COPY")  # the target is as empty as before


def test_a_database_that_is_no_store_is_not_copied(
    tmp_path: Path, postgres_url: str, other_postgres_url: str
) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        copy(f"sqlite:///{tmp_path / 'none.db'}", postgres_url, new_lineage="COPY")
    with pytest.raises(Invalid, match="cannot be copied"):
        copy("sqlite://", postgres_url, new_lineage="COPY")
    with pytest.raises(Conflict, match="there is no store in it"):
        copy(postgres_url, other_postgres_url, new_lineage="COPY")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_with_a_changed_row_fails_and_leaves_nothing(way: tuple[str, str]) -> None:
    make(way[0])
    begun: list[Connection] = []

    def spoil(phase: str, done: int, total: int) -> None:
        """Change a row during the copy, as a bad disk would."""
        if phase == "copied" and done == total:
            begun[-1].execute(text("UPDATE machines SET size = 'other' WHERE name = 'web-1'"))

    note = begun.append  # the last transaction to begin is the one that writes
    event.listen(Engine, "begin", note)
    try:
        with pytest.raises(Unavailable, match="copy of table machines has"):
            copy(*way, new_lineage="COPY", progress=spoil)
    finally:
        event.remove(Engine, "begin", note)
    until(lambda: _copied(way), what="the lock, which PostgreSQL keeps for a moment after its connection")
    assert rows(way[1]) == rows(way[0])


def _copied(way: tuple[str, str]) -> bool:
    try:
        copy(*way, new_lineage="COPY")
    except Conflict as refusal:
        if "another server uses" not in str(refusal):
            raise
        return False
    return True
