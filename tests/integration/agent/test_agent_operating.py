"""Operating the agent: probes, metrics, status, reload, dry runs, logs, systemd."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Begun, Ended, Ending, Over, ProgramRunning, TakenUp
from forewarn.agent.journal.journal_file import Journal
from tests.helpers.programs.agent_program import (
    AgentProgram,
    agent_of,
    config,
    json_lines,
    lines_of,
    port_of,
    serving,
)
from tests.helpers.programs.agents import NOW, event
from tests.helpers.programs.process import Program, free_port, operator_client, run, until
from tests.helpers.programs.receiver import receiving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Program]:
    with serving(tmp_path) as program:
        yield program


def test_probes_metrics_and_status_show_the_state(service: Program, tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    with (
        agent_of(service, "web-0", tmp_path, more='listen = "127.0.0.1:0"') as agent,
        operator_client(f"http://{agent.out.wait_for('metrics and probes listen=')}") as probe,
    ):
        assert probe.get("/readyz", headers={"Host": "check.example"}).json() == {"status": "ready"}
        for page in ("status", "status?x"):
            rebound = probe.get(f"/{page}", headers={"Host": "pages.evil.example"})
            assert (rebound.status_code, "pid" in rebound.json()) == (403, False)
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(ProgramRunning)
        ready = probe.get("/readyz")
        assert (ready.status_code, ready.json()) == (503, {"status": "draining", "events": ["Reboot"]})
        assert probe.get("/healthz").status_code == 200
        status = probe.get("/status").json()
        assert (status["machine"], status["draining"], status["trouble"]) == ("web-0", True, None)
        (shown,) = status["events"]
        assert (shown["type"], shown["doing"]) == ("Reboot", "preparing")
        assert [(each["handler"], each["state"]) for each in shown["handlers"]] == [
            ("tell", "ready"),
            ("drain", "running"),
        ]
        (tmp_path / "go").touch()
        agent.wait_for(Approved)
        service.advance(900)
        agent.wait_for(Over)
        until(lambda: probe.get("/readyz").status_code == 200, what="it to be ready for work again")
        metrics = probe.get("/metrics").text
        assert 'forewarn_agent_events_total{type="Reboot"} 1.0' in metrics
        assert 'forewarn_agent_handlers_total{ending="ready",handler="drain",side="prepare"} 1.0' in metrics
        assert "forewarn_agent_approvals_total 1.0" in metrics
        assert "forewarn_agent_draining 0.0" in metrics
        assert probe.get("/nothing").status_code == 404
        assert probe.post("/readyz").status_code == 405


def test_status_reads_the_journal_of_an_agent_that_does_not_listen(service: Program, tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    with agent_of(service, "web-0", tmp_path) as agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(ProgramRunning)
        ran = run(tmp_path, "agent", "status", "--config", agent.config)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.startswith("The agent runs, but has no `listen` address. From its journal ")
        assert re.search(
            r"^Reboot [0-9A-F-]{36}: Scheduled, starts in .+\n  preparing, first seen .+ ago$",
            ran.stdout,
            re.M,
        )
        assert re.search(r"^  tell   prepare  ready after 0 s$", ran.stdout, re.M)
        assert re.search(r"^  drain  prepare  running for .+ \(pid \d+\)$", ran.stdout, re.M)
        told = json.loads(run(tmp_path, "agent", "status", "--json", "--config", agent.config).stdout)
        assert told["running"] is True
        assert told["events"][0]["handlers"][1]["state"] == "running"
        (tmp_path / "go").touch()
        agent.wait_for(Approved)


def test_status_shows_what_a_killed_agent_has_prepared(service: Program, tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    with agent_of(service, "web-0", tmp_path, more=f'listen = "127.0.0.1:{free_port()}"') as agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(ProgramRunning)
        agent.kill()
        ran = run(tmp_path, "agent", "status", "--config", agent.config)
        assert ran.returncode == 3
        assert (
            "The agent does not run: this machine is still prepared for Reboot. Start the agent" in ran.stdout
        )
        assert re.search(r"drain  prepare  started .+ ago, no end recorded", ran.stdout)
        told = run(tmp_path, "agent", "status", "--config", agent.config, "--json")
        assert (told.returncode, json.loads(told.stdout)["running"]) == (3, False)
        (tmp_path / "go").touch()  # the hook outlives the agent


def test_status_shows_attempts_and_reasons_of_failures(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(f'[agent]\njournal = "{tmp_path}/journal"\n')
    journal = Journal(tmp_path / "journal", vm_id="", warn=print)
    side: dict[str, Any] = {"event": event().id, "side": Side.PREPARE, "handler": "drain"}
    journal.write(TakenUp(event=event(), at=NOW))
    journal.write(Begun(**side, attempt=1, at=NOW))
    journal.write(Ended(**side, ending=Ending.AGAIN, at=NOW, why="exit code 75"))
    journal.write(Begun(**side, attempt=2, at=NOW))
    journal.write(Ended(**side, ending=Ending.NEVER, at=NOW + timedelta(seconds=3), why="exit code 4"))
    journal.close()
    ran = run(tmp_path, "agent", "status", "--config", path)
    assert "  drain  prepare  failed after 3 s, attempt 2: exit code 4\n" in ran.stdout


def test_status_reports_that_no_agent_has_run(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(f'[agent]\nlisten = "127.0.0.1:{free_port()}"\n')
    ran = run(tmp_path, "agent", "status", "--config", "agent.toml")
    said = f"No agent has run with this config here: journal {tmp_path}/agent.journal is missing.\n"
    assert (ran.returncode, ran.stdout) == (3, said)
    told = run(tmp_path, "agent", "status", "--config", "agent.toml", "--json")
    assert told.returncode == 3
    assert json.loads(told.stdout)["has_run"] is False


def test_status_polls_a_listening_agent(service: Program, tmp_path: Path) -> None:
    port = free_port()
    with agent_of(service, "web-0", tmp_path, more=f'listen = "127.0.0.1:{port}"') as agent:
        ran = run(tmp_path, "agent", "status", "--config", agent.config)
        assert ran.stdout.startswith("web-0: running for ")
        assert "No event for this machine." in ran.stdout


def test_status_needs_no_secrets(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(
        f'[agent]\njournal = "{tmp_path}/journal"\n[[handlers]]\nname = "call"\nkind = "webhook"\n'
        'url = "https://a.example/${env:NOT_SET_HERE}"\n'
    )
    Journal(tmp_path / "journal", vm_id="", warn=print).close()
    ran = run(tmp_path, "agent", "status", "--config", path)
    assert (ran.returncode, ran.stderr) == (3, "")
    assert "The agent does not run: nothing is prepared." in ran.stdout


@pytest.mark.usefixtures("unforked")  # the command line identifies the agent
def test_the_doctor_checks_the_agent(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        url = f"http://127.0.0.1:{port_of(service, 'web-0')}"
        told = json.loads(run(tmp_path, "guest", "doctor", "--endpoint", url, "--json").stdout)
        assert told["agents"] == [agent.process.pid], told["other_pollers"]


def test_after_a_bad_config_the_old_one_stays_in_effect(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        agent.configure('[agent]\n\napprove = "maybe"\n')
        agent.signal(signal.SIGHUP)
        said = agent.out.wait_for("the old config stays in effect: ")
        assert "line 3: agent.approve: expected never, when-ready or user-events" in said
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
        assert lines_of(tmp_path / "ran") == ["prepare Reboot 1"]


@pytest.mark.parametrize(
    ("handlers", "why"),
    [
        ("", "is not a config: it has neither [agent] nor [[handlers]]"),
        (
            "[agent]\n",
            "the new config lacks handler 'drain', which has prepared for a Reboot and must recover",
        ),
    ],
)
def test_a_config_without_a_handler_that_must_recover_is_refused(
    service: Program, tmp_path: Path, handlers: str, why: str
) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
        agent.configure(handlers)
        agent.signal(signal.SIGHUP)
        assert why in agent.out.wait_for("the old config stays in effect: ")
        service.advance(900)
        agent.wait_for(Over)
        assert lines_of(tmp_path / "ran") == ["prepare Reboot 1", "recover Reboot 1"]


def test_a_dry_run_logs_its_actions(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-0", tmp_path, "--dry-run") as agent:
        service.post("/v1/machines/web-0/restart")
        agent.out.wait_for(f"drain: prepare ready: would have: runs {tmp_path}/hook")
        agent.out.wait_for("would have approved the event")
        assert not agent.journal.exists()
        assert not service.get("/v1/events")["events"][0]["approved"]
        assert lines_of(tmp_path / "ran") == []


@pytest.mark.usefixtures("unforked")  # the command line identifies the agent
def test_a_dry_run_leaves_the_machine_ready_and_shows_in_the_status(service: Program, tmp_path: Path) -> None:
    port = free_port()
    with agent_of(service, "web-0", tmp_path, "--dry-run", more=f'listen = "127.0.0.1:{port}"') as agent:
        service.post("/v1/machines/web-0/restart")
        agent.out.wait_for("would have approved the event")
        with operator_client(f"http://127.0.0.1:{port}") as probe:
            assert probe.get("/readyz").status_code == 200
        shown = run(tmp_path, "agent", "status", "--config", agent.config).stdout
        assert "in a dry run, without any action" in re.sub(r"\s+", " ", shown)
        assert "draining" not in shown
        url = f"http://127.0.0.1:{port_of(service, 'web-0')}"
        told = json.loads(run(tmp_path, "guest", "doctor", "--endpoint", url, "--json").stdout)
        assert (told["agents"], told["dry_runs"]) == ([], [agent.process.pid]), told["other_pollers"]
        shown = run(tmp_path, "guest", "doctor", "--endpoint", url).stdout
        assert "none: the agent is in a dry run" in re.sub(r"\s+", " ", shown)


def test_a_check_detects_a_running_agent(service: Program, tmp_path: Path) -> None:
    port = free_port()
    with agent_of(service, "web-0", tmp_path, more=f'listen = "127.0.0.1:{port}"') as agent:
        ran = run(tmp_path, "agent", "check", "--config", agent.config, "--json")
        told = json.loads(ran.stdout)
        assert (ran.returncode, told["problems"]) == (0, [])
        assert [remark.split(" ", 3)[:3] for remark in told["remarks"]] == [
            ["an", "agent", "already"],
            ["listen:", f"127.0.0.1:{port}", "cannot"],
        ]


def test_a_dry_run_leaves_the_programs_of_the_real_agent_alone(service: Program, tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    agent_of(service, "web-0", tmp_path)
    text = config(service, "web-0") + 'on-restart = "again"\n'
    with AgentProgram(tmp_path, text) as agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(ProgramRunning)
        until(lambda: lines_of(tmp_path / "ran"), what="the hook to run")
        with AgentProgram(tmp_path, text, "--dry-run") as dry:
            dry.out.wait_for("would have approved the event")
            assert dry.stop() == 0
        (tmp_path / "go").touch()
        agent.wait_for(Approved)
        assert lines_of(tmp_path / "ran") == ["prepare Reboot 1"]


def test_a_second_agent_on_the_same_journal_is_refused(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        ran = run(tmp_path, "agent", "run", "--config", agent.config)
        assert ran.returncode == 1
        assert f"another agent already uses the journal {agent.journal}" in ran.stderr


def test_logs_may_be_json_and_contain_no_secrets(service: Program, tmp_path: Path) -> None:
    with receiving() as receiver:
        receiver.answer = lambda count: 503 if count == 1 else 204
        secret = "a-secret-42"
        (tmp_path / "leak").write_text(f"#!/bin/sh\necho the token is {secret}\n")
        (tmp_path / "leak").chmod(0o755)
        more = f"""
