"""`forewarn guest` in a machine with a listening endpoint."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from forewarn.cli.guest_side import guest_view
from forewarn.cli.main import app
from forewarn.core.basic_types import EventStatus, EventType
from forewarn.sdk.blocking_client import GuestClient
from forewarn.sdk.connected_processes import connected_processes, connections_to
from forewarn.sdk.guest_errors import EndpointUnavailable
from tests.helpers.programs.process import FOREWARN, PATIENCE, Output, ending, started
from tests.helpers.service.scripted import answer as written
from tests.helpers.service.scripted import scripted
from tests.integration.guest.guest_face import START, Face, event, serving

REBOOT = replace(event(EventType.REBOOT), not_before=START + timedelta(minutes=15))
STARTED = replace(event(EventType.REBOOT, EventStatus.STARTED), not_before=START)
OTHERS = replace(
    event(EventType.FREEZE, names=("web-9",), number=2), not_before=START + timedelta(minutes=20)
)


@pytest.fixture
def face(monkeypatch: pytest.MonkeyPatch) -> Iterator[Face]:
    with serving() as face:
        monkeypatch.setenv("FOREWARN_ENDPOINT", url_of(face))
        yield face


def url_of(face: Face) -> str:
    host, port = face.server.listeners.addresses[0]
    return f"http://{host}:{port}"


def run(*words: str, code: int = 0, said: str | None = None) -> Result:
    result = CliRunner().invoke(app, ["guest", *words], input=said)
    assert result.exit_code == code, result.output
    return result


def answer(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def test_an_empty_document_prints_no_events(face: Face) -> None:
    assert "No events" in run("events").stdout
    assert answer("events") == {"incarnation": 1, "events": []}


def test_events_are_a_table_with_countdowns(face: Face) -> None:
    face.show(REBOOT, STARTED)
    _, _, first, second = run("events").stdout.splitlines()
    assert all(word in first for word in (REBOOT.id, "Reboot", "Scheduled", "Web-0, web-1", "in 15 m"))
    assert "has started" in second


def test_json_has_every_field_of_the_events(face: Face) -> None:
    face.show(REBOOT)
    (seen,) = answer("events")["events"]
    assert seen == {
        "id": REBOOT.id,
        "type": "Reboot",
        "status": "Scheduled",
        "resources": ["Web-0", "web-1"],
        "not_before": "2026-01-05T12:15:00Z",
        "seconds_left": 900,
        "description": REBOOT.description,
        "source": "User",
        "duration_seconds": -1,
    }


def test_an_event_is_approved_by_a_prefix_of_its_id(face: Face) -> None:
    face.show(REBOOT)
    assert "Approved: Reboot of Web-0 and web-1" in run("approve", REBOOT.id[:8].lower()).stdout
    assert [ids for _, ids, _ in face.desk.approved] == [(REBOOT.id,)]


@pytest.mark.parametrize(("given", "says"), [("FFFF", "no event"), (REBOOT.id[:8], "several events")])
def test_an_ambiguous_id_is_refused(face: Face, given: str, says: str) -> None:
    face.show(REBOOT, OTHERS)
    assert says in run("approve", given, code=1).stderr
    assert face.desk.approved == []


def test_without_an_id_each_event_needs_an_answer(face: Face) -> None:
    face.show(REBOOT, OTHERS, replace(STARTED, id=f"{STARTED.id[:-1]}9"))
    said = run("approve", said="n\ny\n").stdout
    assert said.count("Approve this event?") == 2
    assert [ids for _, ids, _ in face.desk.approved] == [(OTHERS.id,)]


def test_all_events_or_none_may_be_approved(face: Face) -> None:
    assert "No event was approved" in run("approve", said="").stdout
    face.show(REBOOT, OTHERS)
    assert "No event was approved" in run("approve", said="n\nn\n").stdout
    run("approve", "--yes")
    assert [ids for _, ids, _ in face.desk.approved] == [(REBOOT.id, OTHERS.id)]


def test_with_json_the_events_to_approve_must_be_named(face: Face) -> None:
    face.show(REBOOT)
    run("approve", "--json", code=2)
    assert face.desk.approved == []
    assert answer("approve", "--yes") == {"approved": [REBOOT.id]}


def test_the_endpoint_option_may_precede_the_verb(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_ENDPOINT", "127.0.0.1:1")
    assert "No events" in run("--endpoint", url_of(face), "events").stdout
    assert "No events" in run("--endpoint", "127.0.0.1:1", "events", "--endpoint", url_of(face)).stdout


@pytest.mark.parametrize("words", [["guest"], ["guest", "events"], ["agent", "status"], ["agent", "init"]])
def test_commands_that_need_no_server_have_no_server_options(words: list[str]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"]).stdout
    assert "--json" in shown
    for option in ("--server", "--token", "--project"):
        assert option not in shown


def test_the_server_option_is_refused(face: Face) -> None:
    assert "--endpoint URL" in run("events", "--server", "http://127.0.0.1:1", code=1).stderr


def test_the_doctor_prints_what_it_checked_and_found(face: Face) -> None:
    face.show(REBOOT, OTHERS)
    said = run("doctor").stdout
    for words in (
        "FOREWARN_ENDPOINT",
        url_of(face),
        "web-0 (id-of-web-0)",
        "2, 1 of them for this machine",
        "ahead of",
    ):
        assert words in said
    told = answer("doctor")
    assert told["endpoint"] == url_of(face)
    assert told["machine"] == "web-0"
    assert told["clock_ahead_seconds"] > 60
    assert told["trouble"] is None


def test_the_doctor_exits_with_3_if_no_endpoint_answers() -> None:
    result = run("doctor", "--endpoint", "127.0.0.1:1", code=3)
    assert "--endpoint" in result.stdout
    assert "the connection failed" in result.stderr


@pytest.mark.parametrize("command", ["events", "approve", "watch", "doctor"])
def test_an_invalid_address_is_wrong_usage(command: str) -> None:
    assert "is not the address of an endpoint" in run(command, "--endpoint", "a b", code=2).stderr


def test_a_403_is_a_refusal() -> None:
    with scripted(written(403)) as closed:
        assert "403" in run("events", "--endpoint", closed.url, code=1).stderr


# Waiting


def test_a_machine_without_events_of_its_own_is_clear(face: Face) -> None:
    face.show(OTHERS)
    assert answer("wait", "--clear")["clear"] is True


def test_waiting_ends_when_the_event_leaves_the_list(face: Face) -> None:
    face.show(STARTED)

    def end() -> None:
        face.waiting(1)
        face.show()

    ending = threading.Thread(target=end)
    ending.start()
    assert "No event of this machine is listed" in run("wait", "--clear").stdout
    ending.join()


def test_waiting_fails_open_after_its_limit(face: Face) -> None:
    face.show(REBOOT)
    said = run("wait", "--clear", "--limit", "0.5").stderr
    assert f"not clear within 0.5 s: still listed: Reboot (Scheduled, {REBOOT.id})" in said
    assert "Continuing anyway" in said


def test_waiting_fails_open_without_an_endpoint() -> None:
    result = run("wait", "--clear", "--limit", "1", "--endpoint", "127.0.0.1:1")
    assert "not clear within 1 s: no metadata endpoint answers at http://127.0.0.1:1" in result.stderr


def test_waiting_fails_open_at_once_after_a_403() -> None:
    with scripted(written(403)) as closed:
        assert "403" in run("wait", "--clear", "--limit", "60", "--endpoint", closed.url).stderr


def test_a_name_may_be_given_on_the_command_line(face: Face) -> None:
    face.show(OTHERS)
    told = answer("wait", "--clear", "--limit", "0.2", "--machine", "WEB-9")
    assert told["clear"] is False


def test_the_condition_to_wait_for_is_required() -> None:
    run("wait", code=2)


# Watching, in a separate process


def test_a_watch_prints_each_document(face: Face, tmp_path: Path) -> None:
    command = [FOREWARN, "guest", "watch", "--json", "--endpoint", url_of(face)]
    with ending(started(command, tmp_path)) as process:
        assert process.stdout is not None
        out = Output(process.stdout)
        out.wait_for('"events": []')
        face.waiting(1)
        face.show(REBOOT)
        out.wait_for(REBOOT.id)
        process.terminate()
        process.wait(PATIENCE)
        out.finish()
        assert process.stderr is not None
        process.stderr.close()
    assert [json.loads(line)["incarnation"] for line in out.lines] == [1, 2]


def drawing_of(face: Face, *, trouble: str | None = None) -> str:
    """Draw the view of `watch` on a wide terminal."""
    with GuestClient(url_of(face)) as client:
        drawing = guest_view._Drawing(client)
        drawing.document = client.events()
        drawing.note(None if trouble is None else EndpointUnavailable(trouble))
        screen = Console(width=200)
        with screen.capture() as captured:
            screen.print(drawing.drawn())
    return captured.get()


def test_a_watch_has_the_columns_of_the_table_of_events(face: Face) -> None:
    face.show(REBOOT)
    drawn = drawing_of(face)
    with GuestClient(url_of(face)) as client:
        columns = guest_view.event_table(client).columns
    for word in (*columns, REBOOT.description, "in 15 m"):
        assert word in drawn
    assert "last known" not in drawn


def test_a_watch_without_an_endpoint_shows_the_time_of_its_last_document(face: Face) -> None:
    drawn = drawing_of(face, trouble="no answer")
    assert f"last known at {START:%H:%M}" in drawn
    assert "no answer" in drawn
    assert guest_view.NO_EVENTS not in drawn


@pytest.mark.usefixtures("unforked")  # the command line identifies it
def test_a_connected_process_is_named(face: Face, tmp_path: Path) -> None:
    command = [FOREWARN, "guest", "watch", "--endpoint", url_of(face)]
    host, port = face.server.listeners.addresses[0]
    with ending(started(command, tmp_path)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        face.waiting(1)
        found = connected_processes(host, port)
        process.kill()
        process.stdout.close()
        process.stderr.close()
    assert found is not None
    assert [(each.pid, "guest watch" in each.command) for each in found.known] == [(process.pid, True)]


def test_connections_are_parsed_from_the_table_of_linux() -> None:
    table = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0F02000A:C350 FEA9FEA9:0050 01 00000000:00000000 00:00000000 00000000  1000     0 4711 1 0\n"
        "   1: 0100007F:0050 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000     0 4712 1 0\n"
        "   2: short\n"
    )
    assert list(connections_to(table, "169.254.169.254", 80)) == ["4711"]


def test_a_system_without_a_connection_table_is_not_an_error(tmp_path: Path) -> None:
    assert connected_processes("169.254.169.254", 80, proc=tmp_path) is None
    assert connected_processes("::1", 80) is None
