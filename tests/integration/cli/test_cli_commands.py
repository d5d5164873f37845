"""The command line against a listening server."""

import hashlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forewarn.cli.main import app
from forewarn.client.calls import OperatorClient
from forewarn.core.basic_types import Action, Work
from forewarn.wire.answers.fleet_answers import AppliedFleetAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, sample, serving


class ScatteredIds:
    """Ids that differ in their first characters and are the same in every run."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        digits = hashlib.sha256(str(self._count).encode()).hexdigest().upper()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.ids = ScatteredIds()  # type: ignore[assignment]
    service.wire(service.store)
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture
def server(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving(app_of(service)) as url:
        monkeypatch.setenv("FOREWARN_SERVER", url)
        yield url


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def answer(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def test_a_pipe_gets_whole_tables(server: str) -> None:
    lines = run("machine", "list").stdout.splitlines()
    assert lines[0].split()[:3] == ["MACHINE", "STATE", "HOST"]
    assert len(lines) == 2 + 8
    assert run("host", "list").stdout.splitlines()[2].split() == [
        "host-1",
        "ok",
        "simulated",
        "declared",
        "spot-0,",
        "web-0,",
        "web-3",
    ]
    assert "availability-set" in run("group", "list").stdout
    assert "No events" in run("event", "list").stdout
    assert "No orders" in run("order", "list").stdout


def test_json_is_accepted_before_the_noun_between_and_after_the_verb(server: str) -> None:
    for words in (
        ["--json", "clock", "show"],
        ["clock", "--json", "show"],
        ["clock", "show", "--json"],
    ):
        assert json.loads(run(*words).stdout)["kind"] == "manual"


def test_the_last_server_option_wins(server: str) -> None:
    run("--server", "http://127.0.0.1:1", "clock", "show", "--server", server)
    run("clock", "show", "--server", "http://127.0.0.1:1", code=3)


@pytest.mark.usefixtures("server")
def test_a_running_machine_moves_to_a_host() -> None:
    order = answer("machine", "move", "web-0", "--to", "host-2", "--live", "--reason", "noisy")["order"]
    assert (order["action"], order["work"], order["to"], order["reason"]) == (
        "move",
        "freeze",
        "host-2",
        "noisy",
    )
    refused = run("machine", "move", "web-1", "--to", "host-9", code=1)
    assert 'host "host-9" does not exist' in refused.output


def test_a_restart_prints_what_was_ordered_and_the_next_step(service: Service, server: str) -> None:
    service.poll("web-0")
    said = run("machine", "restart", "web-0", "--reason", "kernel").stdout
    event = service.events("web-0")[0]
    assert said.startswith("web-0: restart ordered")
    assert "Reboot in 15 m (not before 2026-01-05 12:15:00 UTC)" in said
    assert f"event approve {event.id}" in said


def test_a_restart_without_an_event_prints_why(server: str) -> None:
    assert "No event: its group is not enabled" in run("machine", "restart", "web-0").stdout


def test_an_event_counts_down_in_service_time(service: Service, server: str) -> None:
    run("machine", "freeze", "web-0")
    service.advance(seconds=28)
    row = run("event", "list").stdout.splitlines()[2]
    assert "in 14 m 32 s" in row
    service.advance(minutes=16)
    assert "started 1 m 28 s ago" in run("event", "list").stdout


def test_an_event_is_approved_by_a_prefix_of_its_id(service: Service, server: str) -> None:
    event = answer("machine", "freeze", "web-0")["event"]
    assert "approved and has started" in run("event", "approve", event["id"][:6].lower()).stdout
    assert event["id"] in run("event", "show", event["id"][:8]).stdout
    assert service.events("web-0")[0].approved


def test_an_unknown_or_ambiguous_id_is_refused(server: str) -> None:
    assert "no event begins with 0000" in run("event", "approve", "0000", code=1).stderr
    assert "at least 4 characters" in run("event", "approve", "0", code=1).stderr


def test_an_order_is_listed_shown_and_cancelled(server: str) -> None:
    order = answer("host", "maintenance", "host-1", "--action", "reboot")["order"]
    assert "maintenance reboot" in run("order", "list").stdout
    shown = run("order", "show", order["id"][:8]).stdout
    assert order["id"] in shown
    assert "Waiting for:" in shown
    assert "cancelled" in run("order", "cancel", order["id"][:8]).stdout
    assert answer("order", "list", "--state", "cancelled")["orders"][0]["id"] == order["id"]


def test_an_event_that_has_not_started_is_shown_as_not_fetched_yet(server: str) -> None:
    event = answer("machine", "freeze", "web-0")["event"]["id"]
    shown = run("event", "show", event).stdout
    assert "not yet" in shown
    assert "never" not in shown


def test_the_list_of_orders_names_the_update_domains_it_waits_for(service: Service, server: str) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)
    assert "web: update domain 1 waits for domain 0" in run("order", "list").stdout


def test_a_failed_order_prints_the_next_steps(service: Service, server: str) -> None:
    service.driver.failing.add("web-0")
    order = answer("machine", "restart", "web-0")["order"]["id"]
    assert f"order retry {order}" in run("order", "show", order).stdout
    run("order", "retry", order)
    run("order", "abandon", order)
    assert "only a failed order can be retried" in run("order", "retry", order, code=1).stderr


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        ("degrade", "reported as degraded; order announced."),
        ("fail", "reported as failed; order under way."),
        ("restore", "reported as sound."),
        ("cordon", "cordoned."),
        ("uncordon", "uncordoned."),
    ],
)
def test_every_host_order_has_a_command(server: str, verb: str, outcome: str) -> None:
    assert run("host", verb, "host-1").stdout.splitlines()[0] == f"host-1 {outcome}"


@pytest.mark.parametrize("verb", ["redeploy", "freeze", "evict", "terminate"])
def test_every_machine_order_has_a_command(server: str, verb: str) -> None:
    assert run("machine", verb, "spot-0").stdout.startswith(f"spot-0: {verb} ordered")


def test_an_evicted_machine_is_started_again(service: Service, server: str) -> None:
    run("machine", "evict", "spot-0")
    service.advance(minutes=5)
    assert "a start makes no event" in run("machine", "start", "spot-0").stdout


def test_a_refusal_goes_to_stderr_with_code_1(server: str) -> None:
    result = run("machine", "evict", "web-0", code=1)
    assert result.stderr == 'forewarn: machine "web-0" is regular: only spot machines are evicted\n'
    assert result.stdout == ""


def test_a_refusal_names_the_flag_instead_of_the_field(server: str) -> None:
    refused = run("gate", "machine", "db", "--action", "restart", "--heartbeat", "30d", "--", "true", code=2)
    assert refused.stderr == "forewarn: --heartbeat: expected at most 1 d, got 30 d\n"
    refused = run("host", "maintenance", "host-1", "--action", "freeze", "--notice", "5m", code=2)
    assert refused.stderr.startswith("forewarn: --notice: expected only with")


def test_wrong_usage_exits_with_2(server: str) -> None:
    run("machine", "list", "--bogus", code=2)
    run("host", "maintenance", "host-1", code=2)
    run("clock", "advance", "3x", code=2)
    run("machine", "put", "new", "--tag", "a", code=2)


def test_an_unreachable_server_exits_with_3_and_prints_the_next_step() -> None:
    result = run("--server", "http://127.0.0.1:1", "event", "list", code=3)
    assert "forewarn serve" in result.stderr
    assert "FOREWARN_SERVER" in result.stderr


def test_a_machine_is_put_shown_and_deleted(server: str) -> None:
    run("machine", "put", "new", "--host", "host-3", "--tag", "role=x", "--address", "10.0.0.5")
    shown = run("machine", "show", "NEW").stdout
    assert "role=x" in shown
    assert "10.0.0.5" in shown
    assert "removed from the fleet" in run("machine", "delete", "new", "--yes").stdout
    run("machine", "show", "new", code=1)


def test_history_is_filtered(server: str) -> None:
    event = answer("machine", "freeze", "web-0")["event"]["id"]
    records = answer("history", "--event", event[:8], "--limit", "5")["records"]
    assert [record["kind"] for record in records] == ["event-scheduled"]
    assert "order-placed" in run("history", "--machine", "web-0", "--since", "2026-01-05T12:00:00Z").stdout


def test_the_clock_advances_by_durations(server: str) -> None:
    assert "2026-01-05 13:30:00 UTC" in run("clock", "advance", "1h30m").stdout
    assert answer("clock", "advance", "90")["now"] == "2026-01-05T13:31:30Z"


def test_a_shown_fleet_can_be_applied(server: str, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(run("fleet", "show").stdout, encoding="utf-8")
    assert "No changes" in run("fleet", "apply", str(file)).stdout


def test_a_fleet_is_summarized_by_update_domain(service: Service, server: str) -> None:
    service.poll("web-0")
    service.order("web-0", Action.RESTART)
    shown = run("fleet", "summary").stdout
    assert "8 (8 running)" in shown
    assert "3 (3 ok)" in shown
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "web default availability-set 0 2 2 running 1 0" in rows
    assert "(standalone) default standalone 0 2 2 running 0 0" in rows
    assert answer("fleet", "summary")["summary"]["groups"][0]["name"] == "web"


def test_orders_and_events_are_listed_by_machine_host_and_time(service: Service, server: str) -> None:
    service.poll("web-0")
    service.order("web-0", Action.RESTART)
    service.advance(hours=1)
    assert len(answer("order", "list", "--machine", "web-0")["orders"]) == 1
    assert answer("order", "list", "--host", "host-1", "--open")["orders"] == []
    past = run("event", "list", "--all", "--machine", "web-0", "--notices").stdout
    assert "least -, late 0, never polled 1" in past
    assert run("event", "list", "--since", "2026-01-05T12:59:00Z").stdout.startswith("No events since 2026")
    assert len(answer("event", "list", "--all", "--since", "2026-01-05T12:00:00Z")["events"]) == 1
    assert answer("event", "list", "--all", "--until", "2026-01-05T12:00:00Z")["events"] == []
    assert run("order", "list", "--machine", "web-1").stdout == "No orders of machine web-1.\n"


def test_the_history_is_searched_and_the_results_are_exported(
    service: Service, server: str, tmp_path: Path
) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(hours=1)

    def found(*words: str) -> set[str]:
        return {each["kind"] for each in answer("history", *words)["records"]}

    assert "order-placed" in found("--text", "ORDER-PLACED", "--by", "test", "--host", "host-1")
    assert found("--text", "nothing has this") == set()
    assert found("--group", "web", "--text", "event-") <= {
        "event-scheduled",
        "event-started",
        "event-finished",
    }
    assert found("--until", "2026-01-05T12:00:00Z") == set()
    said = run("history", "--text", "no-such-text", "--until", "2030-01-01T00:00:00Z").stdout
    assert said == "No records with no-such-text, until 2030-01-01T00:00:00Z.\n"
    file = tmp_path / "found.csv"
    run("history", "export", "-o", str(file), "--text", "event-started", "--machine", "web-0")
    assert [line.split(",")[2] for line in file.read_text().splitlines()] == ["kind", "event-started"]


def test_the_notice_report_counts_by_month(service: Service, server: str) -> None:
    assert run("promises").stdout == "No promises: no announced work has started and ended yet.\n"
    service.poll("web-0")
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(minutes=20)
    rows = [" ".join(line.split()) for line in run("promises", "--month", "2026-01").stdout.splitlines()]
    assert rows[0] == "MONTH PROJECT MACHINES KEPT LATE MISSED BROKEN UNANNOUNCED WORK"
    assert rows[2:] == ["2026-01 default 3 0 0 3 0 0 simulated"]
    assert answer("promises")["promises"][0]["never"] == 3
    assert run("promises", "--month", "2026-02").stdout == "No promises of month 2026-02.\n"


def test_machines_are_listed_by_name_and_by_prefix(server: str) -> None:
    def names(*words: str) -> list[str]:
        return [each["name"] for each in answer("machine", "list", *words)["machines"]]

    assert names("web-0", "DB", "nobody") == ["db", "web-0"]
    assert names("--begins", "WEB-", "--host", "host-1") == ["web-0", "web-3"]
    assert "No machines whose names begin with x." in run("machine", "list", "--begins", "x").output


def test_the_windows_of_a_project_are_shown_in_the_form_of_the_fleet_file(
    server: str, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.toml"
    window = 'windows = [{ days = ["mon"], start = "22:00", length = "4h30m" }]'
    file.write_text(f"{run('fleet', 'show').stdout}\n[projects.shop]\n{window}\n", encoding="utf-8")
    run("fleet", "apply", str(file), "--yes")
    assert f"[projects.shop]\n{window}\n" in run("fleet", "show").stdout
    file.write_text(run("fleet", "show").stdout, encoding="utf-8")
    assert "No changes" in run("fleet", "apply", str(file)).stdout


def test_a_fleet_is_applied_after_its_difference_is_shown(server: str, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('[defaults]\ndriver = "simulated"\n[hosts.host-1]\n[hosts.host-9]\n', encoding="utf-8")
    dry = run("fleet", "apply", str(file), "--dry-run").stdout
    assert "+ host host-9\n" in dry
    assert "- machine db\n" in dry
    assert len(answer("machine", "list")["machines"]) == 8
    refused = run("fleet", "apply", str(file), code=1).stderr
    assert "would remove 8 machines without notice" in refused
    assert len(answer("machine", "list")["machines"]) == 8
    assert "Applied:" in run("fleet", "apply", str(file), "--yes").stdout
    assert answer("machine", "list")["machines"] == []


def test_an_invalid_fleet_file_is_refused(server: str, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    assert (
        f"fleet file {file} cannot be read: No such file" in run("fleet", "apply", str(file), code=2).stderr
    )
    file.write_text("[", encoding="utf-8")
    assert f"{file} is not TOML" in run("fleet", "apply", str(file), code=2).stderr
    file.write_text("[groups.web]\nkind = 2026-01-01", encoding="utf-8")
    refused = run("fleet", "apply", str(file), code=2).stderr
    assert f"{file}: groups.web: kind: expected cloud-service" in refused


def test_a_fleet_file_that_conflicts_with_open_work_is_refused_by_name(
    server: str, service: Service, tmp_path: Path
) -> None:
    service.poll("web-0")
    service.order("web-0", Action.RESTART)
    file, declared = tmp_path / "fleet.toml", run("fleet", "show").stdout
    file.write_text(declared.replace('group = "web"', 'project = "default"'), encoding="utf-8")
    assert run("fleet", "apply", str(file), "--yes", code=1).stderr.startswith(f"forewarn: {file}: ")


def test_the_command_works_in_a_process_of_its_own(server: str) -> None:
    program = [sys.executable, "-m", "forewarn", "event", "list", "--json"]
    # No proxy may intercept the request.
    environment = {**os.environ, "HTTP_PROXY": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == {"events": [], "next": None}


def test_help_imports_no_heavy_modules() -> None:
    program = (
        "import sys, forewarn.cli.main\n"
        "for each in forewarn.cli.main.app.commands.values(): each.load()\n"
        "heavy = {'httpx', 'fastapi', 'sqlalchemy', 'uvicorn', 'pydantic', 'rich.table'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Problems of new users


def test_a_groups_policy_is_shown_in_sentences_and_declared_as_in_a_file(
    service: Service, server: str
) -> None:
    policy = {"approval": "all", "auto_approve": True, "notice": 1800, "budget": 2, "defer": 600}
    declared = answer("fleet", "show")["fleet"]
    declared["groups"]["web"]["policy"] = policy
    OperatorClient(server).call("PUT", "/v1/fleet", AppliedFleetAnswer, body=declared)
    said = run("group", "show", "web").stdout
    assert "all named machines must approve, orders of users start without approval" in said
    assert "minimum notice 30 m, needs 2 healthy machines during a rollout" in said
    assert "defer an event by 10 m" in said
    file = run("fleet", "show").stdout
    assert "[groups.web.policy]\n" in file
    for line in ('approval = "all"', "auto-approve = true", "budget = 2", 'defer = "10m"', 'notice = "30m"'):
        assert f"{line}\n" in file


def test_a_shown_fleet_with_a_policy_can_be_applied(server: str, tmp_path: Path) -> None:
    declared = answer("fleet", "show")["fleet"]
    declared["groups"]["web"]["policy"] = {
        "terminate_notice": 420,
        "degrade_notice": 90000,
        "approval": "leader",
    }
    OperatorClient(server).call("PUT", "/v1/fleet", AppliedFleetAnswer, body=declared)
    file = tmp_path / "fleet.toml"
    file.write_text(run("fleet", "show").stdout, encoding="utf-8")
    assert 'degrade-notice = "1d1h"' in file.read_text()
    assert "No changes" in run("fleet", "apply", str(file)).stdout


def test_an_order_on_a_busy_machine_prints_its_reason_to_wait(service: Service, server: str) -> None:
    first = answer("host", "maintenance", "host-1", "--action", "reboot", "--emergency", "smoke")["order"][
        "id"
    ]
    said = run("machine", "restart", "web-0").stdout
    assert said.startswith("web-0: restart ordered, waiting.\n")
    assert f"web-0: waits for order {first} (maintenance) to finish with it" in said
    assert "announced" not in said


def test_every_output_uses_the_word_enabled(server: str) -> None:
    shown = [run(noun, "list").stdout for noun in ("machine", "group")]
    shown += [run("machine", "show", "web-0").stdout, run("group", "show", "web").stdout]
    for said in shown:
        assert "enabled" in said.lower()
        assert "listens" not in said.lower()


def test_a_host_stays_degraded_when_its_order_is_cancelled(server: str) -> None:
    for noun, one in (("order", "order"), ("event", "events")):
        placed = answer("host", "degrade", "host-1")
        wanted = placed[one] if noun == "order" else placed[one][0]
        said = run(noun, "cancel", wanted["id"]).stdout
        assert "host-1 stays degraded" in said
        assert "host restore host-1" in said
        run("host", "restore", "host-1")


def test_an_emergency_may_give_notice(service: Service, server: str) -> None:
    words = ("host", "maintenance", "host-1", "--action", "freeze", "--emergency", "smoke", "--notice", "2m")
    assert "in 2 m" in run(*words).stdout
    run(*words[:-1], "soon", code=2)


def run_at_a_terminal(word: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose input is a terminal, and type an answer."""
    master, slave = pty.openpty()
    os.write(master, f"{word}\n".encode())
    try:
        program = [sys.executable, "-m", "forewarn", *words]
        return subprocess.run(program, stdin=slave, capture_output=True, text=True, check=False)
    finally:
        os.close(master)
        os.close(slave)


