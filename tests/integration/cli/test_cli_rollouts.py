"""`forewarn rollout` against a listening server."""

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import time, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forewarn.cli.main import app
from forewarn.client.calls import OperatorClient
from forewarn.core.basic_types import DEFAULT_PROJECT, Action, HostName, Mobility, ProjectName
from forewarn.core.model.declaration import NO_DEFAULTS, HostSpec
from forewarn.core.model.project import Calendar, Project, Window
from forewarn.wire.answers.service_answers import ClockAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.process import FOREWARN, Output, ending, started, until
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.served import app_of, sample, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture(autouse=True)
def server(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving(app_of(service)) as url:
        monkeypatch.setenv("FOREWARN_SERVER", url)
        yield url


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["rollout", *words])
    assert result.exit_code == code, result.output
    return result


def answer(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def test_a_plan_lists_the_first_hosts_and_how_many_may_fail() -> None:
    said = run("plan", "--all", "--canary", "1", "--soak", "30m", "--max-failures", "2").stdout
    assert "Canaries: host-1 first, one after the other, then 30 m before the others.\n" in said
    assert "Failures: skips up to 2 hosts before it pauses.\n" in said


def test_a_plan_is_drawn_as_a_timeline() -> None:
    said = run("plan", "--all", "--hosts-at-once", "3").stdout
    waves = [line for line in said.splitlines() if "█" in line and "host-" in line]
    assert [line.split()[:2] for line in waves] == [["1", "host-1"], ["2", "host-2"], ["3", "host-3"]]
    assert [line.index("·") for line in waves] == sorted(line.index("·") for line in waves)
    assert "3 waves, 1 h without early approvals" in said
    assert "host-3: wave 3 waits for wave 2" in said
    assert "never polled: db, spot-0, web-0, web-1, web-2 and 3 more" in said
    assert "No rollouts." in run("list").stdout


def test_a_rollout_services_the_hosts_themselves() -> None:
    said = run("plan", "host-1", "--action", "service", "--return").stdout
    assert "1 wave" in said
    assert "1 of 1 host can be emptied." in said
    shown = run("start", "host-1", "--action", "service", "--in-place", "--host-work", "external", "--detach")
    assert "service (in-place), by external" in shown.stdout
    run("plan", "host-1", "--action", "service", "--in-place", "--evacuate", code=2)
    run("plan", "host-1", "--action", "service", "--in-place", "--return", code=2)


def test_a_plan_names_the_first_blocking_machines(service: Service) -> None:
    for number in range(5):
        service.put(f"pinned-{number}", host=HostName("host-1"), mobility=Mobility.NONE)
    said = run("plan", "--all", "--action", "service").stdout
    assert "2 of 3 hosts can be emptied." in said
    assert re.search(r"host-1: 5 of \d machines cannot leave", said)
    assert "pinned-0: cannot leave its host, and restarts with it" in said
    assert "… and 2 more" in said
    hosts = answer("plan", "--all", "--action", "service")["rollout"]["emptying"]
    assert [len(host["obstacles"]) for host in hosts if not host["possible"]] == [5]


def test_the_notice_of_a_second_stage_is_not_drawn_as_work(service: Service) -> None:
    service.put("web-1", host=HostName("host-1"))
    said = run("plan", "host-1").stdout.splitlines()
    (drawn,) = (line.split()[-1] for line in said if "host-1 " in line and "█" in line)
    assert re.fullmatch(r"·+█+·+█+", drawn)


def test_future_waves_are_shown_with_expected_times(service: Service) -> None:
    run("start", "host-1", "host-2", "--gap", "1h", "--detach")
    announced, planned = answer("show")["rollout"]["waves"]
    assert (announced["announce_at"], announced["end_at"]) == (None, "2026-01-05T12:20:00Z")
    assert (planned["announce_at"], planned["end_at"]) == ("2026-01-05T13:20:00Z", "2026-01-05T13:40:00Z")
    assert "~2026-01-05 13:20:00 UTC" in run("show").stdout


def test_past_steps_are_shown_with_their_times(service: Service) -> None:
    run("start", "host-1", "host-2", "--detach")
    service.advance(minutes=16)
    said = run("show").stdout
    (first,) = (line for line in said.splitlines() if "started" in line and "host-1" in line)
    times = re.findall(r"~?2026-01-05 [0-9:]+ UTC", first)
    assert times == ["2026-01-05 12:00:00 UTC", "2026-01-05 12:15:00 UTC", "~2026-01-05 12:20:00 UTC"]
    assert re.search(r"Notice +least -, late 0, never polled [1-9]", said)


def test_a_plan_warns_of_another_rollout_over_the_same_host() -> None:
    first = answer("start", "host-1")["rollout"]["id"]
    said = " ".join(run("plan", "host-1", "host-2").stdout.split())
    assert f"host-1 is also in rollout {first}, which is running" in said
    assert "is also in rollout" in run("start", "host-1", "--detach", "--overlap").stdout


def test_a_second_rollout_over_the_same_host_is_refused_and_names_the_first() -> None:
    first = answer("start", "host-1")["rollout"]["id"]
    said = run("start", "host-1", "--detach", code=1).output
    assert f"host-1 is also in rollout {first}, which is running" in " ".join(said.split())
    assert "--overlap" in said


def test_a_rollout_is_started_followed_and_finished(service: Service) -> None:
    said = run("start", "host-1", "host-2", "--action", "reboot", "--reason", "new kernel", "--detach").stdout
    assert "new kernel" in said
    assert "Follow:" in said
    (listed,) = answer("list")["rollouts"]
    assert "web: update domain 1 waits for domain 0" in run("show", listed["id"]).stdout
    service.advance(hours=1)
    assert "2 of 2 done" in run("list").stdout
    assert answer("show", listed["id"])["rollout"]["state"] == "done"


def test_a_rollout_is_paused_resumed_and_aborted() -> None:
    id_ = answer("start", "--all")["rollout"]["id"]
    assert "paused" in run("pause", id_, "--reason", "lunch").stdout
    assert "paused: by operator: lunch" in run("show", id_).stdout
    assert "is paused already" in run("pause", id_, code=1).stderr
    assert "resumed" in run("resume", id_).stdout
    assert "aborted" in run("abort", id_).stdout


def test_the_only_open_rollout_need_not_be_named() -> None:
    assert "no rollout is open" in run("show", code=1).stderr
    run("start", "host-1", "--detach")
    assert "running" in run("show").stdout
    run("start", "host-2", "--detach")
    assert "several rollouts are open; give an id" in run("pause", code=1).stderr


def test_a_verb_without_an_id_considers_only_rollouts_it_applies_to(service: Service) -> None:
    first, second = (answer("start", host)["rollout"]["id"] for host in ("host-1", "host-2"))
    run("pause", first)
    assert f"Rollout {second} paused" in run("pause").stdout
    assert "several rollouts are open, and none of them is running" in run("pause", code=1).stderr
    run("resume", first)
    assert f"Rollout {second} resumed" in run("resume").stdout
    service.advance(minutes=16)
    begun = service.rollout(service.rollouts.rollout(first).rollout)
    assert begun.waves[0].state == "started"
    run("abort", first)
    assert f"Rollout {second} paused" in run("pause").stdout


def test_an_aborted_rollout_lists_the_hosts_that_are_not_done(service: Service) -> None:
    run("start", "--all", "--detach")
    service.advance(minutes=25)
    aborted = "1 of 3 hosts done; not done: host-2 and host-3"
    assert aborted in run("abort").stdout
    assert aborted in run("show").stdout
    assert "1 of 3 done" in run("list").stdout
    shown = answer("show")["rollout"]
    assert (shown["hosts_done"], shown["hosts_not_done"]) == (["host-1"], ["host-2", "host-3"])


def test_a_plan_explains_why_its_waves_are_smaller_than_allowed() -> None:
    said = run("plan", "--all", "--hosts-at-once", "2").stdout
    assert "2 of 3 waves have fewer than 2 hosts: two update domains of group web are not disturbed" in said


def test_a_rollout_that_finishes_started_hosts_is_shown_as_aborting(service: Service) -> None:
    run("start", "host-1", "host-2", "--detach")
    service.advance(minutes=16)
    assert "aborting; started hosts finish first" in run("abort").stdout
    assert "aborting" in run("list").stdout
    assert "aborting" in run("show").stdout
    shown = answer("show")["rollout"]
    assert (shown["state"], shown["aborting"]) == ("running", True)
    service.advance(hours=1)
    shown = answer("show")["rollout"]
    assert (shown["state"], shown["aborting"]) == ("aborted", False)


def test_a_rollout_without_a_common_window_is_not_resumed_and_has_no_forecast(service: Service) -> None:
    def opens(at: int) -> Calendar:
        return Calendar(
            windows=(Window(days=frozenset(range(7)), start=time(at), length=timedelta(hours=2)),)
        )

    names = (ProjectName("a"), ProjectName("b"))
    shared = fleet(
        *(machine(f"{name}-vm", "host-2", project=name) for name in names),
        machine("alone", "host-1"),
    )

    def declare(*hours: int) -> None:
        windows = (Project(name=name, calendar=opens(hour)) for name, hour in zip(names, hours, strict=True))
        service.apply(replace(shared, projects=(Project(name=DEFAULT_PROJECT), *windows)))

    declare(14, 14)
    run("start", "host-2", "--detach")
    run("pause")
    declare(14, 16)
    assert "projects a and b have no window in common" in run("plan", "host-2", code=1).stderr
    assert "cannot go on: host-2: projects a and b have no window in common" in run("resume", code=1).stderr
    service.advance(days=5)
    said = run("show").stdout
    assert "paused" in said
    assert "opens" not in said
    assert "about" not in said


def test_the_last_ended_rollout_is_shown_if_none_is_open() -> None:
    run("start", "host-1", "--gap", "10m", "--detach")
    run("abort")
    assert "aborted" in run("show").stdout
    assert "no rollout is open" in run("resume", code=1).stderr


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("verb", ["pause", "abort"])
def test_a_rollout_that_changed_since_the_lookup_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch, verb: str, named: bool
) -> None:
    rollout = service.roll("host-1", "host-2")
    asked = OperatorClient.post

    def change_first(client: OperatorClient, path: str, *given: Any, **more: Any) -> object:
        service.rollouts.pause(rollout.id, by="olga")
        service.rollouts.resume(rollout.id, by="olga")
        return asked(client, path, *given, **more)

    monkeypatch.setattr(OperatorClient, "post", change_first)
    refused = run(verb, *([rollout.id[:12]] if named else []), code=1)
    assert "olga" in refused.stderr
    assert service.rollout(rollout).state == "running"


