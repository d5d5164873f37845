"""Slices of every store: exactly the values that a decision needs."""

from dataclasses import replace
from typing import Any

import pytest

from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    EventType,
    GroupName,
    HostName,
    HostState,
    MachineName,
    OrderState,
    StageState,
    StepState,
    Work,
)
from forewarn.core.model.constraints import ArmedDomain, Waiting
from forewarn.core.model.event import Resource
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import HostResource, Room
from forewarn.core.model.order import OrderTerms
from forewarn.core.model.slice import Slice
from forewarn.store.reads.capacity import EXTRA_HOSTS
from forewarn.store.store import Store
from tests.contract.samples import (
    NOW,
    event,
    everything,
    group,
    host,
    machine,
    machine_id,
    order,
    order_id,
    save,
    save_fleet,
    stage,
    step,
)


def around(store: Store, **wanted: Any) -> Slice:
    with store.read() as snapshot:
        return snapshot.rules.around(**wanted)


def names(found: Slice) -> list[str]:
    return [each.name for each in found.machines.values()]


@pytest.fixture
def fleet(store: Store) -> Store:
    """Two machines of `web` on host-1, one of `db` on host-2, and one of `web` without a host."""
    save_fleet(
        store,
        [
            machine("web-0"),
            machine("web-1"),
            machine("db-0", group=GroupName("db"), host=host("host-2").name),
            machine("idle", host=None),
        ],
        hosts=["host-1", "host-2", "host-3"],
    )
    save(store, groups=(group("db"),))
    return store


def test_an_empty_request_loads_nothing(fleet: Store) -> None:
    found = around(fleet)
    assert (found.machines, found.hosts, found.groups, found.orders) == ({}, {}, {}, {})
    assert found.number == everything(fleet).number


def test_unknown_ids_are_ignored(fleet: Store) -> None:
    found = around(
        fleet,
        machines=[machine_id("nobody")],
        hosts=[host("nowhere").name],
        groups=[GroupName("none")],
        orders=[order_id(9)],
    )
    assert (found.machines, found.hosts, found.groups, found.orders) == ({}, {}, {}, {})


def test_a_machine_comes_with_its_host_and_group_but_not_its_neighbours(fleet: Store) -> None:
    found = around(fleet, machines=[machine_id("web-0")])
    assert names(found) == ["web-0"]
    assert list(found.hosts) == ["host-1"]
    assert list(found.groups) == ["web"]
    assert list(found.projects) == ["default"]


def test_a_machine_without_a_host_is_loaded(fleet: Store) -> None:
    found = around(fleet, machines=[machine_id("idle")])
    assert (names(found), found.hosts) == (["idle"], {})


def test_a_host_comes_with_its_machines(fleet: Store) -> None:
    found = around(fleet, hosts=[host("host-1").name])
    assert names(found) == ["web-0", "web-1"]
    assert list(found.groups) == ["web"]


def test_a_group_comes_without_its_machines(fleet: Store) -> None:
    found = around(fleet, groups=[GroupName("web")])
    assert list(found.groups) == ["web"]
    assert names(found) == []


def test_an_order_on_a_host_comes_with_the_host_and_the_machines_of_host_and_steps(fleet: Store) -> None:
    on_host = order(1, host=host("host-1").name, stages=(stage(step("web-0"), step("db-0")),))
    save(fleet, orders=(on_host,), events=(event(1), event(2, ended_at=NOW)))
    found = around(fleet, orders=[order_id(1).lower()])
    assert found.orders == {order_id(1): on_host}
    assert names(found) == ["db-0", "web-0", "web-1"]
    assert list(found.hosts) == ["host-1", "host-2"]
    assert list(found.groups) == ["db", "web"]
    assert list(found.events.values()) == [event(1)]


def test_an_order_on_a_machine_comes_with_the_machine_and_its_host(fleet: Store) -> None:
    save(fleet, orders=(order(1, machine=machine_id("db-0")),))
    found = around(fleet, orders=[order_id(1)])
    assert (names(found), list(found.hosts)) == (["db-0"], ["host-2"])


def test_a_past_order_can_be_loaded_by_id(fleet: Store) -> None:
    over = order(1, machine=machine_id("web-0"), ended_at=NOW, state=OrderState.DONE)
    save(fleet, orders=(over,))
    assert around(fleet, orders=[order_id(1)]).orders == {order_id(1): over}
    assert around(fleet, machines=[machine_id("web-0")]).orders == {}