def test_deleting_a_machine_at_a_terminal_needs_a_yes(server: str) -> None:
    refused = run_at_a_terminal("n", "machine", "delete", "db")
    assert refused.returncode == 1
    assert "without notice?" in refused.stderr
    assert "nothing was changed" in refused.stderr
    run("machine", "show", "db")
    assert "db removed from the fleet" in run_at_a_terminal("y", "machine", "delete", "db").stdout
    assert "Machine web-5 removed" in run_at_a_terminal("n", "machine", "delete", "web-5", "--yes").stdout


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_deleting_a_machine_in_a_script_needs_the_option_yes(server: str, more: tuple[str, ...]) -> None:
    refused = run("machine", "delete", "web-5", *more, code=1)
    assert "this would remove web-5 from the fleet without notice" in refused.stderr
    assert "use --yes to confirm" in refused.stderr
    run("machine", "show", "web-5")


def test_a_hold_is_released_by_its_scope(server: str) -> None:
    for words in (("--project", "default"), ("--host", "host-2"), ()):
        run("hold", "--reason", "a storm", *words)
    assert "several holds are in force; give an id" in run("release", code=1).stderr
    assert "there is no hold on host host-1" in run("release", "--host", "host-1", code=1).stderr
    assert run("release", "--project", "default").stdout == "Hold on project default released.\n"
    assert run("release", "--host", "host-2").stdout == "Hold on host host-2 released.\n"
    run("release", answer("holds")["holds"][0]["id"], "--host", "host-2", code=2)
    assert run("release").stdout == "Hold on the whole fleet released.\n"
    assert run("release", code=1).stderr == "forewarn: no hold is in force\n"


