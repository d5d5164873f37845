"""Random histories: users of a project read no foreign names and no texts of operators."""

import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import time, timedelta
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from forewarn.control.driver import Done, Failed, Running, Unknown
from forewarn.core.access import Grant, Role
from forewarn.core.basic_types import GroupKind, GroupName, HostName, Priority, ProjectName
from forewarn.core.model.declaration import FleetSpec, GroupSpec, HostSpec
from forewarn.core.model.project import Calendar, Project, Window
from forewarn.core.policy import Policy
from forewarn.server.threads.lane_queues import LaneQueues
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.counts import tries
from tests.helpers.service.harness import SIMULATION, Service, machine
from tests.helpers.service.scripted_driver import ScriptedDriver, make_calls
from tests.helpers.service.served import Api, app_of
from tests.helpers.service.tenants import bearer

MINE, THEIRS = ProjectName("shop"), ProjectName("narwhal")
# Plain words as names of machines. No message of forewarn contains them.
HOSTS = [HostName(name) for name in ("walrus", "ocelot", "pangolin", "kvm-9")]
OTHERS = ("quagga", "zorilla", "okapi", "db-7")  # machines, then a group
PEOPLE = ("olaf", "bert")
SENTINEL = "marmalade"
ACME = "acme-libvirt"
# The windows do not overlap: a host of both projects is always outside one of them.
OPEN = {MINE: 14, THEIRS: 16}
OPERATOR, USER, OTHER_USER = (bearer(f"fw_secret-{number}") for number in (1, 2, 3))

Act = Callable[["World", int], None]


def calendar(project: ProjectName, *, length: int) -> Calendar:
    window = Window(days=frozenset(range(7)), start=time(OPEN[project]), length=timedelta(hours=length))
    return Calendar(windows=(window,))


def fleet_of(places: list[int], *, sees_hosts: bool, driven: bool = False, hours: int = 0) -> FleetSpec:
    """Declare a fleet. If it is driven, its windows are closed."""
    names = [("web-0", "web", MINE), ("web-1", "web", MINE), ("cart", None, MINE)]
    names += [("quagga", "okapi", THEIRS), ("zorilla", "okapi", THEIRS), ("db-7", None, THEIRS)]
    kind = GroupKind.AVAILABILITY_SET
    return FleetSpec(
        projects=tuple(
            Project(
                name=name,
                sees_hosts=sees_hosts and name == MINE,
                calendar=calendar(name, length=hours) if hours else Calendar(),
            )
            for name in (MINE, THEIRS)
        ),
        defaults=replace(SIMULATION, driver=ACME) if driven else SIMULATION,
        hosts=tuple(HostSpec(name=name) for name in HOSTS),
        groups=(
            GroupSpec(name=GroupName("web"), kind=kind, update_domains=2, project=MINE),
            GroupSpec(name=GroupName("okapi"), kind=kind, update_domains=2, project=THEIRS),
        ),
        machines=tuple(
            machine(
                name,
                HOSTS[place],
                group=group,
                project=project,
                domain=number % 2 if group else 0,
                priority=Priority.REGULAR if group else Priority.SPOT,
            )
            for number, ((name, group, project), place) in enumerate(zip(names, places, strict=True))
        ),
    )