def test_conditions_are_passed_on_and_shown(service: Service) -> None:
    words = (
        "--deadline",
        "2026-01-31T00:00:00Z",
        "--health",
        "15m",
        "--require-poll",
        "--driver",
        "external",
    )
    begun = answer("start", "host-1", *words, "--heartbeat", "2m")["rollout"]
    assert (begun["deadline"], begun["health_seconds"]) == ("2026-01-31T00:00:00Z", 900)
    assert (begun["driver"], begun["require_poll"]) == ("external", True)
    said = run("show").stdout
    assert "2026-01-31 00:00:00 UTC" in said
    assert "each machine is healthy within 15 m, and polls again if it polled before" in said
    assert answer("plan", "host-2", *words)["rollout"]["health_seconds"] == 900
    assert "got 'soon'" in run("plan", "host-2", "--health", "soon", code=2).stderr


def test_a_rollout_draws_the_progress_of_each_host(service: Service) -> None:
    begun = answer("start", "--all", "--action", "service", "--canary", "1", "--soak", "1h", "--detach")
    first, *_ = begun["rollout"]["waves"]
    night = run("show").stdout.split("Host progress: ")[1]
    assert night.startswith("2 planned ·, 1 announced ▲\n     1  ▲\n     2  ·\n")
    service.advance(minutes=11)
    assert "1 being emptied →" in run("show").stdout
    service.advance(hours=1)
    night = run("show").stdout.split("Host progress: ")[1]
    assert night.startswith("2 planned ·, 1 done ✓\n     1  ✓\n")
    assert "waits for the soak time of the canaries" in night
    assert first["hosts"] == ["host-1"]