def test_open_orders_that_touch_a_machine_come_with_it(fleet: Store) -> None:
    own = order(1, machine=machine_id("web-0"))
    others = tuple(
        order(number, stages=(stage(step("web-0", state)),))
        for number, state in enumerate(StepState, start=2)
    )
    save(fleet, orders=(own, *others, order(9, machine=machine_id("db-0"))))
    touching = {
        each.steps[0].state for each in others if each.id in around(fleet, machines=[own.machine]).orders
    }
    assert touching == set(StepState) - {StepState.MOOT}
    assert own.id in around(fleet, machines=[own.machine]).orders
    assert order_id(9) not in around(fleet, machines=[own.machine]).orders


def test_an_order_releases_a_machine_at_the_end_of_its_stage(fleet: Store) -> None:
    done = replace(stage(step("web-0", StepState.DONE)), state=StageState.DONE)
    touching = order(1, stages=(stage(step("web-0", StepState.DONE)), stage(step("web-1"))))
    save(fleet, orders=(touching,))
    assert list(around(fleet, machines=[machine_id("web-0")]).orders) == [touching.id]
    save(fleet, orders=(replace(touching, stages=(done, stage(step("web-1")))),))
    assert around(fleet, machines=[machine_id("web-0")]).orders == {}
    assert list(around(fleet, machines=[machine_id("web-1")]).orders) == [touching.id]


def test_an_order_releases_its_machines_at_its_end(fleet: Store) -> None:
    touching = order(1, machine=machine_id("web-0"), stages=(stage(step("web-1")),))
    save(fleet, orders=(touching,))
    save(fleet, orders=(replace(touching, ended_at=NOW),))
    assert around(fleet, machines=[machine_id("web-0"), machine_id("web-1")]).orders == {}


def test_open_orders_on_a_machines_host_come_with_it(fleet: Store) -> None:
    save(fleet, orders=(order(1, host=host("host-1").name), order(2, host=host("host-2").name)))
    assert list(around(fleet, machines=[machine_id("web-0")]).orders) == [order_id(1)]


def test_the_groups_of_events_are_loaded(fleet: Store) -> None:
    save(fleet, orders=(order(1),), events=(event(1, group=GroupName("db")),))
    assert list(around(fleet, orders=[order_id(1)]).groups) == ["db"]


def test_listed_events_are_counted_also_those_of_other_orders(fleet: Store) -> None:
    save(
        fleet,
        events=(
            event(1),
            event(2, order=order_id(7)),
            event(3, update_domain=2),
            event(4, ended_at=NOW),
            event(5, group=GroupName("db")),
        ),
    )
    found = around(fleet, groups=[GroupName("web")])
    assert found.listed == {"web": {0: 2, 2: 1}}
    assert found.events == {}


def test_armed_events_are_counted_apart_and_freezes_with_the_machines_they_name(fleet: Store) -> None:
    freeze = {"type": EventType.FREEZE, "update_domain": 1}
    two = tuple(Resource(machine=machine_id(name), name=MachineName(name)) for name in ("web-0", "web-1"))
    save(
        fleet,
        events=(
            event(1, order=order_id(7)),
            event(2, armed_at=None),
            event(3, resources=two, **freeze),
            event(4, **freeze),
            event(5, armed_at=None, **freeze),
            event(6, type=EventType.SPOT_REBALANCE_RECOMMENDATION, armed_at=None),
            event(7, update_domain=2, armed_at=None),
        ),
    )
    armed = {
        "web": {
            0: ArmedDomain(events=1, order=order_id(7)),
            1: ArmedDomain(events=2, freezes=2, frozen=3, order=order_id(1)),
        }
    }
    assert around(fleet, groups=[GroupName("web")]).armed == armed
    assert everything(fleet).armed == armed
    assert everything(fleet).listed == {"web": {0: 2, 1: 3, 2: 1}}
    with fleet.read() as snapshot:
        assert snapshot.rollouts.survey([host("host-1").name]).armed == armed


def test_room_covers_sound_hosts(fleet: Store) -> None:
    save(fleet, hosts=(host("host-2", state=HostState.CORDONED),))
    with fleet.read() as snapshot:
        found = {"host-3": Room(), "host-1": Room(carried=2, members={(GroupName("web"), 0): 2})}
        assert dict(snapshot.rules.around(hosts=[HostName("host-1")], room=True).room) == found
        assert snapshot.rules.everything().room == found


