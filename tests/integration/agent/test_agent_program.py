"""The agent with a real server on a manual clock: every type of event, from notice to recovery."""

import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Changed, Ended, Left, Over, Owed, ProgramRunning, TakenUp
from forewarn.platform import system
from tests.helpers.programs.agent_program import (
    NAMED,
    AgentProgram,
    agent_of,
    config,
    lines_of,
    port_of,
    serving,
)
from tests.helpers.programs.process import Program, free_port, until
from tests.helpers.service.scripted import answer, scripted


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Program]:
    with serving(tmp_path) as program:
        yield program


@pytest.mark.parametrize(
    ("machine", "path", "body", "type_"),
    [
        ("web-0", "/v1/machines/web-0/restart", {}, "Reboot"),
        ("web-0", "/v1/machines/web-0/redeploy", {}, "Redeploy"),
        ("web-0", "/v1/machines/web-0/freeze", {}, "Freeze"),
        ("batch_0", "/v1/machines/batch_0/evict", {}, "Preempt"),
        ("web-0", "/v1/hosts/host-1/maintenance", {"action": "freeze"}, "Freeze"),
        ("web-0", "/v1/hosts/host-1/degrade", {}, "Redeploy"),
    ],
)
def test_the_agent_prepares_approves_and_recovers(
    service: Program, tmp_path: Path, machine: str, path: str, body: dict[str, str], type_: str
) -> None:
    with agent_of(service, machine, tmp_path) as agent:
        service.post(path, json=body)
        seen = agent.wait_for(TakenUp)
        assert isinstance(seen, TakenUp)
        assert seen.event.type == type_
        agent.wait_for(Approved)
        assert lines_of(tmp_path / "ran") == [f"prepare {type_} 1"]
        (event,) = [each for each in service.get("/v1/events")["events"] if machine in each["resources"]]
        assert len(event["approvals"]) == 1
        # Other machines of the host may not have approved, so their notice must pass.
        service.advance(8 * 86400)
        agent.wait_for(Over)
        assert lines_of(tmp_path / "ran") == [f"prepare {type_} 1", f"recover {type_} 1"]


