"""Only the owner can read the files of a store, because they contain the secrets of webhooks."""

import logging
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.store.opening.copying import backup
from forewarn.store.opening.lock import hold
from forewarn.store.store import open_store
from tests.contract.samples import save_fleet


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """Let other users read new files, as most systems do."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {path.name: f"{stat.S_IMODE(path.stat().st_mode):o}" for path in folder.iterdir()}


def test_only_the_owner_can_read_a_new_store_and_its_files(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'forewarn.db'}"
    with hold(url):
        store = open_store(url, new_id=lambda: "LINEAGE")
        save_fleet(store)
        assert modes(tmp_path) == {
            "forewarn.db": "600",
            "forewarn.db-wal": "600",
            "forewarn.db-shm": "600",
        }
        store.close()


def test_a_start_revokes_the_access_of_others(tmp_path: Path) -> None:
    first = open_store(f"sqlite:///{tmp_path / 'first.db'}", new_id=lambda: "LINEAGE")
    save_fleet(first)
    left = tmp_path / "left"
    left.mkdir()
    for suffix in ("", "-wal", "-shm"):  # as after a crash
        shutil.copyfile(tmp_path / f"first.db{suffix}", left / f"forewarn.db{suffix}")
    first.close()
    assert set(modes(left).values()) == {"644"}
    url = f"sqlite:///{left / 'forewarn.db'}"
    with hold(url):
        store = open_store(url, new_id=lambda: "UNUSED")
        assert set(modes(left).values()) == {"600"}
        store.close()


def test_the_target_of_a_link_gets_the_permissions(tmp_path: Path) -> None:
    apart = tmp_path / "apart"
    apart.mkdir()
    open_store(f"sqlite:///{apart / 'real.db'}", new_id=lambda: "LINEAGE").close()
    (apart / "real.db").chmod(0o664)
    (tmp_path / "link.db").symlink_to(apart / "real.db")
    open_store(f"sqlite:///{tmp_path / 'link.db'}", new_id=lambda: "UNUSED").close()
    assert modes(apart) == {"real.db": "600"}


def test_only_the_owner_can_read_a_backup(url: str, tmp_path: Path) -> None:
    open_store(url, new_id=lambda: "LINEAGE").close()
    backup(url, tmp_path / "copy.db", new_lineage="COPY")
    assert modes(tmp_path)["copy.db"] == "600"


def test_a_warning_names_files_of_other_owners(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'forewarn.db'}"
    open_store(url, new_id=lambda: "LINEAGE").close()
    (tmp_path / "forewarn.db").chmod(0o644)

    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)  # the tests may run as root, which may access everything
    with caplog.at_level(logging.WARNING):
        open_store(url, new_id=lambda: "UNUSED").close()
    assert "other users may read" in caplog.text
    assert "chmod 600" in caplog.text
