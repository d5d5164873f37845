"""The journal loses nothing that was written, wherever a crash cuts it off."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import (
    Approved,
    Begun,
    Changed,
    Ended,
    Ending,
    Entry,
    Left,
    Over,
    Owed,
    ProgramRunning,
    TakenUp,
    as_json,
    from_json,
)
from forewarn.agent.journal.journal_file import COMPACT_BYTES, Journal, machine_of, read
from forewarn.agent.journal.tracked_events import entries_of, replay
from forewarn.agent.status import of_events
from forewarn.core.errors import Invalid
from tests.helpers.programs.agents import NOW, VM_ID, event, started

SHARE = {"event": "A", "side": Side.PREPARE, "handler": "drain"}
BACK = {**SHARE, "side": Side.RECOVER}
LIFE: Sequence[Entry] = (
    TakenUp(event=event("A", description='say "hello"\n—'), at=NOW),
    Begun(**SHARE, attempt=1, at=NOW),
    ProgramRunning(**SHARE, pid=77, started="boot:1234"),
    Ended(**SHARE, ending=Ending.AGAIN, at=NOW, why="exit code 75"),
    Owed(event="A", handler="drain", thing="web/web-0 at /run/haproxy.sock"),
    Begun(**SHARE, attempt=2, at=NOW + timedelta(seconds=5)),
    Ended(**SHARE, ending=Ending.READY, at=NOW),
    Approved(event="A", at=NOW),
    Changed(event=started("A")),
    Left(event="A", at=NOW, why="it is over"),
    Begun(**BACK, attempt=1, at=NOW),
    Ended(**BACK, ending=Ending.READY, at=NOW),
    Over(event="A", at=NOW),
)


def opened(path: Path, *, vm_id: str = VM_ID, said: list[str] | None = None) -> Journal:
    return Journal(path, vm_id=vm_id, warn=(said if said is not None else []).append)


def written(path: Path, entries: Sequence[Entry]) -> bytes:
    journal = opened(path)
    for entry in entries:
        journal.write(entry)
    journal.close()
    return path.read_bytes()


def test_written_entries_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "agent.journal"
    written(path, LIFE[:-1])
    again = opened(path)
    assert again.tracked_events == replay(LIFE[:-1])
    again.close()


def test_cut_off_at_any_byte_the_journal_keeps_every_complete_line(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole", LIFE)
    path = tmp_path / "torn"
    for cut in range(len(whole) + 1):
        lines = whole[:cut].count(b"\n")
        expected = replay(LIFE[: max(0, lines - 1)])
        assert read(whole[:cut])[1] == expected
        if cut % 7 == 0 or whole[cut - 1 : cut] == b"\n":
            path.write_bytes(whole[:cut])
            torn = opened(path)
            assert torn.tracked_events == expected
            # And it accepts new entries.
            torn.write(TakenUp(event=event("B"), at=NOW))
            torn.close()
            assert read(path.read_bytes())[1] == replay(
                [*LIFE[: max(0, lines - 1)], TakenUp(event=event("B"), at=NOW)]
            )


def test_every_kind_of_entry_survives_writing() -> None:
    for entry in LIFE:
        assert from_json(json.loads(json.dumps(as_json(entry)))) == entry


@given(
    st.lists(
        st.one_of(
            st.sampled_from(LIFE),
            st.builds(
                Begun,
                event=st.sampled_from("AB"),
                side=st.sampled_from(Side),
                handler=st.sampled_from(["x", "y"]),
                attempt=st.integers(1, 3),
                at=st.just(NOW),
            ),
            st.just(TakenUp(event=event("B"), at=NOW + timedelta(seconds=1))),
        ),
        max_size=20,
    )
)
def test_compacting_loses_nothing(entries: list[Entry]) -> None:
    known = replay(entries)
    assert replay(entries_of(known)) == known


def test_a_long_journal_without_open_events_is_compacted(tmp_path: Path) -> None:
    path = tmp_path / "agent.journal"
    long = TakenUp(event=event("A", description="x" * COMPACT_BYTES), at=NOW)
    journal = opened(path)
    journal.write(long)
    assert path.stat().st_size > COMPACT_BYTES
    journal.write(Over(event="A", at=NOW))
    assert path.stat().st_size < 200
    journal.write(TakenUp(event=event("B"), at=NOW))
    journal.close()
    assert list(read(path.read_bytes())[1]) == ["B"]


def test_a_journal_with_open_events_does_not_grow_without_limit(tmp_path: Path) -> None:
    path = tmp_path / "agent.journal"
    journal = opened(path)
    journal.write(LIFE[0])
    reason = "x" * (COMPACT_BYTES // 4)
    for attempt in range(1, 40):
        journal.write(Begun(**SHARE, attempt=attempt, at=NOW))
        journal.write(Ended(**SHARE, ending=Ending.AGAIN, at=NOW, why=reason))
        assert path.stat().st_size < 2 * COMPACT_BYTES
    journal.close()
    assert read(path.read_bytes())[1] == journal.tracked_events


def test_the_journal_of_another_machine_is_moved_aside(tmp_path: Path) -> None:
    path, said = tmp_path / "agent.journal", list[str]()
    written(path, LIFE[:3])
    other = opened(path, vm_id="another", said=said)
    other.close()
    assert other.tracked_events == {}
    assert "belongs to another machine" in said[0]
    kept = tmp_path / f"agent.journal.{VM_ID}"
    assert read(kept.read_bytes())[0] == VM_ID


def test_a_machine_without_an_id_uses_any_journal(tmp_path: Path) -> None:
    path = tmp_path / "agent.journal"
    written(path, LIFE[:3])
    unnamed = opened(path, vm_id="")
    unnamed.close()
    assert list(unnamed.tracked_events) == ["A"]
    assert read(path.read_bytes())[0] == VM_ID


def test_a_reason_with_a_lone_surrogate_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "agent.journal"
    odd = Ended(**SHARE, ending=Ending.NEVER, at=NOW, why="\ud800 is no character")
    written(path, [*LIFE[:2], odd])
    assert read(path.read_bytes())[1] == replay([*LIFE[:2], odd])


def test_an_unreadable_line_is_skipped_with_a_warning(tmp_path: Path) -> None:
    path, said = tmp_path / "agent.journal", list[str]()
    lines = written(path, LIFE[:3]).splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1], b"\0\0 rubbish\n", *lines[2:]]))
    journal = opened(path, said=said)
    journal.close()
    assert journal.tracked_events == replay(LIFE[:3])
    (told,) = said
    assert told.startswith(f"journal {path}: line 3 cannot be read")
    assert b"rubbish" in (tmp_path / "agent.journal.damaged").read_bytes()


@pytest.mark.parametrize("at", [0, 2])
def test_a_line_nested_too_deeply_counts_as_damaged(tmp_path: Path, at: int) -> None:
    path, said = tmp_path / "agent.journal", list[str]()
    lines = written(path, LIFE[:3]).splitlines(keepends=True)
    lines.insert(at, b"[" * 100_000 + b"\n")
    path.write_bytes(b"".join(lines))
    machine_of(path.read_bytes())
    journal = opened(path, said=said)
    journal.close()
    assert journal.tracked_events == replay(LIFE[:3])
    assert said[0].startswith(f"journal {path}: line {at + 1} cannot be read")


@pytest.mark.parametrize("ending", ["part", "damaged"])
def test_links_in_place_of_its_files_are_not_followed(tmp_path: Path, ending: str) -> None:
    path, precious = tmp_path / "agent.journal", tmp_path / "precious"
    precious.write_text("kept")
    path.write_bytes(written(path, LIFE[:3]) + b"rubbish\n")
    (tmp_path / f"agent.journal.{ending}").symlink_to(precious)
    opened(path).close()
    assert precious.read_text() == "kept"
    assert (tmp_path / "agent.journal.damaged").read_bytes().endswith(b"rubbish\n")
    assert not path.is_symlink()


@pytest.mark.parametrize("lost", range(len(LIFE)))
def test_whichever_line_is_lost_begun_handlers_are_known(tmp_path: Path, lost: int) -> None:
    path, said = tmp_path / "agent.journal", list[str]()
    entries = LIFE[:-1]
    lines = written(path, entries).splitlines(keepends=True)
    lines[lost] = b"{torn\n"
    path.write_bytes(b"".join(lines))
    journal = opened(path, said=said)
    journal.close()
    (tracked,) = journal.tracked_events.values()
    assert tracked.touched() == replay(entries)["A"].touched()
    assert len(said) == 1


def test_a_journal_of_a_later_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.journal"
    path.write_text('{"journal":2,"vm_id":""}\n')
    with pytest.raises(Invalid, match="the journal has format 2, this agent reads 1"):
        opened(path)


def test_an_unwritable_journal_is_refused_at_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match="cannot be written: File exists"):
        opened(tmp_path / "file" / "agent.journal")


def test_a_full_disk_is_logged_once_and_entries_are_written_later(tmp_path: Path) -> None:
    folder, said = tmp_path / "disk", list[str]()
    journal = opened(folder / "agent.journal", said=said)
    journal.close()
    journal._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - in the place of the journal's own
    journal.write(LIFE[0])
    folder.rename(tmp_path / "away")
    journal.write(LIFE[1])
    assert journal.trouble is not None
    assert len([line for line in said if "cannot be written" in line]) == 1
    (tmp_path / "away").rename(folder)
    journal.write(LIFE[2])
    assert journal.trouble is None
    journal.close()
    assert read((folder / "agent.journal").read_bytes())[1] == replay(LIFE[:3])


def test_only_the_owner_can_read_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "agent.journal"
    written(path, LIFE[:3])
    path.chmod(0o644)
    opened(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


RUBBISH = (
    *("1e400", "-1e400", "NaN", "9" * 400, "-1", "0", "1.5", "true", "null", "[]", "{}"),
    *('""', '"\\u0000"', '"2026-01-05T10:00:00"', f"{'[' * 60}{']' * 60}", "9" * 5_000, "[" * 50_000),
)


def lines(*parts: bytes) -> bytes:
    return b"".join(part + b"\n" for part in parts)


WRITTEN = lines(*(json.dumps(as_json(each)).encode() for each in LIFE))


def spoilt(parsed: Mapping[str, object], field: str, rubbish: str) -> bytes:
    return json.dumps({**parsed, field: "RUBBISH"}).replace('"RUBBISH"', rubbish).encode()


@pytest.mark.parametrize("rubbish", RUBBISH, ids=lambda rubbish: rubbish[:20])
def test_no_invalid_field_of_an_entry_breaks_the_journal(rubbish: str) -> None:
    head = lines(b'{"journal":1,"vm_id":"V"}')
    for entry in LIFE:
        for field in as_json(entry):
            whole = head + WRITTEN + lines(spoilt(as_json(entry), field, rubbish))
            of_events(read(whole)[1], now=NOW, seconds_left=lambda event: event.seconds_left(NOW))


@pytest.mark.parametrize("rubbish", ["1e400", "0", "-1", "4294967296", "true", '"7"'])
def test_an_impossible_pid_is_refused(rubbish: str) -> None:
    line = spoilt(as_json(ProgramRunning(**SHARE, pid=77, started="")), "pid", rubbish)
    with pytest.raises(ValueError, match="invalid journal entry"):
        from_json(json.loads(line))


@pytest.mark.parametrize("rubbish", RUBBISH, ids=lambda rubbish: rubbish[:20])
@pytest.mark.parametrize("field", ["journal", "vm_id", "machine"])
def test_no_invalid_field_of_the_first_line_breaks_the_journal(field: str, rubbish: str) -> None:
    head = {"journal": 1, "vm_id": "V", "machine": "web-0"}
    whole = lines(spoilt(head, field, rubbish)) + WRITTEN
    machine_of(whole)
    if field == "journal" and rubbish in ("9" * 400, "-1", "0"):
        with pytest.raises(Invalid, match="move the journal away"):
            read(whole)
    else:
        read(whole)
