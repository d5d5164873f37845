"""Backups: complete, independent stores, made while a server writes."""

from pathlib import Path

import pytest

from forewarn.core.errors import Conflict, Invalid, NotFound, Unavailable
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.changes import Changes
from forewarn.core.model.constraints import Grace
from forewarn.store.opening.copying import backup
from forewarn.store.opening.lock import hold
from forewarn.store.store import Store, open_store
from tests.contract.samples import (
    NOW,
    event,
    everything,
    group,
    machine,
    machine_id,
    order,
    record,
    save,
    save_fleet,
    session,
    stage,
    step,
)
from tests.helpers.database.transactions import writing


def reopen(file: Path) -> Store:
    return open_store(f"sqlite:///{file}", new_id=lambda: "UNUSED")


def test_a_backup_is_an_independent_store_with_all_saved_values(
    store_at_url: Store, url: str, tmp_path: Path
) -> None:
    save_fleet(store_at_url, [machine("web-0", tags={"a": "ü"}), machine("web-1")])
    save(
        store_at_url,
        orders=(order(1, stages=(stage(step("web-0")),), due_at=NOW),),
        events=(event(1),),
        records=(record(2, reason="because"),),
    )
    save(store_at_url, removed_machines=(machine_id("web-1"),))
    with writing(store_at_url) as tx:
        tx.time.set_grace(Grace(until=NOW, announced_before=NOW))
        tx.fleet_file.set_applied("digest")
    store_at_url.save_activity({}, {machine_id("web-0"): NOW})
    with hold(url):
        backup(url, tmp_path / "copy.db", new_lineage="COPY")
    copy = reopen(tmp_path / "copy.db")
    assert everything(copy) == everything(store_at_url)
    with copy.read() as there, store_at_url.read() as here:
        assert there.feed.lineage() == "COPY"
        assert here.feed.lineage() == "LINEAGE"
        assert there.feed.since(1) == here.feed.since(1)
        assert there.records.history(HistoryFilter()) == here.records.history(HistoryFilter())
        assert there.time.reached() == here.time.reached()
        assert there.fleet_file.applied() == "digest"
        assert there.fleet.last_seen([machine_id("web-0")]) == {machine_id("web-0"): NOW}
        assert there.rules.around(machines=[machine_id("web-0")]).orders == here.rules.everything().orders
    save(copy, machines=(machine("web-2"),))
    copy.close()


def test_a_backup_has_no_sessions_so_that_no_ended_session_comes_back(
    store_at_url: Store, url: str, tmp_path: Path
) -> None:
    with writing(store_at_url) as tx:
        tx.sessions.save(session(1))
    backup(url, tmp_path / "copy.db", new_lineage="COPY")
    copy = reopen(tmp_path / "copy.db")
    with copy.read() as there, store_at_url.read() as here:
        assert there.sessions.all() == []
        assert here.sessions.all() == [session(1)]
    copy.close()


def test_a_backup_does_not_wait_for_a_writer_and_has_no_uncommitted_values(
    store_at_url: Store, url: str, tmp_path: Path
) -> None:
    save_fleet(store_at_url)
    with writing(store_at_url) as tx:
        tx.rules.everything()
        tx.changes.save(Changes(now=NOW, groups=(group(incarnation=2),)))
        backup(url, tmp_path / "copy.db", new_lineage="COPY")
    copy = reopen(tmp_path / "copy.db")
    assert everything(copy).groups == {"web": group()}
    assert everything(store_at_url).groups == {"web": group(incarnation=2)}
    copy.close()


def test_a_backup_leaves_one_file(store_at_url: Store, url: str, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    backup(url, folder / "copy.db", new_lineage="COPY")
    assert [path.name for path in folder.iterdir()] == ["copy.db"]


def test_a_backup_overwrites_nothing(store_at_url: Store, url: str, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(Conflict, match="exists already"):
        backup(url, target, new_lineage="COPY")
    assert target.read_text() == "precious"


def test_a_backup_that_fails_leaves_nothing(store_at_url: Store, url: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        backup(url, tmp_path / "missing" / "copy.db", new_lineage="COPY")
    assert not (tmp_path / "missing").exists()


def test_a_missing_store_is_not_backed_up(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"forewarn\.db does not exist"):
        backup(f"sqlite:///{tmp_path}/forewarn.db", tmp_path / "copy.db", new_lineage="COPY")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_no_store_is_not_backed_up(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database\n" * 400)
    with pytest.raises(Unavailable, match="failed"):
        backup(f"sqlite:///{tmp_path}/notes.txt", tmp_path / "copy.db", new_lineage="COPY")
    with pytest.raises(Invalid):
        backup("sqlite://", tmp_path / "copy.db", new_lineage="COPY")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_postgresql_of_another_schema_is_not_copied(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="has no schema"):
        backup(postgres_url, tmp_path / "copy.db", new_lineage="COPY")
    assert list(tmp_path.iterdir()) == []
