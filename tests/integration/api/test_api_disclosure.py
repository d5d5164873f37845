"""Users of a project see no hosts, operators or other projects, unless the project has `sees-hosts`."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from forewarn.control.webhook_use_cases import record_filter
from forewarn.core.access import Grant, Role
from forewarn.core.basic_types import GroupKind, GroupName, HostName, Priority, ProjectName
from forewarn.core.filters import RecordFilter
from forewarn.core.model.declaration import FleetSpec, GroupSpec, HostSpec
from forewarn.core.model.project import Project
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook
from forewarn.server.threads.pusher import Pace, PushContext, WebhookSender
from forewarn.store.batch import Transaction
from forewarn.wire import cloudevents
from forewarn.wire.fleet import write_fleet
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.follower import Follower
from tests.helpers.service.harness import SIMULATION, Service, machine
from tests.helpers.service.served import Api, app_of, serving
from tests.helpers.service.tenants import bearer

# Every name that users of project a must not read contains this text.
SECRET = "zeppelin"
A, B = ProjectName("a"), ProjectName(f"{SECRET}-b")
HOSTS = [HostName(f"{SECRET}-host-{number}") for number in (1, 2, 3, 4)]
OPERATOR, VIEWER, A_USER, A_VIEWER, B_USER = (bearer(f"fw_secret-{number}") for number in range(1, 6))
GRANTS = (
    Grant(name=f"{SECRET}-oskar", role=Role.OPERATOR),
    Grant(name=f"{SECRET}-vera", role=Role.VIEWER),
    Grant(name="anna", role=Role.USER, project=A),
    Grant(name="anna-reads", role=Role.VIEWER, project=A),
    Grant(name=f"{SECRET}-bert", role=Role.USER, project=B),
)
# Spellings of the names of hosts, operators and machines of other projects.
SPELLINGS = (
    f"{HOSTS[0].upper()} {HOSTS[0]}-bmc bmc-{HOSTS[0]} rack.{HOSTS[0]}.lan {B}-0 {SECRET.title()}-Oskar's"
)
WORDS = f"the disks of {HOSTS[0]}, says {SECRET}-oskar ({SPELLINGS})"


def fleet_of(*, sees_hosts: bool = False, hosts: int = 4) -> FleetSpec:
    def group(project: ProjectName) -> GroupSpec:
        return GroupSpec(
            name=GroupName(f"{project}-web"),
            kind=GroupKind.AVAILABILITY_SET,
            update_domains=2,
            project=project,
        )

    return FleetSpec(
        projects=(Project(name=A, rehearsal=True, sees_hosts=sees_hosts), Project(name=B)),
        defaults=SIMULATION,
        hosts=tuple(HostSpec(name=name) for name in HOSTS[:hosts]),
        groups=(group(A), group(B)),
        machines=tuple(
            each
            for name in (A, B)
            for each in (
                machine(f"{name}-0", HOSTS[0], group=f"{name}-web", project=name),
                machine(f"{name}-1", HOSTS[1], group=f"{name}-web", domain=1, project=name),
                machine(f"{name}-spot", HOSTS[2], project=name, priority=Priority.SPOT),
            )
        ),
    )


class World:
    """A service, and its callers."""

    def __init__(self, url: str) -> None:
        self.service = Service(url)
        self.service.apply(fleet_of())
        for wanted in GRANTS:
            self.service.tokens.create(wanted, by=f"{SECRET}-root")
        for name in ("a-0", f"{B}-0"):
            self.service.poll(name)
        self.api = Api(app_of(self.service))

    def ask(self, who: dict[str, str], call: str, body: Any = None, status: int | None = None) -> Any:
        """Send a request, and return the answer. Without a status, it must succeed."""
        method, path = call.split()
        answer = self.api(method, path, json=body, headers=who)
        assert (answer.status_code == status) if status else answer.is_success, answer.text
        return answer.json()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(sqlite_url(tmp_path))
    yield made
    made.service.close()


def read_by(world: World, who: dict[str, str]) -> list[httpx.Response]:
    """Read all lists that users of a project can read."""
    lists = ("machines", "groups", "projects", "orders", "events", "history?limit=1000", "webhooks")
    paths = [f"/v1/{name}" for name in lists]
    paths += ["/v1/machines/a-0", "/v1/machines/a-1", "/v1/calendar.ics", "/v1/clock", "/v1/projects/a"]
    events = {each.event for each in world.service.history(project=A) if each.event}
    orders = {each.order for each in world.service.history(project=A) if each.order}
    for id_ in events:
        paths += [f"/v1/events/{id_}", f"/v1/history?event={id_}"]
    for id_ in orders:
        paths += [f"/v1/orders/{id_}", f"/v1/history?order={id_}"]
    return [world.api("GET", path, headers=who) for path in paths]


def check(world: World) -> None:
    for who in (A_USER, A_VIEWER):
        for answer in read_by(world, who):
            assert answer.is_success or answer.status_code == 403, answer.text  # a viewer sees no webhooks
            assert SECRET not in answer.text.lower(), f"{answer.url}: {answer.text}"


def refuse(world: World, call: str, body: Any = None, *, status: int = 409) -> str:
    message: str = world.ask(A_USER, call, body, status=status)["error"]["message"]
    assert SECRET not in message.lower()
    return message


# Each causes records that project a can read, with names in their texts.


def host_maintenance(world: World) -> None:
    placed = world.ask(
        OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", {"action": "redeploy", "reason": WORDS}
    )
    check(world)
    mine = next(each["id"] for each in placed["events"] if each["group"] == "a-web")
    world.ask(OPERATOR, f"POST /v1/events/{mine}/approve")
    check(world)
    refuse(world, f"POST /v1/events/{mine}/cancel", status=403)
    world.service.advance(minutes=30)


def maintenance_deferred_by_another(world: World) -> None:
    declared = write_fleet(world.service.fleet.views.fleet())
    declared["groups"][f"{B}-web"]["policy"] = {"defer": "1h"}
    world.ask(OPERATOR, "PUT /v1/fleet", declared)
    world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", {"action": "freeze"})
    world.service.defer(f"{B}-0", seconds=600)


def emergency(world: World) -> None:
    body = {"action": "reboot", "emergency": WORDS, "notice_seconds": 60}
    world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", body)
    check(world)
    world.service.advance(minutes=30)


def all_at_once(world: World) -> None:
    body = {"action": "freeze", "together": WORDS, "deadline": "2026-01-06T12:00:00Z"}
    world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", body)


def failed_outside(world: World) -> None:
    body = {"action": "redeploy", "driver": "external"}
    placed = world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", body)
    world.service.advance(minutes=16)
    order = placed["order"]["id"]
    world.ask(OPERATOR, f"POST /v1/orders/{order}/fail", {"reason": f"'{B}-0' burns: {WORDS}."})
    check(world)
    world.ask(OPERATOR, f"POST /v1/orders/{order}/abandon")


def held_host(world: World) -> None:
    for body in ({"host": HOSTS[0]}, {"project": "a"}, {}):
        world.ask(OPERATOR, "POST /v1/holds", {"reason": WORDS, **body})
    world.ask(A_USER, "POST /v1/machines/a-0/redeploy")
    refuse(world, "POST /v1/machines/a-0/restart")


def host_hold_on_a_host_order(world: World) -> None:
    world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", {"action": "redeploy"})
    for body in ({"host": HOSTS[0]}, {"project": str(B)}):
        world.ask(OPERATOR, "POST /v1/holds", {"reason": WORDS, **body})


def own_redeploy(world: World) -> None:
    world.ask(A_USER, "POST /v1/machines/a-0/redeploy", {"reason": "mine"})
    check(world)
    world.service.advance(minutes=30)


def eviction(world: World) -> None:
    world.ask(OPERATOR, "POST /v1/machines/a-spot/evict", {"reason": WORDS})
    world.service.advance(minutes=10)


def failed_host(world: World) -> None:
    world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", {"action": "freeze"})
    world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/fail", {"reason": WORDS})
    check(world)
    refuse(world, "POST /v1/machines/a-0/restart")
    world.service.advance(minutes=30)


def moved_and_removed_host(world: World) -> None:
    world.ask(OPERATOR, "PUT /v1/machines/a-1", {"host": HOSTS[3]})
    world.ask(OPERATOR, "PUT /v1/machines/a-1", {"host": HOSTS[1]})
    world.service.apply(fleet_of(hosts=3))


def rehearsal(world: World) -> None:
    body = {"id": "r-1", "scenario": "eviction", "machines": ["a-0"]}
    world.ask(OPERATOR, "PUT /v1/projects/a/rehearsal", body)
    assert world.ask(A_USER, "GET /v1/projects/a/rehearsal")["rehearsal"]["by"] == "operator"
    assert refuse(world, "PUT /v1/projects/a/rehearsal", {**body, "id": "r-2"}).startswith("operator plays")


def rollout_that_is_paused(world: World) -> None:
    begun = world.ask(OPERATOR, "POST /v1/rollouts", {"hosts": [HOSTS[0]], "action": "freeze"})
    check(world)
    world.ask(OPERATOR, f"POST /v1/rollouts/{begun['rollout']['id']}/pause", {"reason": WORDS})


STORIES: list[Callable[[World], None]] = [
    *(host_maintenance, maintenance_deferred_by_another, emergency, failed_outside, held_host),
    all_at_once,
    *(host_hold_on_a_host_order, own_redeploy, eviction, failed_host, moved_and_removed_host),
    *(rehearsal, rollout_that_is_paused),
]


@pytest.mark.parametrize("story", STORIES)
def test_no_answer_names_hosts_operators_or_others(world: World, story: Callable[[World], None]) -> None:
    story(world)
    check(world)
    assert any(SECRET in answer.text for answer in read_by(world, OPERATOR))


class Sent:
    """Records what webhooks receive."""

    def __init__(self, last: int) -> None:
        self.bodies: list[bytes] = []
        self.all = asyncio.Event()
        self._last = last

    async def send(self, webhook: Webhook, record: Record) -> str | None:
        self.bodies.append(cloudevents.event(record, lineage="here"))
        if record.number == self._last:
            self.all.set()
        return None


def pushed(world: World, webhook: Webhook) -> list[bytes]:
    """Return the deliveries of a webhook for all records."""
    service = world.service
    wanted = service.records.page(0, record_filter(webhook), limit=1000)
    sent = Sent(wanted.records[-1].number)

    async def run(job: Callable[[Transaction], Any]) -> Any:
        return service.transact(job)

    async def read(job: Callable[[], Any]) -> Any:
        return job()

    async def push() -> None:
        context = PushContext(
            state=service.deliveries,
            records=service.records,
            run=run,
            read=read,
            delivery=sent,  # type: ignore[arg-type]
            pace=Pace(),
        )
        sender = asyncio.create_task(WebhookSender(replace(webhook, delivered=0), context).forever())
        await sent.all.wait()
        sender.cancel()

    asyncio.run(push())
    return sent.bodies


@pytest.mark.parametrize("owner", [A, None])
def test_a_webhook_receives_only_what_its_owner_may_read(world: World, owner: ProjectName | None) -> None:
    webhooks = world.service.within(owner).webhooks
    webhook = webhooks.add("https://hooks.example/", project=A, kinds=(), secret=None, by="anna")
    host_maintenance(world)
    own_redeploy(world)
    bodies = b"".join(pushed(world, webhook)).decode()
    assert "step-begun" in bodies
    assert (SECRET in bodies) is (owner is None)


@pytest.mark.parametrize(("token", "named"), [("fw_secret-3", False), ("fw_secret-1", True)])
def test_the_stream_names_no_host_from_the_store_nor_from_memory(
    world: World, token: str, named: bool
) -> None:
    host_maintenance(world)
    with serving(app_of(world.service)) as url, Follower(url, "?since=0&project=a", token=token) as follower:
        follower.wait_for(world.service.records.newest())
        own_redeploy_over(url)
        follower.wait_for(world.service.records.newest())
    assert {"machine-added", "step-begun", "step-done"} <= {each["kind"] for each in follower.records}
    assert (SECRET in json.dumps(follower.records)) is named


def own_redeploy_over(url: str) -> None:
    with httpx.Client(base_url=url, headers=A_USER) as client:
        for call in ("machines/a-1/redeploy", "machines/a-0/restart"):
            assert client.post(f"/v1/{call}", json={"now": True}).status_code == 202


def test_the_cache_of_the_stream_follows_a_change_of_visibility(world: World) -> None:
    service, follower = world.service, world.service.within(A).records
    with service.recent.listening(lambda: None):
        service.recent.catch_up()
        start = follower.newest()
        world.ask(OPERATOR, "POST /v1/machines/a-spot/evict")
        # The first request finds out what is disclosed, and later ones use its result.
        assert follower.recent(start, RecordFilter()) is None
        read = follower.page(start, RecordFilter(), limit=100)
        hidden = follower.recent(start, RecordFilter())
        assert hidden == read
        service.apply(fleet_of(sees_hosts=True))
        service.recent.catch_up()
        assert follower.recent(start, RecordFilter()) is None
        seen = follower.page(start, RecordFilter(), limit=100)
    assert {each.by for each in read.records} == {"operator"}
    assert f"{SECRET}-oskar" in {each.by for each in seen.records}


def test_a_project_with_sees_hosts_sees_hosts_and_operators_but_no_other_project(world: World) -> None:
    world.service.apply(fleet_of(sees_hosts=True))
    host_hold = {"reason": f"the disks of {HOSTS[0]}", "host": HOSTS[0]}
    placed = world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", {"action": "redeploy"})
    world.ask(OPERATOR, "POST /v1/holds", host_hold)
    assert world.ask(A_USER, "GET /v1/projects/a")["project"]["sees_hosts"] is True
    assert world.ask(A_USER, "GET /v1/machines/a-0")["machine"]["host"] == HOSTS[0]
    assert len(world.ask(A_USER, f"GET /v1/machines?host={HOSTS[0]}")["machines"]) == 1
    shown = world.ask(A_USER, f"GET /v1/orders/{placed['order']['id']}")["order"]
    assert (shown["host"], shown["by"]) == (HOSTS[0], f"{SECRET}-oskar")
    assert [step["machine"] for step in shown["steps"]] == ["a-0"]
    assert not re.search(rf"{B}\b", json.dumps(shown))


def test_a_host_order_is_shown_as_far_as_it_concerns_the_callers_machines(world: World) -> None:
    placed = world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", {"action": "freeze"})
    order = placed["order"]["id"]
    shown = world.ask(A_USER, f"GET /v1/orders/{order}")
    assert [each["resources"] for each in shown["events"]] == [["a-0"]]
    assert shown["order"]["waiting"][1] == {
        "what": "the platform",
        "reason": "waits for something outside your project",
    }
    others = [each["id"] for each in placed["events"] if each["group"] != "a-web"]
    assert not any(id_ in json.dumps(shown) for id_ in others)
    assert world.ask(A_USER, f"POST /v1/orders/{order}/cancel", status=403)


def test_an_unannounced_host_order_is_hidden_from_projects(world: World) -> None:
    world.ask(OPERATOR, "POST /v1/holds", {"reason": "x"})
    placed = world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", {"action": "freeze"})
    world.ask(A_USER, f"GET /v1/orders/{placed['order']['id']}", status=404)


def test_names_of_own_users_and_guests_stay_visible(world: World) -> None:
    event = world.ask(A_USER, "POST /v1/machines/a-0/restart", {"reason": "by me"})["event"]
    approved = world.ask(A_USER, f"POST /v1/events/{event['id']}/approve")["event"]
    assert [each["by"] for each in approved["approvals"]] == ["anna"]
    other = world.ask(A_USER, "POST /v1/machines/a-1/redeploy")["event"]["id"]
    world.service.approve("a-1", other)
    said = {each["kind"]: each["by"] for each in world.ask(A_VIEWER, "GET /v1/history")["records"]}
    assert said["order-placed"] == "anna"
    assert world.ask(A_VIEWER, f"GET /v1/events/{other}")["event"]["approvals"][0]["by"] == "a-1"


def test_an_answer_does_not_reveal_which_words_are_names_of_hosts(world: World) -> None:
    for word in (HOSTS[3], "nowhere"):
        placed = world.ask(A_USER, "POST /v1/machines/a-0/restart", {"reason": word})
        assert placed["order"]["reason"] == word
        records = world.ask(A_USER, f"GET /v1/history?order={placed['order']['id']}")["records"]
        assert records[-1]["reason"] == f"restart, simulated: {word}"
        world.ask(A_USER, f"POST /v1/orders/{placed['order']['id']}/cancel")
        missing = world.ask(A_USER, f"GET /v1/machines/{word}", status=404)
        assert f'"{word}" does not exist' in missing["error"]["message"]
        assert "may not see hosts" in refuse_host(world, word)


def test_texts_of_operators_are_redacted_for_projects(world: World) -> None:
    body = {"action": "redeploy", "reason": f"new disks: {SPELLINGS}"}
    placed = world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[0]}/maintenance", body)
    show = f"GET /v1/orders/{placed['order']['id']}"
    assert world.ask(OPERATOR, show)["order"]["reason"] == body["reason"]
    assert world.ask(A_USER, show)["order"]["reason"] == "(an operator's reason)"


def refuse_host(world: World, word: str) -> str:
    message: str = world.ask(A_USER, f"GET /v1/machines?host={word}", status=403)["error"]["message"]
    return message