def test_an_invalid_name_is_unknown(server: str) -> None:
    said = 'forewarn: machine "prod/batch_0" does not exist; use batch_0 --project prod\n'
    assert run("machine", "show", "prod/batch_0", code=1).stderr == said
    assert run("machine", "restart", "prod/batch_0", code=1).stderr == said
    assert run("host", "show", "a/b", code=1).stderr == 'forewarn: host "a/b" does not exist\n'
    assert run("machine", "show", "web-0?x", code=1).stderr == 'forewarn: machine "web-0?x" does not exist\n'
    assert run("machine", "show", "", code=1).stderr == 'forewarn: machine "" does not exist\n'


def test_an_emergency_prints_the_promise_it_breaks(server: str) -> None:
    words = ("host", "maintenance", "host-1", "--action", "freeze", "--emergency", "leak", "--notice")
    said = run(*words, "2m").stdout
    assert "  Broken promise, recorded in the history: leak: 2 m of notice instead of 15 m.\n" in said


def test_an_emergency_with_full_notice_breaks_no_promise(server: str) -> None:
    words = ("host", "maintenance", "host-1", "--action", "freeze", "--emergency", "leak", "--notice")
    assert "promise" not in run(*words, "1h").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("token", "create", "--name", "a", "--role", "oprator"),
            '--role: expected viewer, user or operator, got "oprator"; did you mean operator?',
        ),
        (
            ("machine", "put", "db", "--priority", "spott"),
            '--priority: expected regular or spot, got "spott"; did you mean spot?',
        ),
        (
            ("history", "--kind", "event-strted"),
            '--kind: there is no kind "event-strted"; did you mean event-started, '
            "event-postponed or event-finished?",
        ),
    ],
)
def test_an_unknown_value_is_wrong_usage_with_a_suggestion(
    server: str, words: tuple[str, ...], said: str
) -> None:
    assert run(*words, code=2).stderr.startswith(f"forewarn: {said}\n")