HOW_TO = Path(__file__).parents[3] / "docs/reference/rollouts.md"


def test_every_command_of_the_how_to_works_as_printed() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
    said = []
    for line in "".join(blocks).splitlines():
        name, *words = shlex.split(line, comments=True)
        assert name == "forewarn"
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (line, result.output)
        said.append(result.stdout)
    assert "aborted" in said[-1]


def test_hosts_or_all_are_required() -> None:
    assert "name hosts, or use --all" in run("plan", code=2).stderr
    assert "name hosts, or use --all" in run("plan", "host-1", "--all", code=2).stderr


def test_a_plan_for_a_host_without_work_shows_it(service: Service) -> None:
    service.host_order("host-1", Action.FAIL)
    service.advance(hours=1)
    said = run("plan", "host-1").stdout
    assert "1 wave: no machines to treat." in said
    assert "host-1: is failed: restore it first" in said
    assert "0 s" not in said
    assert "█" not in said
    assert "1 wave, 40 m without early approvals" in run("plan", "host-2").stdout


# Following, in a separate process that prints lines


@contextmanager
def following(folder: Path, url: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], Output, Output]]:
    environment = {"FOREWARN_SERVER": url}
    with ending(started([FOREWARN, "rollout", *words], folder, environment)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield process, Output(process.stdout), Output(process.stderr)


def turn(url: str, seconds: float) -> None:
    OperatorClient(url).post("/v1/clock/advance", ClockAnswer, {"seconds": seconds})


def test_a_rollout_is_followed_to_its_end(server: str, service: Service, tmp_path: Path) -> None:
    with following(tmp_path, server, "start", "host-1", "host-2", "--action", "reboot") as (process, out, _):
        out.wait_for("wave 1 of 2 (host-1): announced")
        turn(server, 960)
        out.wait_for("wave 1 of 2 (host-1): started")
        turn(server, 600)
        out.wait_for("wave 2 of 2 (host-2): announced")
        turn(server, 3600)
        out.wait_for(": done")
        assert process.wait(60) == 0
        out.finish()
    assert out.lines[-1].endswith(": done")
    assert len(out.lines) == len(set(out.lines))


def test_following_exits_with_1_when_the_rollout_pauses(
    server: str, service: Service, tmp_path: Path
) -> None:
    with following(tmp_path, server, "start", "host-1") as (process, out, err):
        out.wait_for("announced")
        rollout = answer("list")["rollouts"][0]["id"]
        run("pause", rollout, "--reason", "lunch")
        assert process.wait(60) == 1
        err.finish()
    assert f"rollout {rollout} is paused: by operator: lunch" in err.text
    assert f"rollout resume {rollout}" in err.text


def test_ctrl_c_does_not_stop_the_rollout(server: str, service: Service, tmp_path: Path) -> None:
    with following(tmp_path, server, "start", "host-1") as (process, out, _):
        out.wait_for("announced")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        out.finish()
    (rollout,) = answer("list")["rollouts"]
    assert rollout["state"] == "running"
    assert f"Rollout {rollout['id']} continues." in out.text
    with following(tmp_path, server, "show", "--follow", "--json") as (process, out, _):
        until(lambda: out.lines, what="the rollout")
        turn(server, 3600)
        assert process.wait(60) == 0
        out.finish()
    states = [json.loads(line)["state"] for line in out.lines]
    assert (states[0], states[-1]) == ("running", "done")


def test_a_plan_prints_the_names_of_hosts_without_work_unchanged(service: Service) -> None:
    hosts = (HostSpec(name=HostName("Rack-A"), driver="simulated"), HostSpec(name=HostName("Rack-B")))
    declared = fleet(machine("one", "Rack-A"), machine("two", "Rack-B"))
    service.apply(replace(declared, defaults=NO_DEFAULTS, hosts=hosts))
    said = run("plan", "--all").stdout
    assert "on Rack-A simulated: nothing is really done" in said
    service.apply(replace(declared, hosts=hosts[:1], machines=declared.machines[:1]))
    assert "\nSimulated: nothing is really done.\n" in run("plan", "--all").stdout
