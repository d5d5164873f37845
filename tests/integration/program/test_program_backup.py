"""A copy that is made while the server runs: it can be served, and is another store."""

import json
from pathlib import Path

from tests.helpers.programs.process import Program, run, sample_fleet

WEB_0 = "127.0.1.10"


def test_a_copy_of_a_running_store_has_the_same_data_and_another_lineage(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        guest = program.guest(WEB_0)
        guest.document()
        event = program.post("/v1/machines/web-0/restart")["event"]
        program.advance(60)
        answer = run(tmp_path, "backup", "copy.db")
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout == "Copied the store to copy.db.\n"
        first, history, now = guest.poll(), program.history(), program.get("/v1/clock")["now"]
        program.post("/v1/machines/web-1/restart")

        with Program(tmp_path, "--database", "sqlite:///copy.db", "--no-hold") as copy:
            copy.out.wait_for("Open work in it continues now (--no-hold)")
            assert copy.get("/v1/holds")["holds"] == []
            second = copy.guest(WEB_0).poll()
            assert second.content == first.content
            assert second.headers["etag"] != first.headers["etag"]
            assert copy.history() == history
            assert copy.get("/v1/clock")["now"] == now
            # From now on the two stores are independent.
            copy.post(f"/v1/events/{event['id']}/approve")
            assert not program.get(f"/v1/events/{event['id']}")["event"]["approved"]


def test_a_backup_with_webhooks_causes_a_warning(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        added = program.call("POST", "/v1/webhooks", json={"url": "http://127.0.0.1:1/x"})
        assert added.status_code == 201
        assert "also pushes to the webhook" in run(tmp_path, "backup", "copy.db").stdout
        answer = run(tmp_path, "backup", "again.db", "--json").stdout
        assert json.loads(answer) == {"file": "again.db", "webhooks": 1}


def test_a_restart_keeps_the_lineage(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        before = program.guest(WEB_0).poll()
        program.restart()
        after = program.guest(WEB_0).poll()
        assert (after.content, after.headers["etag"]) == (before.content, before.headers["etag"])
        assert program.guest(WEB_0).poll(If_None_Match=before.headers["etag"]).status_code == 304


def test_a_backup_never_replaces_a_file(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)):
        (tmp_path / "copy.db").write_text("precious")
        answer = run(tmp_path, "backup", "copy.db")
        assert answer.returncode == 1
        assert "copy.db exists already" in answer.stderr
        assert (tmp_path / "copy.db").read_text() == "precious"


def test_the_first_start_on_a_backup_sets_a_hold_and_lists_the_open_work(
    tmp_path: Path,
) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        program.guest(WEB_0).document()
        placed = program.post("/v1/machines/web-0/restart")
        run(tmp_path, "backup", "backup.db")
    with Program(tmp_path, "--database", "sqlite:///backup.db") as restored:
        restored.out.wait_for("served for the first time. The whole fleet is held.")
        short = placed["order"]["id"][:8]
        assert restored.out.wait_for(f"order {short}: ") == "restart of web-0, announced, by operator"
        (hold,) = restored.get("/v1/holds")["holds"]
        assert (hold["project"], hold["host"]) == (None, None)
        assert "check the open work, then release this hold" in hold["reason"]
        restored.advance(20 * 60)
        assert restored.get(f"/v1/orders/{placed['order']['id']}")["order"]["state"] == "announced"
        # From now on it is an ordinary store; the hold stays until an operator releases it.
        restored.restart()
        assert "for the first time" not in restored.out.text
        assert restored.get("/v1/holds")["holds"] == [hold]
        restored.post(f"/v1/holds/{hold['id']}/release")
        assert restored.get(f"/v1/orders/{placed['order']['id']}")["order"]["state"] == "started"


def test_a_copy_is_not_held_and_continues(tmp_path: Path) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        program.guest(WEB_0).document()
        order = program.post("/v1/machines/web-0/restart")["order"]["id"]
        served = run(tmp_path, "copy", "forewarn.db", "copy.db")
        assert (served.returncode, "another server uses forewarn.db" in served.stderr) == (1, True)
        program.stop()
    copied = run(tmp_path, "copy", "forewarn.db", "copy.db")
    assert copied.returncode == 0, copied.stderr
    assert "Copied forewarn.db to copy.db: " in copied.stdout
    again = run(tmp_path, "copy", "sqlite:///forewarn.db", "sqlite:///copy.db")
    assert (again.returncode, "copy.db exists already" in again.stderr) == (1, True)
    answer = json.loads(run(tmp_path, "copy", "forewarn.db", "other.db", "--json").stdout)
    assert (answer["from"], answer["to"]) == ("forewarn.db", "other.db")
    with Program(tmp_path, "--database", "sqlite:///copy.db") as copy:
        assert copy.get("/v1/holds")["holds"] == []
        copy.advance(20 * 60)
        assert copy.get(f"/v1/orders/{order}")["order"]["state"] == "done"