class World:
    """A service with two projects, and the actions of the test."""

    def __init__(
        self, folder: Path, places: list[int], *, sees_hosts: bool, driven: bool = False, hours: int = 0
    ) -> None:
        self.sees_hosts = sees_hosts
        mine = frozenset({ACME})
        driving = Policy(prechecking=mine, working_on_hosts=mine, cordoning=mine)
        self.service = Service(sqlite_url(folder), policy=driving if driven else None)
        self.driver = self.service.more_drivers[ACME] = ScriptedDriver()
        self.service.wire(self.service.store)
        self.service.apply(fleet_of(places, sees_hosts=sees_hosts, driven=driven, hours=hours))
        for grant in (
            Grant(name=PEOPLE[0], role=Role.OPERATOR),
            Grant(name="anna", role=Role.USER, project=MINE),
            Grant(name=PEOPLE[1], role=Role.USER, project=THEIRS),
        ):
            self.service.tokens.create(grant, by=PEOPLE[0])
        for name in ("web-0", "web-1", "cart", "quagga", "zorilla", "db-7"):
            self.service.poll(name)
        self.api = Api(app_of(self.service))
        self.hidden = [*OTHERS, THEIRS, SENTINEL, PEOPLE[1], ACME]
        self.hidden += [] if sees_hosts else [*HOSTS, PEOPLE[0]]

    def ask(self, who: dict[str, str], call: str, body: Any = None) -> Any:
        method, path = call.split()
        answer = self.api(method, path, json=body, headers=who)
        if "have no window in common" not in answer.text:
            assert answer.status_code not in (400, 500), f"{call}: {answer.text}"
        if who is USER:
            self.check(f"{call}: {answer.text}")
        return answer.json() if "json" in answer.headers.get("content-type", "") else None

    def check(self, text: str) -> None:
        found = [name for name in self.hidden if re.search(rf"(?i)\b{name}\b", text)]
        assert not found, f"{found} in {text}"

    def read(self) -> None:
        """Read all texts that users of the project can read."""
        for path in ("machines", "groups", "projects", "orders", "events?all=true", "history?limit=1000"):
            self.ask(USER, f"GET /v1/{path}")
        for path in ("calendar.ics", "summary", "promises"):
            self.ask(USER, f"GET /v1/{path}")
        for record in self.service.history(project=MINE):
            if record.kind == "event-scheduled":
                self.ask(USER, f"GET /v1/events/{record.event}")
        for order in {each.order for each in self.service.history(project=MINE) if each.order}:
            self.ask(USER, f"GET /v1/orders/{order}")

    def listed(self, what: str) -> list[Any]:
        found: list[Any] = self.ask(OPERATOR, f"GET /v1/{what}")[what.partition("?")[0]]
        return found


def words(number: int) -> str:
    """A text of an operator: with a sentinel, and perhaps with a name."""
    return f"{SENTINEL} of {(*OTHERS, *HOSTS)[number % (len(OTHERS) + len(HOSTS))]}, {SENTINEL}"