@pytest.mark.parametrize(
    ("more", "loaded"),
    [
        ({"work": Work.REBOOT}, False),
        ({"work": Work.REDEPLOY}, True),
        ({"work": Work.REDEPLOY, "driver": EXTERNAL}, False),
        ({"work": Work.REDEPLOY, "ended_at": NOW}, False),
        ({"work": Work.REDEPLOY, "stages": (stage(step("web-0", StepState.RUNNING)),)}, False),
        ({"work": Work.REDEPLOY, "stages": (stage(step("web-0", StepState.FAILED, moves=True)),)}, True),
    ],
)
def test_room_comes_with_orders_that_may_move_machines(
    fleet: Store, more: dict[str, Any], loaded: bool
) -> None:
    save(fleet, orders=(order(1, machine=machine_id("web-0"), **more),))
    assert (around(fleet, orders=[order_id(1)]).room is not None) == loaded
    assert around(fleet, orders=[order_id(1)], room=False).room is None


def test_a_host_with_an_order_of_its_own_is_busy(fleet: Store) -> None:
    save(fleet, orders=(order(1, host=HostName("host-2")), order(2, host=HostName("host-3"), ended_at=NOW)))
    with fleet.read() as snapshot:
        assert [name for name, room in (snapshot.rules.everything().room or {}).items() if room.busy] == [
            "host-2"
        ]


def test_a_moving_machine_counts_on_its_target(fleet: Store) -> None:
    known = {machine.name: machine for machine in everything(fleet).machines.values()}
    save(fleet, machines=(replace(known["web-0"], bound_for=HostName("host-3")),))
    with fleet.read() as snapshot:
        room = snapshot.rules.around(machines=[known["web-0"].id], room=True).room or {}
        assert (room[HostName("host-1")].carried, room[HostName("host-3")].carried) == (1, 1)
        assert room[HostName("host-3")].members == {(GroupName("web"), 0): 1}


def test_room_has_no_more_hosts_than_needed(fleet: Store) -> None:
    save(fleet, hosts=tuple(host(f"empty-{number:03}") for number in range(2 * EXTRA_HOSTS)))
    with fleet.read() as snapshot:
        assert len(snapshot.rules.around(room=True).room or ()) == EXTRA_HOSTS


@pytest.mark.parametrize(("spare", "further"), [(0, []), (1, ["fuller-0", "fuller-1"]), (2, [])])
def test_room_has_more_hosts_if_the_emptiest_carry_too_much_of_a_group(
    store: Store, spare: int, further: list[str]
) -> None:
    """Each of the emptiest has one machine of update domain 0: too many if the group can spare only one."""
    emptiest = [f"host-{number:02}" for number in range(2 * EXTRA_HOSTS)]
    fuller = ["fuller-0", "fuller-1", "fuller-2"]
    members = [machine(name, host=HostName(name)) for name in emptiest]
    for name in fuller:
        members += [machine(f"{name}{place}", host=HostName(name), update_domain=1) for place in "ab"]
    save_fleet(store, members, hosts=[*emptiest, *fuller])
    web = group(policy=GroupPolicy(budget=len(members) - spare))
    save(store, groups=(web,), hosts=(host("fuller-2", state=HostState.CORDONED),))
    with store.read() as snapshot:
        room = snapshot.rules.around(machines=[machine_id("host-00")], room=True).room or {}
        assert list(room) == [*emptiest[: EXTRA_HOSTS + 2], *further]
        assert [room[HostName(name)].members for name in further] == [{(web.name, 1): 2} for _ in further]


def test_room_follows_moved_added_and_removed_machines(fleet: Store) -> None:
    known = {machine.name: machine for machine in everything(fleet).machines.values()}
    save(fleet, machines=(replace(known["web-0"], host=HostName("host-3")),))
    save(fleet, removed_machines=(known["web-1"].id,))
    with fleet.read() as snapshot:
        seen = snapshot.rules.around(hosts=list(snapshot.rules.everything().hosts), room=True).room
        assert seen == snapshot.rules.everything().room


def test_everything_is_the_fleet_the_open_orders_and_the_listed_events(fleet: Store) -> None:
    waiting = order(1, waiting=(Waiting(what="stage 1", reason="db", group=GroupName("db")),))
    save(
        fleet,
        orders=(waiting, order(2, ended_at=NOW)),
        events=(event(1), event(2, ended_at=NOW)),
    )
    found = everything(fleet)
    assert names(found) == ["db-0", "idle", "web-0", "web-1"]
    assert list(found.hosts) == ["host-1", "host-2", "host-3"]
    assert list(found.groups) == ["db", "web"]
    assert list(found.projects) == ["default"]
    assert list(found.orders.values()) == [waiting]
    assert list(found.events.values()) == [event(1)]
    assert found.listed == {"web": {0: 1}}


def test_more_ids_can_be_named_than_one_statement_takes(fleet: Store) -> None:
    many = [machine_id(f"{number}") for number in range(40_000)]
    assert names(around(fleet, machines=[*many, machine_id("web-0")])) == ["web-0"]