[[handlers]]
name = "call"
kind = "webhook"
url = "{receiver.url}/{secret}"
headers = {{ Authorization = "Bearer ${{env:TOKEN}}" }}
retry = 1

[[handlers]]
name = "leak"
kind = "exec"
prepare = ["{tmp_path}/leak"]
"""
        agent_of(service, "web-0", tmp_path)
        agent = AgentProgram(
            tmp_path, config(service, "web-0") + more, "--log", "json", environment={"TOKEN": secret}
        )
        with agent:
            service.post("/v1/machines/web-0/restart")
            agent.wait_for(Approved)
            agent.stop()
        assert receiver.calls[-1][0]["authorization"] == f"Bearer {secret}"
        lines = json_lines(agent.said)
        assert all({"at", "level", "message"} <= line.keys() for line in lines)
        assert any(line["message"] == "leak | the token is ***" for line in lines)
        assert any(line["message"].startswith("call: prepare will try again") for line in lines)
        assert secret not in "\n".join(agent.said)


def test_systemd_gets_the_status(service: Program, tmp_path: Path) -> None:
    path = f"/tmp/forewarn-notify-{os.getpid()}"
    Path(path).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(path)
        systemd.settimeout(60)
        environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
        agent_of(service, "web-0", tmp_path)
        agent = AgentProgram(tmp_path, config(service, "web-0"), environment=environment)
        heard: list[str] = []

        def wait_for(line: str) -> None:
            while not any(line in each for each in heard):
                heard.append(systemd.recv(4096).decode())

        with agent:
            wait_for("READY=1")
            wait_for("STATUS=watching\nX_FOREWARN_EVENTS=0")
            heard.clear()
            wait_for("WATCHDOG=1")
            heard.clear()
            wait_for("WATCHDOG=1")
            agent.signal(signal.SIGHUP)
            wait_for("RELOADING=1")
            agent.signal(signal.SIGTERM)
            wait_for("STOPPING=1")
            assert agent.process.wait(60) == 0
    Path(path).unlink()


def test_hooks_cannot_notify_systemd_for_the_agent(service: Program, tmp_path: Path) -> None:
    agent = AgentProgram(
        tmp_path,
        config(service, "web-0").replace(
            'prepare = ["{folder}/hook"]', 'prepare = ["sh", "-c", "env > {folder}/env"]'
        ),
        environment={"NOTIFY_SOCKET": "/no/such/socket"},
    )
    with agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
    assert "NOTIFY_SOCKET" not in (tmp_path / "env").read_text()


def test_a_variable_of_one_handler_reaches_no_other(service: Program, tmp_path: Path) -> None:
    told = """
