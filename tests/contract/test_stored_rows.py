"""The stored form of values: later versions must read everything that earlier ones have written."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.access import Role, Token
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    ApprovalRule,
    ApprovedBy,
    GroupName,
    HostName,
    HostTask,
    Kind,
    MachineName,
    MachineState,
    Mobility,
    Priority,
    ServiceMode,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.model.constraints import Hold, Waiting
from forewarn.core.model.event import Approval, Deferral, NoticeSummary, Postponement
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import HostResource
from forewarn.core.model.order import HostStep, OrderTerms, Stage
from forewarn.core.model.rollout import LastChange, Rollout, RolloutTerms, Wave, WaveState
from forewarn.core.rehearsal_rules import Fault, FaultKind, SavedRehearsal
from forewarn.core.session_cookies import BrowserSession
from forewarn.core.webhook_rules import Webhook, WebhookId
from forewarn.store.rows.mapping import Mapped
from forewarn.store.rows.stored import (
    EVENTS,
    GROUPS,
    HOLDS,
    HOSTS,
    MACHINES,
    ORDERS,
    RECORDS,
    REHEARSALS,
    ROLLOUTS,
    SESSIONS,
    TOKENS,
    WEBHOOKS,
)
from tests.contract.samples import (
    NOW,
    SECOND,
    event,
    event_id,
    group,
    host,
    machine,
    machine_id,
    order,
    order_id,
    record,
    step,
)

GOLDEN = Path(__file__).parent / "golden" / "rows.json"
LATER = NOW + timedelta(hours=1, microseconds=5)
HALF_A_SECOND = timedelta(milliseconds=500)

WAITING = (
    Waiting(what="web", reason="another update domain", group=GroupName("web")),
    Waiting(what="host-1", reason="held", stuck=True, until=LATER),
)
PLAIN_ROLLOUT = Rollout(
    id="cccccccc-0000-4000-8000-000000000001",
    number=1,
    work=Work.REBOOT,
    hosts=(HostName("host-1"),),
    terms=RolloutTerms(driver="simulated"),
    by="test",
    created_at=NOW,
)
PLAIN_WEBHOOK = Webhook(
    id=WebhookId("dddddddd-0000-4000-8000-000000000001"),
    number=1,
    url="https://example.com/",
    project=None,
    kinds=frozenset(),
    secret="s",
    by="test",
    created_at=NOW,
    delivered=1,
)
PLAIN_TOKEN = Token(
    number=1, name="ops", role=Role.OPERATOR, project=None, digest="d1", created_at=NOW, created_by="test"
)

STORED: dict[str, tuple[Mapped[Any], Any]] = {
    "a host": (HOSTS, host("host-1", driver="external", uri="qemu+ssh://host-1/system", at_once=2)),
    "a host with everything": (
        HOSTS,
        host(
            "host-2",
            resources={"vcpus": HostResource(amount=64, ratio=4.0)},
            labels={"rack": "a"},
            bare_metal=True,
            cordoned_for=order_id(1),
            unreachable_since=NOW,
        ),
    ),
    "a hold": (
        HOLDS,
        Hold(id="aaaa", reason="heat", by="test", at=NOW, project=DEFAULT_PROJECT, host=HostName("host-1")),
    ),
    "a group": (GROUPS, group()),
    "a group that asks for something": (
        GROUPS,
        group(
            born=7,
            incarnation=3,
            enabled_at=NOW,
            ready_at=LATER,
            heard=True,
            policy=GroupPolicy(
                approval=ApprovalRule.ALL,
                auto_approve=True,
                notice=900 * SECOND,
                terminate_notice=HALF_A_SECOND,
                degrade_notice=60 * SECOND,
                budget=2,
                defer=300 * SECOND,
                freezes_at_once=4,
                gang=True,
            ),
        ),
    ),
    "a machine": (MACHINES, machine("web-0")),
    "a machine that is on no host": (
        MACHINES,
        machine("web-2", host=None, last_host=HostName("host-1"), state=MachineState.STOPPED),
    ),
    "a machine with everything": (
        MACHINES,
        machine(
            "Web-1",
            bound_for=HostName("host-2"),
            update_domain=1,
            fault_domain=2,
            priority=Priority.SPOT,
            network="blue",
            address="10.0.0.1",
            mac="00:0d:3a:f8:06:ec",
            port=8080,
            tags={"rack": "1", "β": "ü"},
            location="eu",
            zone="1",
            size="s",
            os="linux",
            mobility=Mobility.LIVE,
            resources={"vcpus": 4, "memory": 1.5},
            labels={"gpu": "h100"},
        ),
    ),
    "an order": (ORDERS, order(1)),
    "an order with everything": (
        ORDERS,
        order(
            2,
            machine=machine_id("web-0"),
            machine_name=MachineName("web-0"),
            host=HostName("host-1"),
            reason="kernel",
            driver="external",
            announced_at=NOW,
            terms=OrderTerms(
                emergency="fire",
                notice=60 * SECOND,
                at_once=True,
                heartbeat=30 * SECOND,
                expected=HALF_A_SECOND,
                paused="an operator did",
                deadline=LATER,
                rollout="CCCC",
                rehearsal="drill",
            ),
            stages=(
                Stage(
                    state=StageState.STARTED,
                    started_at=NOW,
                    steps=(
                        step("web-0"),
                        step(
                            "web-1",
                            StepState.FAILED,
                            attempt=2,
                            target=HostName("host-2"),
                            begun_at=NOW,
                            look_at=LATER,
                            ended_at=LATER,
                            why="no disk",
                        ),
                    ),
                ),
            ),
            waiting=WAITING,
            due_at=LATER,
            heard_at=LATER,
        ),
    ),
    "an order on a host itself": (
        ORDERS,
        order(
            4,
            action=Action.SERVICE,
            work=Work.HOST,
            host=HostName("host-1"),
            terms=OrderTerms(
                mode=ServiceMode.EVACUATE,
                returning=True,
                host_driver="hook",
                fenced="ann",
                despite_hold=True,
            ),
            stages=(
                Stage(
                    state=StageState.STARTED,
                    kind=StageKind.EVACUATE,
                    steps=(step("web-0", work=Work.FREEZE, moves=True),),
                ),
            ),
            host_steps=(
                HostStep(task=HostTask.CORDON, driver="hook", state=StepState.DONE, ended_at=LATER),
                HostStep(
                    task=HostTask.WORK,
                    driver="external",
                    state=StepState.RUNNING,
                    attempt=2,
                    begun_at=NOW,
                    look_at=LATER,
                    taken_up_at=NOW,
                    unknown_at=NOW,
                    mark="7",
                    progress=0.5,
                    why="silent",
                ),
            ),
        ),
    ),
    "an order whose machines have homes": (
        ORDERS,
        order(5, work=Work.REDEPLOY, terms=OrderTerms(homes=(HostName("host-2"), HostName("host-3")))),
    ),
    "an order that is over": (ORDERS, order(3, ended_at=NOW, why="cancelled", due_at=LATER)),
    "an event": (EVENTS, event(1)),
    "an event with everything": (
        EVENTS,
        event(
            2,
            update_domain=4,
            started_at=NOW,
            ended_at=LATER,
            why="done",
            approvals=(Approval(by="web-0", kind=ApprovedBy.GUEST, at=NOW, address="10.0.0.1"),),
            rule=ApprovalRule.LEADER,
            judged=True,
            deferred=Deferral(
                by=MachineName("web-0"), at=NOW, until=LATER, since=NOW, asked=timedelta(minutes=5)
            ),
            postponed=Postponement(at=NOW, since=NOW, reason="others were armed"),
        ),
    ),
    "a record": (RECORDS, record(1)),
    "a record with everything": (
        RECORDS,
        record(
            2,
            kind=Kind.EVENT_DEFERRED,
            project=DEFAULT_PROJECT,
            group=GroupName("web"),
            host=HostName("host-1"),
            machine=MachineName("Web-0"),
            event=event_id(1),
            order=order_id(1),
            by="test",
            reason="why",
        ),
    ),
    "a rollout": (ROLLOUTS, PLAIN_ROLLOUT),
    "a rollout with everything": (
        ROLLOUTS,
        replace(
            PLAIN_ROLLOUT,
            gap=HALF_A_SECOND,
            waves=(
                Wave(
                    hosts=(HostName("host-1"),),
                    state=WaveState.DONE,
                    orders=(order_id(1),),
                    announced_at=NOW,
                    started_at=NOW,
                    ends_about=LATER,
                    ended_at=LATER,
                    notice=NoticeSummary(least=HALF_A_SECOND, late=1, never=2),
                ),
                Wave(hosts=(HostName("host-2"),), notice=NoticeSummary()),
            ),
            abandoned=(HostName("host-3"),),
            drivers={HostName("host-1"): "external"},
            excused=(machine_id("web-0"),),
            terms=RolloutTerms(
                driver="external",
                heartbeat=30 * SECOND,
                deadline=LATER,
                expected=HALF_A_SECOND,
                health=60 * SECOND,
                require_poll=True,
            ),
            version=3,
            last_change=LastChange(what="paused", by="test", at=NOW),
            waiting=WAITING,
            due_at=LATER,
        ),
    ),
    "a rollout that moves machines": (
        ROLLOUTS,
        replace(PLAIN_ROLLOUT, work=Work.REDEPLOY, alike=((HostName("host-1"), HostName("host-2")),)),
    ),
    "a session of a browser": (
        SESSIONS,
        BrowserSession(digest="5e55", token="d1", created_at=NOW, expires_at=LATER),
    ),
    "a token": (TOKENS, PLAIN_TOKEN),
    "a token with everything": (
        TOKENS,
        replace(PLAIN_TOKEN, role=Role.USER, project=DEFAULT_PROJECT, expires_at=LATER, revoked_at=NOW),
    ),
    "a webhook": (WEBHOOKS, PLAIN_WEBHOOK),
    "a webhook with everything": (
        WEBHOOKS,
        replace(
            PLAIN_WEBHOOK,
            project=DEFAULT_PROJECT,
            owner=DEFAULT_PROJECT,
            kinds=frozenset({Kind.NOTICE_LATE, Kind.EVENT_DEFERRED}),
            failures=3,
            failing_since=NOW,
            error="refused",
            next_try=NOW,
        ),
    ),
    "a rehearsal with everything": (
        REHEARSALS,
        SavedRehearsal(
            project=DEFAULT_PROJECT,
            id="dddddddd-0000-4000-8000-000000000001",
            scenario="mine",
            machines={"00000000-0000-4000-8000-007765622d30": "web-0"},
            faults=(Fault(kind=FaultKind.SLOW, machines=("web-0",), since=NOW, calls=3, number=7),),
            by="test",
            begun_at=NOW,
            renewed_at=LATER,
            ended_by="ann",
        ),
    ),
}


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, Any]]:
    written: dict[str, dict[str, Any]] = json.loads(GOLDEN.read_text())
    return written


@pytest.mark.parametrize("name", STORED)
def test_the_stored_form_of_a_value_does_not_change(name: str, golden: dict[str, dict[str, Any]]) -> None:
    mapped, value = STORED[name]
    # As text, which distinguishes 60 from 60.0.
    assert json.dumps(mapped.write(value), sort_keys=True) == json.dumps(golden[name], sort_keys=True)


@pytest.mark.parametrize("name", STORED)
def test_a_row_is_read_without_loss(name: str, golden: dict[str, dict[str, Any]]) -> None:
    mapped, _ = STORED[name]
    assert mapped.write(read(mapped, golden[name])) == golden[name]


def test_unknown_keys_of_a_later_version_are_ignored(golden: dict[str, dict[str, Any]]) -> None:
    row = golden["an order with everything"]
    later = row | {"terms": row["terms"] | {"later": 1}, "stages": [row["stages"][0] | {"later": [1]}]}
    assert read(ORDERS, later) == read(ORDERS, row)


def read(mapped: Mapped[Any], row: dict[str, Any]) -> Any:
    return mapped.read([row[column.name] for column in mapped.columns])