def test_room_includes_hosts_in_waves_with_the_source(store: Store) -> None:
    """Of many empty hosts, some are in the same rack, and some in the same update domain."""
    empty = [f"empty-{number:02}" for number in range(2 * EXTRA_HOSTS)]
    members = [machine("web-0", host=HostName("own"), update_domain=1)]
    members += [
        machine(f"{name}{place}", host=HostName(name)) for name in ("rack", "other") for place in "ab"
    ]
    members += [machine(f"like{place}", host=HostName("like"), update_domain=1) for place in "abc"]
    save_fleet(store, members, hosts=[*empty, "own", "rack", "other", "like"])
    in_rack = {"labels": {"rack": "a"}}
    metal = host("metal", bare_metal=True, **in_rack)
    save(store, hosts=(host("own", **in_rack), host("rack", **in_rack), metal))
    with store.read() as snapshot:
        room = snapshot.rules.around(hosts=[HostName("own")], room=True).room or {}
    assert {name for name in room if not name.startswith("empty")} == {"own", "rack", "like"}
    assert (room[HostName("rack")].rack, room[HostName("rack")].carried) == ("a", 2)


def test_room_includes_homes_of_orders_and_requested_homes(store: Store) -> None:
    empty = [f"empty-{number:02}" for number in range(EXTRA_HOSTS + 8)]
    full = [machine(f"{name}-{number}", host=HostName(name)) for name in HOMES for number in range(2)]
    away = host("cordoned", state=HostState.CORDONED)
    homes = (*HOMES, away.name)
    moving = order(
        1, host=HostName("own"), work=Work.REDEPLOY, action=Action.MAINTENANCE, terms=OrderTerms(homes=homes)
    )
    save_fleet(store, full, hosts=["own", *sorted(HOMES), *empty])
    mine = machine("own-0", host=HostName("own"), update_domain=1)
    save(store, hosts=(away,), orders=(moving,), machines=(mine,))
    for wanted in ({"orders": [moving.id]}, {"orders": [moving.id], "room": True}):
        assert found_homes(around(store, **wanted)) == HOMES
    named = {"hosts": [HostName("own")], "room": True}
    assert found_homes(around(store, **named)) == set()
    assert found_homes(around(store, **named, homes=homes)) == HOMES


def test_the_target_of_a_move_comes_with_its_room(store: Store) -> None:
    empty = [f"empty-{number:02}" for number in range(EXTRA_HOSTS + 8)]
    full = [machine(f"{name}-{number}", host=HostName(name)) for name in HOMES for number in range(2)]
    away = host("cordoned", state=HostState.CORDONED)
    to = min(HOMES)
    mine = machine("own-0", host=HostName("own"), update_domain=1)
    moving = order(
        1,
        machine=mine.id,
        work=Work.FREEZE,
        action=Action.MOVE,
        driver="simulated",
        stages=(),
        terms=OrderTerms(to=to),
    )
    save_fleet(store, full, hosts=["own", *sorted(HOMES), *empty])
    save(store, hosts=(away,), orders=(moving,), machines=(mine,))
    part = around(store, orders=[moving.id])
    assert (to in part.hosts, found_homes(part)) == (True, {to})
    asked = around(store, machines=[mine.id], room=True, targets=[away.name, to, HostName("no-host")])
    assert {away.name, to} <= asked.hosts.keys()
    assert HostName("no-host") not in asked.hosts
    assert found_homes(asked) == {to}
    assert away.name not in (asked.room or {})


HOMES = {HostName("home-1"), HostName("home-2")}


def found_homes(part: Slice) -> set[HostName]:
    return {name for name in part.room or () if not name.startswith(("own", "empty"))}


def test_room_has_the_free_resources_of_hosts(fleet: Store) -> None:
    """A moving machine counts on its target, and until its arrival also on its source."""
    known = {machine.name: machine for machine in everything(fleet).machines.values()}
    capacity = {"vcpus": HostResource(amount=8, ratio=2.0), "gpus": HostResource(amount=1)}
    save(
        fleet,
        hosts=(host("host-1", resources=capacity), host("host-3", resources=capacity)),
        machines=(
            replace(known["web-0"], bound_for=HostName("host-3"), resources={"vcpus": 4, "disk": 1}),
            replace(known["web-1"], resources={"vcpus": 1.5}),
        ),
    )
    with fleet.read() as snapshot:
        room = snapshot.rules.around(hosts=[HostName("host-1")], room=True).room or {}
    assert room[HostName("host-1")].free == {"vcpus": 10.5, "gpus": 1}
    assert room[HostName("host-3")].free == {"vcpus": 12, "gpus": 1}
    assert room[HostName("host-2")].free == {}
