"""Stores and journals of released versions are opened, and their open work continues."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from forewarn.core.basic_types import ApprovalRule, ApprovedBy, GroupKind, HostState, Kind, MachineState
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.rows import stored
from forewarn.store.rows.mapping import Mapped
from forewarn.store.rows.stored import META
from forewarn.store.store import open_store
from tests.fixtures import agent_story, versions
from tests.fixtures.agent_story import AGAIN, EVENTS, FINISHED, LATER_ON, LISTED_LAST, LOST, OVER, PASSED
from tests.fixtures.player import Player
from tests.fixtures.story import PORT
from tests.fixtures.versions import PRESENT, VERSIONS
from tests.helpers.programs.process import Program, free_port, until
from tests.histories.checked_store import CheckedStore
from tests.rules.standing import misplaced, overdue, unexplained

# Kinds that need more than loopback: a bridge with two MACs (tests/system/test_impostors.py),
# machines that others move (tests/machines/test_import.py), or hypervisors that do not answer.
ON_A_BRIDGE = {
    Kind.IMPOSTOR_REFUSED,
    Kind.UNANNOUNCED_IMPACT,
    Kind.HOST_UNREACHABLE,
    Kind.HOST_REACHABLE,
}
MAPPED = {each.table.name: each for each in [*vars(stored).values(), META] if isinstance(each, Mapped)}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Yield the URL of an empty database."""
    sqlite = f"sqlite:///{tmp_path / 'forewarn.db'}"
    return sqlite if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def shown(version: str, url: str) -> dict[str, Any]:
    """Restore a version's store into the database; return that version's views of it."""
    return versions.leave_store(version, url)


# The store


def test_a_server_opens_the_store_and_shows_the_same_views(
    shown: dict[str, Any], url: str, tmp_path: Path
) -> None:
    port, documents = free_port(), shown.get("documents", {})
    versions.move_port(url, port)
    unlimited = {"FOREWARN_OPERATOR_RATE": "0"}  # all views are requested at once
    with Program(tmp_path, "--database", url, environment=unlimited) as program:
        program.operator(shown["token"])
        now = {path: _answer(program, path) for path in shown["answers"] if _is_compared(path, url)}
        documents_now = {
            machine["name"]: program.guest(machine["address"]).document()
            for machine in now["/v1/machines?limit=1000"]["machines"]
            if machine["name"] in documents
        }
    before = versions.without_last_calls({path: shown["answers"][path] for path in now})
    assert versions.differences(_with_port(before, port), versions.without_last_calls(now)) == []
    assert documents_now == documents


def _is_compared(path: str, url: str) -> bool:
    """Views of single machines and hosts are compared on one database only, because they are many."""
    return url.startswith("sqlite") or not path.startswith(("/v1/machines/", "/v1/hosts/"))


def _answer(program: Program, path: str) -> Any:
    answer = program.call("GET", path)
    assert answer.status_code == 200, f"{path}: {answer.text}"
    return answer.json() if "json" in answer.headers["content-type"] else answer.text


def _with_port(answers: dict[str, Any], port: int) -> Any:
    return json.loads(json.dumps(answers).replace(f'"port": {PORT}', f'"port": {port}'))


def test_every_row_is_written_unchanged(shown: dict[str, Any], url: str) -> None:
    assert shown
    open_store(url, new_id=lambda: "NEW").close()
    engines = create_engines(parse_database(url))
    with engines.reading.connect() as connection:
        for mapped in MAPPED.values():
            rows = connection.execute(select(mapped.table)).mappings().all()
            assert rows, f"the story leaves nothing in {mapped.table.name}"
            for row in rows:
                again = mapped.write(mapped.read([row[column.name] for column in mapped.columns]))
                assert again == {name: row[name] for name in again}
    engines.dispose()


