"""What older versions have written is opened and carried on: stores on both databases, an agent's journal."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection, delete, select

from forewarn.core.draft import Draft
from forewarn.core.orders import events
from forewarn.core.words import ApprovalRule, ApprovedBy, GroupKind, HostState, Kind, MachineState
from forewarn.store import tables
from forewarn.store.opening.database import create_engines, parse_database
from tests.agent_program import AgentProgram
from tests.counts import LONG
from tests.fixtures import agent_story, versions
from tests.fixtures.agent_story import AGAIN, EVENTS, FINISHED, LATER_ON, LISTED_LAST, LOST, OVER, PASSED
from tests.fixtures.make_version import played
from tests.fixtures.player import Player
from tests.fixtures.story import PORT
from tests.fixtures.versions import RELEASED, VERSIONS
from tests.harness import Service
from tests.histories.checked_store import CheckedStore
from tests.process import Program, free_port, until
from tests.rules import misplaced, overdue, unexplained
from tests.stores import sqlite_url
from tests.transactions import writing

PRESENT = "present"  # what this version would leave
# The kinds of records that a version did not know.
OF_DRIVERS = {Kind.STEP_UNKNOWN, Kind.ORDER_ABANDONING}
OF_NIGHTS = {Kind.EVENT_POSTPONED, Kind.HOLD_REFUSED, Kind.HOST_LOST, Kind.HOST_FENCED}
CAME_AFTER = {
    "0.1": {Kind.SERVICE_AWAY, *OF_DRIVERS, *OF_NIGHTS},
    "schema-0021": OF_DRIVERS | OF_NIGHTS,
    "schema-0022": OF_NIGHTS,
}
# What no story on loopback comes to: it takes a bridge with two MACs (tests/system/test_impostors.py),
# machines that others move (tests/machines/test_import.py), or hypervisors that do not answer.
ON_A_BRIDGE = {
    Kind.IMPOSTOR_REFUSED,
    Kind.UNANNOUNCED_IMPACT,
    Kind.HOST_UNREACHABLE,
    Kind.HOST_REACHABLE,
}
# Who works on a host itself is said since; schema 0023 called that simulated where its machines' driver was.
# Until schema 0026 a machine that polled late, or after a peer's approval, was said to be told late.
OTHERWISE = re.compile(
    r".*\.(simulated was True, is False"
    r"|late was (True|[0-9]+), is (False|0)"
    r"|driver was 'simulated', is 'external'"
    r"|simulated_hosts was .*, is \[\])"
)
SIMULATED_UNSAID = ["0.1"]


# What people have on their disks, and what the last migration meets; `tests/contract` reads all rows of all.
MATTER_MOST = [*RELEASED, VERSIONS[-1]]


@pytest.fixture(params=VERSIONS if LONG else MATTER_MOST)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> str:
    """Give the URL of a database with the store of a version."""
    sqlite = f"sqlite:///{tmp_path / 'forewarn.db'}"
    url = sqlite if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    versions.put_back(version, url)
    return url


@pytest.fixture
def service(url: str) -> Iterator[Service]:
    service = versions.opened(url)
    yield service
    service.close()


# The store


@pytest.mark.parametrize("version", SIMULATED_UNSAID)
def test_a_fleet_that_was_simulated_unsaid_is_simulated_and_says_so(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    service = versions.opened(url)
    assert service.fleet.views.fleet().defaults.driver == "simulated"
    assert [
        record.message for record in caplog.records if 'driver = "simulated" is written' in record.message
    ]
    service.close()
    caplog.clear()
    versions.opened(url).close()
    assert caplog.records == []


def test_a_server_opens_the_store_and_says_what_was_said_of_it(
    version: str, url: str, tmp_path: Path
) -> None:
    said, port = versions.saved(version), free_port()
    versions.move_port(url, port)
    unlimited = {"FOREWARN_OPERATOR_RATE": "0"}  # everything is asked for at once
    with Program(tmp_path, "--database", url, environment=unlimited) as program:
        program.operator(said["token"])
        now = {path: _answer(program, path) for path in said["answers"] if _is_asked(path, url)}
        documents = {
            machine["name"]: program.guest(machine["address"]).document()
            for machine in now["/v1/machines?limit=1000"]["machines"]
            if machine["name"] in said["documents"]
        }
    before = {path: said["answers"][path] for path in now}
    before = _with_port(versions.without_last_calls(before), port)
    different = versions.differences(before, versions.without_last_calls(now))
    assert [each for each in different if not OTHERWISE.fullmatch(each)] == []
    assert documents == said["documents"]


def _is_asked(path: str, url: str) -> bool:
    """Machines and hosts are many, and listed: to ask for each one of them is enough on one database."""
    return url.startswith("sqlite") or not path.startswith(("/v1/machines/", "/v1/hosts/"))


def _answer(program: Program, path: str) -> Any:
    answer = program.call("GET", path)
    assert answer.status_code == 200, f"{path}: {answer.text}"
    return answer.json() if "json" in answer.headers["content-type"] else answer.text


def _with_port(answers: dict[str, Any], port: int) -> Any:
    return json.loads(json.dumps(answers).replace(f'"port": {PORT}', f'"port": {port}'))


def test_everything_that_was_open_is_carried_on_to_its_end(version: str, service: Service) -> None:
    said = versions.saved(version)
    if version == VERSIONS[-1] and service.url.startswith("sqlite"):
        # Every transaction; that takes long, and the rules are the same.
        service.wire(CheckedStore(service.store, service, set()))  # type: ignore[arg-type]
    player = Player(service)
    player.use(said["token"])

    def check() -> None:
        whole = service.everything()
        assert misplaced(whole) == []
        assert unexplained(whole) == []
        assert overdue(whole, now=service.clock.now(), policy=service.policy) == []

    check()
    assert versions.carry_on(player, check) == said["ends"]
    assert versions.still_open(player, "orders") == []
    assert versions.still_open(player, "rollouts") == []
    assert player.get("/v1/events")["events"] == []


@pytest.mark.parametrize("version", [*VERSIONS, PRESENT])
def test_the_store_has_everything_in_every_state(version: str, tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    shown = played(url) if version == PRESENT else versions.saved(version)
    later = CAME_AFTER.get(version, set())
    _check_states(shown["answers"])
    _check_kinds(shown["answers"], set(Kind) - later - ON_A_BRIDGE)
    states = set(HostState) - ({HostState.LOST} if Kind.HOST_LOST in later else set())
    assert {host["state"] for host in shown["answers"]["/v1/hosts?limit=1000"]["hosts"]} == states


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


def _check_kinds(answers: dict[str, Any], recorded: set[Kind]) -> None:
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
    assert kinds == recorded


@pytest.mark.parametrize("version", ["schema-0021"])
def test_a_store_without_counts_is_counted_by_its_records_as_one_was_meanwhile(url: str) -> None:
    engines = create_engines(parse_database(url))
    with engines.writing.begin() as connection:
        counted = _counted(connection)
        assert all(map(any, zip(*(row[3:] for row in counted), strict=True)))
        connection.execute(delete(tables.promises))
        with Operations.context(MigrationContext.configure(connection)):
            import_module("forewarn.store.migrations.versions.0019_promises").fill()
        assert _counted(connection) == counted
    engines.dispose()


def _counted(connection: Connection) -> list[tuple[Any, ...]]:
    # What came later was never counted by records.
    columns = (column for column in tables.promises.c if column.name != "unannounced")
    return sorted(tuple(row) for row in connection.execute(select(*columns)))


@pytest.mark.parametrize("version", ["schema-0021"])
def test_what_was_judged_when_it_started_is_not_judged_again_when_it_ends(service: Service) -> None:
    """Every started event of the store was judged by the version that wrote it."""
    listed = service.everything().events.values()
    assert {event.judged for event in listed if event.started_at is not None} == {True}
    assert {event.judged for event in listed if event.started_at is None} == {False}
    kinds = (Kind.NOTICE_LATE, Kind.NOTICE_NEVER)
    before = [record for record in service.history() if record.kind in kinds]
    for event in listed:
        if event.started_at is not None:
            with writing(service.store) as tx:
                draft = Draft(
                    tx.rules.around(orders=[event.order]), now=service.clock.now(), new_id=service.ids
                )
                events.end(draft, draft.events[event.id], Kind.EVENT_FINISHED, why="done")
                tx.changes.save(draft.changes())
    assert [record for record in service.history() if record.kind in kinds] == before


@pytest.mark.parametrize("version", ["schema-0022"])
def test_what_was_listed_is_armed_since_its_announcement(service: Service) -> None:
    listed = service.everything().events.values()
    assert [event.armed_at for event in listed] == [event.announced_at for event in listed]


# The agent's journal


@pytest.mark.parametrize("version", RELEASED)
def test_the_journal_says_what_it_said(version: str, tmp_path: Path) -> None:
    agent = _left_agent(version, tmp_path, "http://127.0.0.1:1")
    said = json.loads((_left(version) / "told.json").read_text())
    for event in said:
        if any(each["state"] == "never" for each in event["handlers"]):
            assert event["doing"] == "prepared"  # which was not true
            event["doing"] = "preparation failed"
    assert versions.differences(said, agent_story.told(agent)) == []


@pytest.mark.parametrize("version", RELEASED)
def test_the_agent_carries_on_with_every_event(version: str, tmp_path: Path) -> None:
    listed = (*LISTED_LAST, replace(LATER_ON, not_before=PASSED))
    waited_for = [FINISHED, LOST, AGAIN, LATER_ON]
    with (
        agent_story.endpoint(*{event.id: event for event in listed}.values()) as endpoint,
        _left_agent(version, tmp_path, endpoint.url) as agent,
    ):
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


def _left(version: str) -> Path:
    return versions.FOLDER / version / versions.AGENT


def _left_agent(version: str, folder: Path, url: str) -> AgentProgram:
    agent_story.put_back(_left(version), folder)
    return agent_story.agent_in(folder, url)