def maintain(world: World, number: int) -> None:
    actions = ("freeze", "reboot", "redeploy")
    terms: tuple[dict[str, Any], ...] = (
        {},
        {"emergency": words(number), "notice_seconds": 60},
        {"together": words(number)},
    )
    body = {"action": actions[number % 3], "reason": words(number), **terms[number // 3 % 3]}
    if number % 2:
        body["driver"] = "external"
    world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[number % 4]}/maintenance", body)


def work_on_host(world: World, number: int) -> None:
    calls = ("service", "degrade", "fail", "restore", "cordon", "uncordon")
    body = {"reason": words(number), **({"fenced": words(number)} if number % 6 == 2 else {})}
    world.ask(OPERATOR, f"POST /v1/hosts/{HOSTS[number % 4]}/{calls[number % 6]}", body)


def hold(world: World, number: int) -> None:
    reach = ({}, {"host": HOSTS[number % 4]}, {"project": THEIRS}, {"project": MINE})[number % 4]
    world.ask(OPERATOR, "POST /v1/holds", {"reason": words(number), "abort": number % 5 == 0, **reach})


def release(world: World, number: int) -> None:
    for each in world.listed("holds")[: number % 3]:
        world.ask(OPERATOR, f"DELETE /v1/holds/{each['id']}")


def order_own(world: World, number: int) -> None:
    name, action = ("web-0", "web-1", "cart")[number % 3], ("restart", "redeploy")[number % 2]
    world.ask(USER, f"POST /v1/machines/{name}/{action}", {"reason": "mine"})


def order_others(world: World, number: int) -> None:
    name, action = ("quagga", "zorilla", "db-7")[number % 3], ("restart", "redeploy")[number % 2]
    world.ask(OTHER_USER, f"POST /v1/machines/{name}/{action}", {"reason": words(number)})


def evict(world: World, number: int) -> None:
    name = ("cart", "db-7")[number % 2]
    world.ask(OPERATOR, f"POST /v1/machines/{name}/evict", {"reason": words(number)})


def interfere(world: World, number: int) -> None:
    orders = world.listed("orders?open=true")
    if orders:
        verb = ("fail", "abandon", "retry", "cancel", "complete")[number % 5]
        body = {"reason": words(number)} if verb == "fail" else None
        order = orders[number % len(orders)]["id"]
        world.ask(USER, f"POST /v1/orders/{order}/{verb}", {"reason": "x"} if verb == "fail" else None)
        world.ask(OPERATOR, f"POST /v1/orders/{order}/{verb}", body)


def approve(world: World, number: int) -> None:
    events = world.listed("events")
    if events:
        event = events[number % len(events)]["id"]
        world.ask((USER, OPERATOR)[number % 2], f"POST /v1/events/{event}/approve")


def roll(world: World, number: int) -> None:
    rollouts = world.listed("rollouts")
    if rollouts and number % 3:
        verb = ("pause", "resume", "abort")[number % 3]
        body = None if verb == "resume" else {"reason": words(number)}
        world.ask(OPERATOR, f"POST /v1/rollouts/{rollouts[0]['id']}/{verb}", body)
    else:
        body = {"hosts": "all", "action": ("freeze", "redeploy")[number % 2], "reason": words(number)}
        world.ask(OPERATOR, "POST /v1/rollouts", body)


def move(world: World, number: int) -> None:
    name = ("web-0", "quagga")[number % 2]
    world.ask(OPERATOR, f"PUT /v1/machines/{name}", {"host": HOSTS[number % 4]})


def rename(world: World, number: int) -> None:
    """Remove a machine of the other project. Its name stays in old texts."""
    world.ask(OPERATOR, "DELETE /v1/machines/db-7?project=narwhal")


def wait(world: World, number: int) -> None:
    world.service.advance(minutes=(1, 16, 45)[number % 3])


def drive(world: World, number: int) -> None:
    """Let the driver answer its calls. It may break, hang, refuse or fail."""
    driver, word = world.driver, words(number)
    driver.begins = [(Running(None), Done(), Failed(word), Unknown(word), OSError(word))[number % 5]]
    driver.checks = [(Done(), Running(None), Failed(word), Unknown(word))[number // 5 % 4]]
    refusals = (None, word, Unknown(word))
    said = refusals[number // 20 % 3]
    driver.refusing = {} if said is None else dict.fromkeys(HOSTS, said)
    if number % 7 == 6:
        hang(world)
    else:
        make_calls(world.service, driver, seconds=60)


def hang(world: World) -> None:
    """Let the calls of the driver time out."""
    queues = LaneQueues(lambda _: ScriptedDriver.limits)
    for call in world.service.calls.waiting:
        queues.add(call, now=0.0)
    while queues.next(0.0) is not None:
        pass
    queues.pass_time(3600.0)
    world.service.calls.waiting.clear()
    world.service.engine.take_answers(queues.take_answers())
    world.service.tick()


ACTS: list[Act] = [
    *(maintain, maintain, work_on_host, hold, release, order_own, order_others, evict, interfere),
    *(approve, roll, move, rename, drive, drive, wait, wait),
]


@settings(max_examples=tries(6, long=300))
@given(
    places=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    acts=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 59)), min_size=4, max_size=12),
    sees_hosts=st.booleans(),
    driven=st.booleans(),
    hours=st.sampled_from([0, 2, 4]),
)
# A tenant's own redeploy without an answer to its precheck. Then it hangs, and breaks.
@example([0] * 6, [(order_own, 1), (drive, 6), (drive, 4), (drive, 20)], False, True, 0)
# Work on a host whose driver does not cordon it.
@example([0] * 6, [(work_on_host, 0), (drive, 7), (drive, 2), (wait, 1)], True, True, 0)
# Windows that do not overlap, and windows that do.
@example([0] * 6, [(maintain, 1), (wait, 1), (roll, 0)], False, False, 2)
@example([0] * 6, [(maintain, 1), (wait, 1), (roll, 0)], True, False, 4)
@example([0] * 6, [(order_own, 0), (interfere, 1), (interfere, 4)], False, True, 0)
def test_no_text_for_a_project_names_others_or_contains_an_operators_text(
    places: list[int], acts: list[tuple[Act, int]], sees_hosts: bool, driven: bool, hours: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), places, sees_hosts=sees_hosts, driven=driven, hours=hours)
        try:
            for done, (act, number) in enumerate(acts):
                act(world, number)
                if driven or done % 4 == 3:
                    world.read()
            world.read()
            assert SENTINEL not in json.dumps(world.ask(USER, "GET /v1/orders"))
        finally:
            world.service.close()
