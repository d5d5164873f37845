"""A write-ahead log of another store beside a file is refused, and both remain unchanged."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from forewarn.core.errors import Conflict
from forewarn.store.opening.copying import backup, copy
from forewarn.store.opening.lock import hold
from forewarn.store.opening.schema import is_store
from forewarn.store.store import open_store
from tests.contract.samples import everything, machine, save, save_fleet

KILLED = "killed.db"


def url_of(file: Path) -> str:
    return f"sqlite:///{file}"


def leave_killed(folder: Path, *, more: int = 0) -> Path:
    """Create a store as a killed server leaves it, with the last changes only in the log."""
    source = folder / "source.db"
    opened = open_store(url_of(source), new_id=lambda: "LINEAGE")
    save_fleet(opened)
    opened.close()
    shutil.copyfile(source, folder / "cold.db")
    opened = open_store(url_of(source), new_id=lambda: "UNUSED")
    for number in range(more):
        save(opened, machines=(machine(f"db-{number}"),))
    backup(url_of(source), folder / "backup.db", new_lineage="BACKUP")
    if more:
        with closing(sqlite3.connect(source)) as plain:
            plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    save(opened, machines=(machine("last"),))
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{source}{suffix}", folder / f"{KILLED}{suffix}")
    opened.close()
    return folder / KILLED


def open_as_server(file: Path) -> None:
    with hold(url_of(file)):
        open_store(url_of(file), new_id=lambda: "UNUSED").close()


def open_as_command(file: Path) -> None:
    open_store(url_of(file), new_id=lambda: "UNUSED", without_migration=True).close()


def back_up(file: Path) -> None:
    backup(url_of(file), file.with_name("another.db"), new_lineage="ANOTHER")


def copy_it(file: Path) -> None:
    copy(url_of(file), url_of(file.with_name("another.db")), new_lineage="ANOTHER")


def probe(file: Path) -> None:
    is_store(url_of(file))


@pytest.mark.parametrize("use", [open_as_server, open_as_command, back_up, copy_it, probe])
def test_a_backup_copied_over_the_file_of_a_killed_server_is_not_mixed_with_its_log(
    tmp_path: Path, use: Callable[[Path], None]
) -> None:
    killed = leave_killed(tmp_path)
    shutil.copyfile(tmp_path / "backup.db", killed)
    before = [Path(f"{killed}{suffix}").read_bytes() for suffix in ("", "-wal")]
    with pytest.raises(Conflict, match=f"move {killed}-wal and {killed}-shm away"):
        use(killed)
    assert [Path(f"{killed}{suffix}").read_bytes() for suffix in ("", "-wal")] == before


def test_the_backup_is_served_once_the_log_is_moved_away(tmp_path: Path) -> None:
    killed = leave_killed(tmp_path)
    shutil.copyfile(tmp_path / "backup.db", killed)
    Path(f"{killed}-wal").rename(tmp_path / "kept")
    open_as_server(killed)


def test_a_copy_from_another_time_is_not_mixed_with_the_log(tmp_path: Path) -> None:
    killed = leave_killed(tmp_path, more=40)
    shutil.copyfile(tmp_path / "cold.db", killed)
    with pytest.raises(Conflict, match="does not belong to the store in"):
        open_as_server(killed)


def test_a_log_whose_file_was_removed_is_not_removed_too(tmp_path: Path) -> None:
    killed = leave_killed(tmp_path)
    before = Path(f"{killed}-wal").read_bytes()
    killed.unlink()
    with pytest.raises(Conflict, match="restore its file"):
        open_as_server(killed)
    assert Path(f"{killed}-wal").read_bytes() == before


@pytest.mark.parametrize("more", [0, 40])
def test_the_store_of_a_killed_server_is_served_completely(tmp_path: Path, more: int) -> None:
    killed = leave_killed(tmp_path, more=more)
    open_as_server(killed)
    opened = open_store(url_of(killed), new_id=lambda: "UNUSED")
    assert "last" in {each.name for each in everything(opened).machines.values()}
    opened.close()


def test_a_store_whose_first_server_was_killed_immediately_is_served(tmp_path: Path) -> None:
    opened = open_store(url_of(tmp_path / "young.db"), new_id=lambda: "YOUNG")
    for suffix in ("", "-wal"):
        shutil.copyfile(tmp_path / f"young.db{suffix}", tmp_path / f"{KILLED}{suffix}")
    opened.close()
    open_as_server(tmp_path / KILLED)
