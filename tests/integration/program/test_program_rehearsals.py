"""Faults at the guest endpoint of a running server: only for machines in the rehearsal."""

import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.helpers.programs.process import Guest, Held, Program, free_port, until

FLEET = """
[projects.lab]
rehearsal = true
[projects.shop]

[defaults]
driver = "simulated"

[hosts.rack-1]
[hosts.rack-2]

[[machines]]
name = "lab-0"
project = "lab"
host = "rack-1"
address = "127.0.0.61"

[[machines]]
name = "lab-1"
project = "lab"
host = "rack-2"
port = {port}

[[machines]]
name = "till"
project = "shop"
host = "rack-1"
address = "127.0.0.62"
"""
ID = "602D9444-D2CD-49C7-8624-8643E7171297"
OTHER = "702D9444-D2CD-49C7-8624-8643E7171297"
PATH = "/v1/projects/lab/rehearsal"


class Site:
    """A server with a manual clock, and the guests of its machines."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        port = free_port()
        (folder / "fleet.toml").write_text(FLEET.format(port=port))
        unlimited = {"FOREWARN_GUEST_RATE": "0"}
        self.program = stack.enter_context(Program(folder, "--fleet", "fleet.toml", environment=unlimited))
        url = self.program.guests[0]
        self.lab, self.till = Guest(url, address="127.0.0.61"), Guest(url, address="127.0.0.62")
        self.door = Guest(f"http://127.0.0.1:{port}")
        for guest in (self.lab, self.till, self.door):
            stack.enter_context(guest.client)
            guest.document()

    def play(self, *faults: dict[str, Any], id_: str = ID) -> httpx.Response:
        numbered = [{"number": number, **fault} for number, fault in enumerate(faults)]
        body = {"id": id_, "scenario": "mine", "machines": ["lab-0", "lab-1"], "faults": numbered}
        return self.program.call("PUT", PATH, json=body)

    def spoil(self, kind: str, **more: Any) -> None:
        answer = self.play({"kind": kind, **more})
        assert answer.status_code == 200, answer.text

    def end(self) -> None:
        assert self.program.call("DELETE", PATH).status_code == 200

    def restart(self) -> dict[str, Any]:
        event: dict[str, Any] = self.program.post("/v1/machines/lab-0/restart")["event"]
        return event

    def sent_at(self, event: str) -> str | None:
        (notice,) = self.program.get(f"/v1/events/{event}")["event"]["notices"]
        at: str | None = notice["sent_at"]
        return at

    def kinds(self) -> list[tuple[str, str, str]]:
        records = self.program.history()
        return [(r["kind"], r["by"], r["reason"]) for r in records if r["kind"].startswith("rehearsal")]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


@pytest.mark.parametrize(("kind", "retry"), [("429", "1"), ("500", None), ("503", "1")])
def test_an_error_fault_applies_only_to_machines_in_the_rehearsal(
    site: Site, kind: str, retry: str | None
) -> None:
    site.spoil(kind, machines=["lab-0"])
    for answer in (site.lab.poll(), site.lab.approve(ID)):
        assert (answer.status_code, answer.headers.get("Retry-After")) == (int(kind), retry)
    assert site.till.poll().status_code == site.door.poll().status_code == 200
    site.end()
    assert site.lab.poll().status_code == 200


def test_an_answer_may_be_empty_or_labelled_as_plain_text(site: Site) -> None:
    site.spoil("empty")
    assert [(each.poll().status_code, each.poll().content) for each in (site.lab, site.door)] == [
        (200, b"")
    ] * 2
    site.spoil("text", calls=1, number=7)
    answer = site.lab.poll()
    assert (answer.headers["Content-Type"], answer.json()["Events"]) == ("text/plain", [])
    assert site.lab.poll().headers["Content-Type"].startswith("application/json")


def test_a_vanished_event_does_not_count_as_sent(site: Site) -> None:
    site.spoil("vanished")
    event = site.restart()
    assert site.lab.document()["Events"] == []
    assert site.sent_at(event["id"]) is None
    site.play()
    (seen,) = site.lab.document()["Events"]
    assert seen["EventId"] == event["id"]
    assert site.sent_at(event["id"]) is not None


def test_an_event_may_be_born_started_and_a_notice_may_be_short(site: Site) -> None:
    event = site.restart()
    site.spoil("born-started")
    assert site.lab.document()["Events"] == []
    site.spoil("short-notice", notice_seconds=60)
    first = site.lab.document()
    site.program.advance(14 * 60 + 1)
    shown = site.lab.document()
    assert (first["Events"], [each["EventId"] for each in shown["Events"]]) == ([], [event["id"]])
    assert shown["DocumentIncarnation"] > first["DocumentIncarnation"]


def test_conditional_requests_work_after_an_incarnation_restarts(site: Site) -> None:
    site.restart()
    assert site.lab.document()["DocumentIncarnation"] > 1
    site.spoil("incarnation-restart")
    answer = site.lab.poll()
    assert answer.json()["DocumentIncarnation"] == 1
    assert site.lab.poll(If_None_Match=answer.headers["ETag"]).status_code == 304
    site.end()
    again = site.lab.poll(If_None_Match=answer.headers["ETag"])
    assert (again.status_code, again.json()["DocumentIncarnation"] > 1) == (200, True)


def test_a_slow_answer_takes_service_time(site: Site) -> None:
    site.spoil("slow", calls=1, delay_seconds=120)
    held = Held(site.program.guests[0], address="127.0.0.61")
    until(lambda: site.program.get(PATH)["rehearsal"]["guests"][0]["spoiled"], what="the fault to be met")
    site.program.advance(119)
    assert not held.answered
    site.program.advance(1)
    assert held.answer().startswith("HTTP/1.1 200 ")


def test_an_endpoint_that_hangs_disconnects_when_the_fault_ends(site: Site) -> None:
    until_ = _after(site.program.get("/v1/clock")["now"], minutes=1)
    site.spoil("hang", until=until_)
    held = Held(site.program.guests[0], address="127.0.0.61")
    until(lambda: site.program.get(PATH)["rehearsal"]["guests"][0]["spoiled"], what="the fault to be met")
    assert not held.answered
    site.program.advance(60)
    assert held.answer() == ""
    assert site.lab.poll().status_code == 200


@pytest.mark.parametrize("kind", ["hang", "slow"])
def test_delayed_requests_are_answered_when_the_rehearsal_ends(site: Site, kind: str) -> None:
    site.spoil(kind, machines=["lab-0"])
    held = Held(site.program.guests[0], address="127.0.0.61")
    until(lambda: site.program.get(PATH)["rehearsal"]["guests"][0]["spoiled"], what="the fault to be met")
    site.end()
    assert held.answer().startswith("" if kind == "hang" else "HTTP/1.1 200 ")


def test_a_slow_error_is_not_sent_after_the_end(site: Site) -> None:
    site.play({"kind": "slow"}, {"kind": "503"})
    held = Held(site.program.guests[0], address="127.0.0.61")
    until(lambda: site.program.get(PATH)["rehearsal"]["guests"][0]["spoiled"], what="the fault to be met")
    site.end()
    assert held.answer().startswith("HTTP/1.1 200 ")


def test_a_group_that_moves_to_another_project_gets_real_answers_at_once(site: Site, tmp_path: Path) -> None:
    fleet = tomllib.loads((tmp_path / "fleet.toml").read_text())
    fleet["groups"] = {"web": {"kind": "availability-set", "project": "lab"}}
    fleet["machines"][0] |= {"group": "web", "project": "lab"}
    assert site.program.call("PUT", "/v1/fleet", json=fleet).status_code == 200
    site.lab.document()
    site.spoil("503")
    assert site.lab.poll().status_code == 503
    fleet["groups"]["web"]["project"] = fleet["machines"][0]["project"] = "shop"
    answer = site.program.call("PUT", "/v1/fleet", json=fleet)
    assert answer.status_code == 200, answer.text
    assert site.lab.poll().status_code == 200
    site.spoil("503")
    assert (site.lab.poll().status_code, site.door.poll().status_code) == (200, 503)


def test_a_long_poll_gets_a_fault_that_begins_meanwhile(site: Site) -> None:
    now = site.program.get("/v1/clock")["now"]
    etag = site.lab.poll().headers["ETag"]
    held = Held(site.program.guests[0], address="127.0.0.61", If_None_Match=etag, Prefer="wait=60")
    site.play({"kind": "503", "since": _after(now, minutes=1)})
    assert not held.answered
    site.program.advance(60)
    assert held.answer().startswith("HTTP/1.1 503 ")


def test_the_ledger_is_shown_and_the_rehearsal_is_recorded(site: Site) -> None:
    site.spoil("429", calls=2, machines=["lab-0"])
    for _ in range(3):
        site.lab.poll()
    shown = site.program.get(PATH)["rehearsal"]
    first, second = shown["guests"]
    assert (shown["scenario"], shown["by"], shown["faults"][0]["kind"]) == ("mine", "operator", "429")
    assert (first["machine"], first["polls"], first["spoiled"], first["meets"]) == ("lab-0", 3, 2, "")
    assert first["last_sound"] == first["last_poll"]
    assert (second["machine"], second["polls"], second["last_poll"]) == ("lab-1", 0, None)
    site.end()
    assert site.program.call("GET", PATH).status_code == 404
    assert site.kinds() == [
        ("rehearsal-begun", "operator", "mine"),
        ("rehearsal-faults", "operator", "mine: 429 for lab-0"),
        ("rehearsal-ended", "operator", "mine"),
    ]


def test_a_restarted_server_injects_no_faults_until_they_are_set_again(site: Site) -> None:
    site.spoil("503")
    site.program.restart()
    lab = Guest(site.program.guests[0], address="127.0.0.61")
    with lab.client:
        assert lab.poll().status_code == 200
        site.spoil("503")
        assert lab.poll().status_code == 503


def test_a_fault_ends_when_its_project_no_longer_allows_rehearsals(site: Site, tmp_path: Path) -> None:
    site.spoil("503")
    assert site.lab.poll().status_code == 503
    text = (tmp_path / "fleet.toml").read_text().replace("rehearsal = true", "")
    answer = site.program.call("PUT", "/v1/fleet", json=tomllib.loads(text))
    assert answer.status_code == 200, answer.text
    until(lambda: site.lab.poll().status_code == 200, what="the fault to end")
    # Polls get real answers even before the end is saved.
    until(lambda: "rehearsal-ended" in [kind for kind, _, _ in site.kinds()], what="the end to be recorded")
    (*_, ended) = site.kinds()
    assert ended == ("rehearsal-ended", "forewarn", "mine: the project is no longer for rehearsals")
    assert site.play().status_code == 409


def test_a_project_has_one_rehearsal_at_a_time(site: Site) -> None:
    site.play()
    answer = site.play(id_=OTHER)
    assert answer.status_code == 409
    assert "operator plays mine in project lab: wait until that is over" in answer.json()["error"]["message"]


def _after(moment: str, *, minutes: int) -> str:
    return (datetime.fromisoformat(moment) + timedelta(minutes=minutes)).isoformat()
