"""Projects on the command line: lists of one project, webhooks of tenants, and results of a revocation."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from forewarn.cli import terminal
from forewarn.cli.main import app
from forewarn.core.basic_types import Action, Work
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, serving
from tests.helpers.service.tenants import A_USER, OPERATOR, let_in, two_projects

URL = "https://hooks.example/a"


@pytest.fixture(autouse=True)
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    for name in ("a-0", "b-0"):
        service.poll(name)
        service.order(name, Action.RESTART)
    let_in(service)
    with serving(app_of(service)) as url:
        monkeypatch.setenv("FOREWARN_SERVER", url)
        monkeypatch.setenv("FOREWARN_TOKEN", OPERATOR)
        yield service
    service.close()


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def listed(noun: str, key: str, *words: str) -> list[Any]:
    answer = json.loads(run(noun, "list", *words, "--json").stdout)
    return [each[key] for each in answer[f"{noun}s"]]


def test_lists_show_one_project_on_demand() -> None:
    assert listed("machine", "name", "--project", "a") == ["a-0", "a-1", "spot"]
    assert listed("group", "name", "--project", "b") == ["b-web"]
    assert listed("order", "machine", "--project", "a") == ["a-0"]
    assert listed("event", "group", "--project", "b") == ["b-web"]
    assert len(listed("event", "group")) == 2


def test_machines_are_listed_by_group_and_host() -> None:
    assert listed("machine", "name", "--group", "a-web", "--host", "host-2") == ["a-1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("machine", "list", "--group", "a-wep"), 'group "a-wep" does not exist; did you mean a-web?'),
        (("order", "list", "--project", "z"), 'project "z" does not exist'),
        (("history", "--machine", "spott"), 'machine "spott" does not exist; did you mean spot?'),
    ],
)
def test_a_filter_with_an_unknown_name_is_an_error(words: tuple[str, ...], message: str) -> None:
    assert message in run(*words, code=1).stderr


def test_a_tenant_manages_its_own_webhooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_TOKEN", A_USER)
    run("webhook", "add", URL)
    assert listed("webhook", "owner") == ["a"]
    refused = run("webhook", "add", "http://127.0.0.1/", code=2)
    assert "expected a public address" in refused.stderr


def test_revoking_a_token_warns_about_its_webhooks_and_the_last_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FOREWARN_TOKEN", A_USER)
    run("webhook", "add", URL)
    monkeypatch.setenv("FOREWARN_TOKEN", OPERATOR)
    revoked = run("token", "revoke", "anna")
    assert revoked.stdout == "Token anna revoked.\n"
    assert "to hooks.example was added with it and stays active" in revoked.stderr
    assert "no operator token is left" in run("token", "revoke", "olga").stderr


def test_lists_name_the_project_unless_the_terminal_is_narrow_and_one_project_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def heads(*words: str) -> list[str]:
        return run(*words).stdout.splitlines()[0].split()

    for words in (("machine", "list"), ("order", "list"), ("event", "list"), ("history",)):
        assert "PROJECT" in heads(*words)
    assert "a/a-0" in run("host", "list").stdout
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    assert "PROJECT" in heads("machine", "list")
    assert "PROJECT" not in heads("machine", "list", "--project", "a")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("order", "list", "--state", "failed"), "No orders in state failed."),
        (("order", "list", "--project", "default"), "No orders of project default."),
        (("event", "list", "--project", "default"), "No events of project default."),
        (("machine", "list", "--project", "default"), "No machines of project default."),
        (("history", "--kind", "hold-set"), "No records of kind hold-set."),
    ],
)
def test_an_empty_result_prints_the_filter(words: tuple[str, ...], said: str) -> None:
    assert run(*words).stdout == f"{said}\n"


# A tenant may run every command that a hint suggests


def hinted(output: str) -> list[list[str]]:
    """Return the commands that the output suggests as next steps."""
    found = re.findall(r"^ +[A-Z][a-z ]+: +(?:\S*/)?forewarn (.+)$", output, re.MULTILINE)
    return [shlex.split(each) for each in found]


def as_user_of_a(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_TOKEN", A_USER)


def test_the_user_who_approves_an_event_of_a_host_can_follow_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.advance(hours=1)
    placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    mine = next(each.id for each in placed.events if each.group == "a-web")
    as_user_of_a(monkeypatch)
    (command,) = hinted(run("event", "approve", mine).output)
    followed = run(*command).output
    assert "maintenance freeze on a host" in followed
    assert not re.search("host-1|b-0|b-web", followed)


def test_a_tenant_watches_its_own_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    as_user_of_a(monkeypatch)
    shown = run("watch", "--once").output
    assert "a-0" in shown
    assert not re.search(r"host-\d|b-0|olga", shown)


@pytest.mark.parametrize(("external", "ways"), [(True, []), (False, ["retry", "abandon"])])
def test_only_callers_with_the_right_see_how_to_continue_a_failed_order(
    service: Service, monkeypatch: pytest.MonkeyPatch, external: bool, ways: list[str]
) -> None:
    service.advance(hours=1)
    service.driver.failing |= {"a-0", "b-0"}
    if external:
        placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    else:
        placed = service.order("a-0", Action.RESTART)
    service.advance(minutes=20)
    as_user_of_a(monkeypatch)
    shown = run("order", "show", placed.order.id).output
    assert "told to fail" in shown
    assert [words[1] for words in hinted(shown)] == ways


def test_a_token_names_its_project(monkeypatch: pytest.MonkeyPatch) -> None:
    as_user_of_a(monkeypatch)
    caller = json.loads(run("token", "show", "--json").output)["caller"]
    assert caller == {"name": "anna", "role": "user", "project": "a", "rights": ["see", "use"]}
    assert "anna" in run("token", "show").output


def test_a_tenant_sees_an_emergency_but_no_command_to_override_its_wait(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("host", "maintenance", "host-1", "--action", "freeze", "--emergency", "smoke", "--notice", "2m")
    order = json.loads(run(*words, "--json").stdout)["order"]["id"]
    assert "To continue at once:" in run("order", "show", order).stdout
    monkeypatch.setenv("FOREWARN_TOKEN", A_USER)
    shown = run("order", "show", order).stdout
    assert "smoke" not in shown
    assert "(an operator's reason)" in shown
    assert "To continue at once:" not in shown
