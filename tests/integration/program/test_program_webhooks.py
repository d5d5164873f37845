"""Webhooks of a real server: records are kept until delivered, in order, signed, and per receiver."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import Program, free_port, run, sample_fleet, until
from tests.helpers.programs.receiver import Receiver, is_signed, receiving

NEVER_PUSHED = "webhook-"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        yield program


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def add(program: Program, url: str, **more: Any) -> Any:
    answer = program.call("POST", "/v1/webhooks", json={"url": url, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


def shown_webhook(program: Program, added: Any) -> Any:
    return program.get(f"/v1/webhooks/{added['webhook']['id']}")["webhook"]


def wanted(program: Program, added: Any) -> list[int]:
    """Return the numbers of all records for a webhook."""
    first = added["webhook"]["delivered"]
    return [
        record["number"]
        for record in program.history()
        if record["number"] > first and not record["kind"].startswith(NEVER_PUSHED)
    ]


def arrived(program: Program, receiver: Receiver, added: Any) -> None:
    """Wait until all records have arrived in order."""
    numbers = wanted(program, added)
    assert numbers
    until(lambda: len(receiver.numbers) >= len(numbers), what="all records to arrive")
    assert receiver.numbers == numbers


def test_a_record_arrives_as_a_signed_cloudevent(program: Program, receiver: Receiver) -> None:
    added = add(program, receiver.url)
    program.post("/v1/machines/web-0/freeze")
    arrived(program, receiver, added)
    record = next(each for each in program.history() if each["kind"] == "event-scheduled")
    event = next(each for each in receiver.taken if each["id"] == str(record["number"]))
    assert event["source"].startswith("urn:forewarn:")
    del event["source"]
    assert event == {
        "specversion": "1.0",
        "id": str(record["number"]),
        "type": "forewarn.event-scheduled",
        "time": record["at"],
        "subject": "web-0",
        "project": "default",
        "datacontenttype": "application/json",
        "data": record,
    }
    headers, body = receiver.calls[0]
    assert headers["content-type"].startswith("application/cloudevents+json")
    assert is_signed(headers, body, added["secret"])
    assert not is_signed(headers, body + b" ", added["secret"])


def test_a_webhook_has_one_test_at_a_time(program: Program, receiver: Receiver) -> None:
    path = f"/v1/webhooks/{add(program, receiver.url)['webhook']['id']}/test"
    receiver.released.clear()
    with ThreadPoolExecutor() as threads:
        first = threads.submit(program.call, "POST", path)
        until(lambda: receiver.waiting, what="the first call to arrive")
        second = program.call("POST", path)
        receiver.released.set()
        assert first.result().json() == {"delivered": True, "error": None}
    assert second.status_code == 429
    assert second.json()["error"]["code"] == "LimitReached"
    assert program.call("POST", path).status_code == 200


def test_only_the_wanted_project_and_kinds_are_pushed(program: Program, receiver: Receiver) -> None:
    add(program, receiver.url, project="default", kinds=["event-scheduled", "order-placed"])
    program.post("/v1/machines/web-0/freeze")
    # This record belongs to the fleet, not to the project.
    program.post("/v1/hosts/host-3/cordon")
    program.post("/v1/machines/web-1/freeze")
    until(lambda: len(receiver.taken) == 4, what="two orders and their events")
    kinds = [event["type"] for event in receiver.taken]
    assert kinds == ["forewarn.order-placed", "forewarn.event-scheduled"] * 2


def test_a_receiver_that_fails_at_first_gets_everything_in_order(
    program: Program, receiver: Receiver
) -> None:
    receiver.answer = lambda count: {1: 500, 2: 302, 4: 429}.get(count, 200)
    added = add(program, receiver.url)
    program.post("/v1/machines/web-0/freeze")
    arrived(program, receiver, added)
    until(lambda: shown_webhook(program, added)["behind"] == 0, what="the deliveries to be saved")
    assert shown_webhook(program, added)["failing_since"] is None
    first, second = receiver.calls[0][0], receiver.calls[1][0]
    assert first["webhook-id"] == second["webhook-id"]


def test_a_stuck_webhook_is_shown_and_recorded_once(program: Program, receiver: Receiver) -> None:
    receiver.answer = lambda count: 503
    added = add(program, receiver.url)
    program.post("/v1/machines/web-0/freeze")
    until(lambda: shown_webhook(program, added)["failures"] >= 4, what="failed tries")
    seen = shown_webhook(program, added)
    assert seen["error"] == "it answered 503"
    assert seen["failing_since"] is not None
    assert seen["next_try_seconds"] > 0
    assert seen["behind"] == len(wanted(program, added))
    said = [record for record in program.history() if record["kind"] == "webhook-failing"]
    assert [record["reason"].endswith("to 127.0.0.1: it answered 503") for record in said] == [True]
    metrics = program.call("GET", "/metrics").text
    assert f'forewarn_webhook_behind{{project="",webhook="{seen["id"]}"}} {seen["behind"]}.0' in metrics
    receiver.answer = lambda count: 200
    # A successful test ends the wait before the next try.
    assert program.post(f"/v1/webhooks/{seen['id']}/test") == {"delivered": True, "error": None}
    arrived(program, receiver, added)
    until(
        lambda: [each for each in program.history() if each["kind"] == "webhook-recovered"],
        what="the recovery to be recorded",
    )


def test_a_receiver_that_never_answers_delays_nothing_else(program: Program, receiver: Receiver) -> None:
    with receiving() as stuck:
        stuck.released.clear()
        add(program, stuck.url)
        added = add(program, receiver.url)
        for name in ("web-0", "web-1", "web-2"):
            program.post(f"/v1/machines/{name}/freeze")
        program.advance(3600)
        arrived(program, receiver, added)
        assert stuck.taken == []
        assert program.stop() == 0


def test_undelivered_records_are_delivered_after_a_crash(program: Program, receiver: Receiver) -> None:
    receiver.answer = lambda count: 500
    added = add(program, receiver.url)
    program.post("/v1/machines/web-0/freeze")
    until(lambda: receiver.calls, what="a first try")
    program.restart()
    receiver.answer = lambda count: 200
    program.post("/v1/machines/web-1/freeze")
    arrived(program, receiver, added)


def test_many_records_are_all_pushed_despite_a_crash(program: Program, receiver: Receiver) -> None:
    added = add(program, receiver.url)
    for _ in range(30):
        order = program.post("/v1/hosts/host-1/maintenance", json={"action": "freeze"})["order"]
        program.post(f"/v1/orders/{order['id']}/cancel")
    program.restart()
    arrived(program, receiver, added)
    # A record whose delivery was not saved may come twice, with the same id.
    ids = {headers["webhook-id"] for headers, _ in receiver.calls}
    assert len(ids) == len(receiver.numbers)


def test_a_removed_webhook_is_no_longer_called(program: Program, receiver: Receiver) -> None:
    gone = add(program, receiver.url, kinds=["event-scheduled"])
    program.call("DELETE", f"/v1/webhooks/{gone['webhook']['id']}")
    stays = add(program, receiver.url)
    program.post("/v1/hosts/host-3/cordon")
    arrived(program, receiver, stays)  # so the server has seen both changes
    program.post("/v1/machines/web-0/freeze")
    arrived(program, receiver, stays)
    until(lambda: shown_webhook(program, stays)["behind"] == 0, what="the deliveries to be saved")
    assert len(receiver.calls) == len(wanted(program, stays))


def test_the_command_adds_tests_lists_and_removes_webhooks(
    program: Program, receiver: Receiver, tmp_path: Path
) -> None:
    server = {"FOREWARN_SERVER": program.operators}
    added = run(tmp_path, "webhook", "add", receiver.url, "--kind", "event-scheduled", environment=server)
    assert "whsec_" in added.stdout, added.stderr
    id_ = program.get("/v1/webhooks")["webhooks"][0]["id"]
    tried = run(tmp_path, "webhook", "test", id_[:8], environment=server)
    assert tried.stdout == "The webhook accepted the call.\n", tried.stderr
    assert receiver.taken[0]["type"] == "forewarn.test"
    listed = run(tmp_path, "webhook", "list", environment=server)
    assert receiver.url in listed.stdout
    assert "whsec_" not in listed.stdout
    removed = run(tmp_path, "webhook", "remove", id_[:8], environment=server)
    assert removed.stdout == f"Webhook to {receiver.url} removed.\n"
    assert program.get("/v1/webhooks")["webhooks"] == []


def test_a_failed_test_reports_why(program: Program, tmp_path: Path) -> None:
    added = add(program, f"http://127.0.0.1:{free_port()}/")
    id_ = added["webhook"]["id"]
    tried = run(tmp_path, "webhook", "test", id_, environment={"FOREWARN_SERVER": program.operators})
    assert tried.returncode == 1
    assert "the webhook refused the call: " in tried.stderr


def tenant_of(program: Program) -> dict[str, str]:
    """Create a user of the default project; the program's own calls use an operator's token."""
    made = {"name": "olga", "role": "operator"}
    program.operator(program.call("POST", "/v1/tokens", json=made).json()["secret"])
    wanted = {"name": "anna", "role": "user", "project": "default"}
    secret = program.call("POST", "/v1/tokens", json=wanted).json()["secret"]
    return {"Authorization": f"Bearer {secret}"}


def test_a_projects_webhook_gets_its_records_and_no_others(tmp_path: Path, receiver: Receiver) -> None:
    allowed = {"FOREWARN_WEBHOOKS_PROJECT_TARGETS": "any"}
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), environment=allowed) as program:
        tenant = tenant_of(program)
        answer = program.call("POST", "/v1/webhooks", json={"url": receiver.url}, headers=tenant)
        assert answer.status_code == 201, answer.text
        program.post("/v1/hosts/host-3/cordon")
        program.post("/v1/machines/web-0/freeze")
        program.advance(3600)
        own = [record for record in program.history() if record["project"] == "default"]
        first = answer.json()["webhook"]["delivered"]
        numbers = [record["number"] for record in own if record["number"] > first]
        until(lambda: len(receiver.numbers) >= len(numbers), what="all records to arrive")
        assert receiver.numbers == numbers
        assert all(is_signed(headers, body, answer.json()["secret"]) for headers, body in receiver.calls)


def test_a_projects_webhook_to_an_internal_name_is_never_called(program: Program, receiver: Receiver) -> None:
    tenant = tenant_of(program)
    url = receiver.url.replace("127.0.0.1", socket.gethostname())
    answer = program.call("POST", "/v1/webhooks", json={"url": url}, headers=tenant)
    tried = program.call("POST", f"/v1/webhooks/{answer.json()['webhook']['id']}/test", headers=tenant).json()
    assert tried["delivered"] is False
    assert "not public" in tried["error"]
    assert "project-targets" in tried["error"]