[[handlers]]
name = "told"
kind = "exec"
prepare = ["sh", "-c", "env > {folder}/told"]
environment = { KEY = "${env:TOKEN}${env:HOME}" }
"""
    agent = AgentProgram(
        tmp_path,
        config(service, "web-0").replace(
            'prepare = ["{folder}/hook"]', 'prepare = ["sh", "-c", "env > {folder}/env"]'
        )
        + told,
        environment={"TOKEN": "a-secret", "PLAIN": "no-secret"},
    )
    with agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
    given = (tmp_path / "env").read_text()
    assert "a-secret" not in given
    assert "PLAIN=no-secret" in given
    assert "\nHOME=" in f"\n{given}"
    assert "KEY=a-secret/" in (tmp_path / "told").read_text()


def test_the_journal_of_a_copied_disk_is_moved_aside(service: Program, tmp_path: Path) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Approved)
        (tmp_path / "hold").touch()
        service.advance(900)
        agent.wait_for(Begun, side=Side.RECOVER)
        until(lambda: len(lines_of(tmp_path / "ran")) == 2, what="the hook to run")
        agent.kill()
        (tmp_path / "go").touch()
        ran = lines_of(tmp_path / "ran")
        agent.configure(config(service, "web-1"))
        agent.start()
        agent.out.wait_for("belongs to another machine")
        assert "resuming the work of an earlier agent" not in agent.out.text
        assert "recover" not in agent.out.text
        assert lines_of(tmp_path / "ran") == ran
        assert agent.is_clear()


def test_the_first_of_three_machines_approves_for_all(service: Program, tmp_path: Path) -> None:
    """One event names two machines of one host, and the second does not approve."""
    agents = []
    for name in ("web-0", "web-3"):
        folder = tmp_path / name
        folder.mkdir()
        agent = agent_of(service, name, folder)
        agent.configure(config(service, name).replace('"any"', '"first"'))
        agents.append(agent)
    with agents[0], agents[1]:
        service.post("/v1/hosts/host-1/maintenance", json={"action": "reboot"})
        agents[0].wait_for(Approved)
        agents[1].wait_for(Ended, side=Side.PREPARE, handler="drain")
        (event,) = [each for each in service.get("/v1/events")["events"] if "web-0" in each["resources"]]
        assert event["resources"] == ["web-0", "web-3"]
        assert len(event["approvals"]) == 1
        assert not [entry for entry in agents[1].entries() if isinstance(entry, Approved)]


def test_the_agent_loads_nothing_of_the_server() -> None:
    heavy = ("fastapi", "pydantic", "sqlalchemy", "uvloop", "uvicorn", "prometheus_client", "smtplib")
    code = "import sys; import forewarn.agent.daemon, forewarn.cli.main; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {name.partition(".")[0] for name in ran.stdout.split()} & set(heavy)


def test_the_log_has_its_time_zone_and_the_approval_before_the_start(
    service: Program, tmp_path: Path
) -> None:
    with agent_of(service, "web-0", tmp_path) as agent:
        service.post("/v1/machines/web-0/restart")
        agent.out.wait_for("Reboot is Started")
        said = agent.out.lines
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ ", line) for line in said), said
    approving, started = (
        next(number for number, line in enumerate(said) if what in line)
        for what in ("approving: the event may start from now on", "Reboot is Started")
    )
    assert approving < started