def test_webhooks_health_metrics_and_calendar_have_commands(server: str) -> None:
    id_ = answer("webhook", "add", "http://127.0.0.1:1/x")["webhook"]["id"]
    assert "http://127.0.0.1:1/x" in run("webhook", "show", id_[:8]).stdout
    assert "works" in run("health").stdout
    assert answer("health")["ready"] == {"status": "ready"}
    assert "forewarn_machines{" in run("metrics").stdout
    assert run("calendar").stdout.startswith("BEGIN:VCALENDAR")
    run("calendar", "--json", code=2)


def test_a_past_event_is_listed_on_demand_and_found_by_a_prefix_of_its_id(
    server: str, service: Service
) -> None:
    service.poll("web-0")
    event = answer("machine", "restart", "web-0")["event"]["id"]
    service.advance(hours=1)
    assert answer("event", "list")["events"] == []
    assert [each["id"] for each in answer("event", "list", "--all")["events"]] == [event]
    assert "over" in run("event", "list", "--all").stdout
    assert f"Event            {event}" in run("event", "show", event[:6]).stdout
    assert "event-started" in run("history", "--event", event[:6].lower()).stdout
    assert "`forewarn event list --all` shows" in run("event", "show", "zzzz", code=1).output


@pytest.mark.usefixtures("server")
def test_the_filter_of_a_host_is_printed_for_its_machines() -> None:
    host = answer("machine", "show", "web-0")["machine"]["host"]
    printed = run("host", "filter", host).stdout
    assert printed.startswith("#!/usr/sbin/nft -f\n")
    assert answer("host", "filter", host) == {"rules": printed.rstrip("\n")}