def test_all_open_work_continues_to_its_end(shown: dict[str, Any], version: str, url: str) -> None:
    service = versions.opened(url)
    if version == PRESENT and url.startswith("sqlite"):
        # Check every transaction in one case only, because that takes long.
        service.wire(CheckedStore(service.store, service, set()))  # type: ignore[arg-type]
    player = Player(service)
    player.use(shown["token"])

    def check() -> None:
        whole = service.everything()
        assert misplaced(whole) == []
        assert unexplained(whole) == []
        assert overdue(whole, now=service.clock.now(), policy=service.policy) == []

    check()
    versions.carry_on(player, check)
    assert versions.still_open(player, "orders") == []
    assert versions.still_open(player, "rollouts") == []
    assert player.get("/v1/events")["events"] == []
    service.close()


@pytest.mark.parametrize("version", [PRESENT])
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_story_reaches_every_state(shown: dict[str, Any]) -> None:
    _check_states(shown["answers"])
    _check_kinds(shown["answers"])
    assert {host["state"] for host in shown["answers"]["/v1/hosts?limit=1000"]["hosts"]} == set(HostState)


def _check_states(answers: dict[str, Any]) -> None:
    orders = [each["order"] for path, each in answers.items() if path.startswith("/v1/orders/")]
    stages = [stage for order in orders for stage in order["stages"]]
    steps = [step for stage in stages for step in stage["steps"]]
    assert {order["state"] for order in orders} == {
        *("queued", "announced", "started", "done", "failed", "cancelled")
    }
    assert {stage["state"] for stage in stages} == {"queued", "announced", "started", "done"}
    assert {step["state"] for step in steps} == {"waiting", "running", "done", "failed", "moot"}
    rollouts = [each["rollout"] for path, each in answers.items() if path.startswith("/v1/rollouts/")]
    waves = [wave for rollout in rollouts for wave in rollout["waves"]]
    assert {rollout["state"] for rollout in rollouts} == {"running", "paused", "done", "aborted"}
    assert {wave["state"] for wave in waves} == {"planned", "announced", "started", "checking", "done"}


def _check_kinds(answers: dict[str, Any]) -> None:
    events = [each["event"] for path, each in answers.items() if path.startswith("/v1/events/")]
    approvals = [approval for event in events for approval in event["approvals"]]
    groups = answers["/v1/groups?limit=1000"]["groups"]
    kinds = {record["kind"] for record in answers["/v1/history?limit=1000"]["records"]}
    machines = answers["/v1/machines?limit=1000"]["machines"]
    assert {approval["kind"] for approval in approvals} == set(ApprovedBy)
    assert {event["status"] for event in events} == {"Scheduled", "Started"}
    assert {group["kind"] for group in groups} == set(GroupKind) - {GroupKind.STANDALONE}
    assert {group["policy"]["approval"] for group in groups} == set(ApprovalRule)
    assert {machine["state"] for machine in machines} == set(MachineState)
    assert kinds == set(Kind) - ON_A_BRIDGE


# The agent's journal


def test_the_agent_continues_with_every_event(version: str, tmp_path: Path) -> None:
    told = versions.leave_journal(version, tmp_path)
    listed = (*LISTED_LAST, replace(LATER_ON, not_before=PASSED))
    waited_for = [FINISHED, LOST, AGAIN, LATER_ON]
    with agent_story.endpoint(*{event.id: event for event in listed}.values()) as endpoint:
        left = agent_story.agent_in(tmp_path, endpoint.url)
        assert versions.differences(told, agent_story.told(left)) == []
        with left as agent:
            until(lambda: len(endpoint.approved) >= len(waited_for), what="the approvals that were missing")
            agent.out.wait_for("not approved: held failed")
            endpoint.show()
            for event in EVENTS:
                if event is not OVER:
                    agent_story.wait_for(agent, event, "over")
            assert agent_story.told(agent) == []
    assert sorted(endpoint.approved) == sorted(event.id for event in waited_for)
    assert sorted(agent_story.ran(tmp_path)) == sorted(
        [
            *("prepare lost 2", "prepare again 2", "prepare later 1"),
            *("recover returning 2", "recover hindered 2", "recover started 1", "recover held 1"),
            *(
                "recover finished 1",
                "recover lost 1",
                "recover again 1",
                "recover later 1",
                "recover start 1",
            ),
        ]
    )