def test_the_agent_prepares_for_the_deletion_of_its_machine(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-1", tmp_path) as agent:
        service.post("/v1/machines/web-1/terminate")
        agent.wait_for(Approved)
        assert lines_of(tmp_path / "ran") == ["prepare Terminate 1"]
        service.advance(600)
        # The server does not know the machine any more, which does not mean that the event is over.
        agent.out.wait_for("the endpoint gives no document")
        assert not agent.is_clear()


def test_an_event_without_notice_is_prepared_without_approval(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        service.post("/v1/hosts/host-1/fail")
        agent.wait_for(Ended, side=Side.PREPARE, handler="drain")
        service.advance(3600)
        agent.wait_for(Over)
        assert not [entry for entry in agent.entries() if isinstance(entry, Approved)]


def test_the_agent_recovers_from_a_cancelled_event(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-0", tmp_path, more="") as agent:
        agent.configure(config(service, "web-0").replace('"when-ready"', '"never"'))
        agent.signal(signal.SIGHUP)
        agent.out.wait_for("reloaded the config")
        order = service.post("/v1/machines/web-0/restart")["order"]["id"]
        agent.wait_for(Ended, side=Side.PREPARE, handler="drain")
        service.post(f"/v1/orders/{order}/cancel")
        left = agent.wait_for(Left)
        assert isinstance(left, Left)
        assert left.why == "it is no longer listed"
        agent.wait_for(Over)


def test_after_a_kill_the_agent_waits_for_the_running_handler(service: Program, tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    with agent_of(service, "web-0", tmp_path) as agent:
        service.post("/v1/machines/web-0/restart")
        running = agent.wait_for(ProgramRunning)
        until(lambda: lines_of(tmp_path / "ran"), what="the hook to run")
        agent.kill()
        assert isinstance(running, ProgramRunning)
        assert system.process_started(running.pid) == running.started
        agent.start()
        (tmp_path / "go").touch()
        agent.wait_for(Approved)
        service.advance(900)
        agent.wait_for(Over)
        assert lines_of(tmp_path / "ran") == ["prepare Reboot 1", "recover Reboot 1"]


def test_the_agent_recovers_although_it_was_down_at_the_end_of_the_event(
    service: Program, tmp_path: Path
) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
        assert agent.stop() == 0
        service.advance(900)
        agent.start()
        agent.wait_for(Over)
        assert lines_of(tmp_path / "ran") == ["prepare Reboot 1", "recover Reboot 1"]


@pytest.mark.parametrize("named", [True, False])
def test_the_agent_resumes_recovery_without_the_endpoint(
    service: Program, tmp_path: Path, named: bool
) -> None:
    agent = agent_of(service, "web-0", tmp_path, more='machine = "web-0"' if named else "")
    with agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
        (tmp_path / "hold").touch()
        service.advance(900)
        agent.wait_for(ProgramRunning, side=Side.RECOVER)
        until(lambda: len(lines_of(tmp_path / "ran")) == 2, what="the hook to run")
        agent.kill()
        service.kill()
        (tmp_path / "go").touch()
        agent.spawn()
        agent.wait_for(Over)
        assert lines_of(tmp_path / "ran") == ["prepare Reboot 1", "recover Reboot 1"]
        assert "watching" not in agent.out.text


def test_after_a_restart_the_agent_prepares_and_approves_nothing_without_the_endpoint(
    service: Program, tmp_path: Path
) -> None:
    (tmp_path / "hold").touch()
    agent = agent_of(service, "web-0", tmp_path)
    last = '\n[[handlers]]\nname = "last"\nkind = "log"\n'
    agent.configure(config(service, "web-0") + last)
    with agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(ProgramRunning)
        until(lambda: lines_of(tmp_path / "ran"), what="the hook to run")
        agent.kill()
        service.kill()
        agent.spawn()
        (tmp_path / "go").touch()
        agent.wait_for(Ended, side=Side.PREPARE, handler="drain")
        assert "last: prepare begins" not in agent.out.text
        service.start()
        agent.wait_for(Approved)
        assert "last: prepare ready" in agent.out.text
        assert lines_of(tmp_path / "ran") == ["prepare Reboot 1"]


def test_the_agent_follows_a_deferred_event(service: Program, tmp_path: Path) -> None:
    service.stop()
    fleet = Path(service.flags[-1])
    policy = '[groups.web.policy]\ndefer = "1h"\n\n[groups.shop]'
    fleet.write_text(fleet.read_text().replace("[groups.shop]", policy))
    service.start()
    with agent_of(service, "web-0", tmp_path) as agent:
        agent.configure(config(service, "web-0").replace('"when-ready"', '"never"'))
        agent.stop()
        agent.start()
        event = service.post("/v1/machines/web-0/restart")["event"]
        agent.wait_for(TakenUp)
        url = f"http://127.0.0.1:{port_of(service, 'web-0')}/metadata/scheduledevents/defer"
        asked = httpx.post(
            url,
            params={"api-version": "2020-07-01"},
            headers={"Metadata": "true"},
            json={"DeferRequests": [{"EventId": event["id"], "Seconds": 1800}]},
        )
        assert asked.status_code == 200, asked.text
        moved = agent.wait_for(Changed)
        assert isinstance(moved, Changed)
        agent.out.wait_for("Reboot has moved")


# Things that a person has stopped

STOPPED = """
[[handlers]]
name = "app"
kind = "process"
pid-file = "{folder}/pid"
start = ["{folder}/start"]
"""
# It ends when the test releases it.
START = """#!/bin/sh
echo started >> {folder}/starts
(trap 'while ! test -e {folder}/end; do sleep 0.02; done; exit' TERM
 while :; do sleep 0.02; done) > {folder}/app.log 2>&1 &
echo $! > {folder}/pid
"""


def _with_app(service: Program, folder: Path) -> AgentProgram:
    start = folder / "start"
    start.write_text(START.replace("{folder}", str(folder)))
    start.chmod(0o755)
    head = config(service, "web-0").partition("[[handlers]]")[0]
    return AgentProgram(folder, head + STOPPED)


def test_a_twice_killed_agent_does_not_start_what_an_administrator_has_stopped(
    service: Program, tmp_path: Path
) -> None:
    with _with_app(service, tmp_path) as agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
        agent.kill()
        agent.start()
        agent.kill()
        service.advance(900)
        agent.start()
        agent.wait_for(Over)
        assert lines_of(tmp_path / "starts") == []


def test_the_next_agent_starts_what_a_killed_agent_has_stopped(service: Program, tmp_path: Path) -> None:
    agent = _with_app(service, tmp_path)
    subprocess.run([tmp_path / "start"], check=True)
    first = int((tmp_path / "pid").read_text())
    with agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Owed)
        agent.kill()
        (tmp_path / "end").touch()
        # Killed before or after the signal: in the end, the process has ended.
        agent.start()
        agent.wait_for(Approved)
        assert system.process_started(first) is None
        agent.kill()
        service.advance(900)
        agent.start()
        agent.wait_for(Over)
    assert lines_of(tmp_path / "starts") == ["started"] * 2
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


# The endpoint


def test_a_broken_endpoint_is_logged_once(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
        service.kill()
        agent.out.wait_for("the endpoint gives no document")
        port = port_of(service, "web-0")
        with _rubbish(port):
            until(lambda: _rubbish.calls > 1, what="the agent to meet rubbish")
        service.start()
        agent.out.wait_for("the endpoint answers again")
        service.advance(900)
        agent.wait_for(Over)
        assert len([line for line in agent.out.lines if "the endpoint gives no document" in line]) == 1


class _rubbish:  # noqa: N801 - it is used as a function is
    """Answers nonsense at the address of the service."""

    calls = 0

    def __init__(self, port: int) -> None:
        self._port = port

    def __enter__(self) -> None:
        type(self).calls = 0
        self._listener = socket.create_server(("127.0.0.1", self._port), reuse_port=False)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        replies = [
            answer(200, b"<html>"),
            answer(200, b""),
            answer(404, b"{}"),
            answer(500),
            answer(200, b'{"Events":7}'),
        ]
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(
                    replies[self.calls % len(replies)].replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
                )
            type(self).calls += 1


def test_an_agent_that_starts_before_its_endpoint_waits_for_it(tmp_path: Path) -> None:
    port = free_port()
    text = f'[agent]\nendpoint = "http://127.0.0.1:{port}"\njournal = "{{journal}}"\nlisten = "127.0.0.1:0"\n'
    agent = AgentProgram(tmp_path, text)
    agent.spawn()
    try:
        agent.out.wait_for("waiting: ")
        place = agent.out.wait_for("metrics and probes listen=")
        assert httpx.get(f"http://{place}/readyz").status_code == 200
        shown = httpx.get(f"http://{place}/status").json()
        assert "the connection failed" in shown["trouble"]
    finally:
        assert agent.stop() == 0


def test_the_agent_uses_the_endpoint_that_answers(service: Program, tmp_path: Path) -> None:
    dead = free_port()
    text = config(service, "web-0").replace('endpoint = "', f'endpoint = ["http://127.0.0.1:{dead}", "')
    text = re.sub(r'(endpoint = \[.*")$', r"\1]", text, flags=re.MULTILINE)
    agent = agent_of(service, "web-0", tmp_path)
    agent.configure(text)
    with agent:
        assert f"endpoint=http://127.0.0.1:{port_of(service, 'web-0')}" in agent.out.text


def test_a_closed_endpoint_is_logged_and_polled_again(tmp_path: Path) -> None:
    with scripted(answer(403, b"closed")) as endpoint:
        agent = AgentProgram(tmp_path, NAMED.replace("{url}", endpoint.url))
        agent.spawn()
        assert agent.out.wait_for("waiting: ").startswith("403")
        until(lambda: len(endpoint.requests) > 2, what="it to ask again")
        assert agent.stop() == 0


def test_a_machine_without_an_identity_needs_a_name(tmp_path: Path) -> None:
    document = b'{"DocumentIncarnation":1,"Events":[]}'
    with (
        scripted(answer(404, b"{}"), answer(200, document)) as endpoint,
        AgentProgram(tmp_path, NAMED.replace("{url}", endpoint.url)) as agent,
    ):
        assert "machine=m" in agent.out.wait_for("watching")
        agent.out.wait_for("this machine's id is unknown")
        assert agent.stop() == 0
