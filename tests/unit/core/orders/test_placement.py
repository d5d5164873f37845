"""The choice of a host for a machine that moves."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    EXTERNAL,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    MachineId,
    MachineName,
    ServiceMode,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.draft import Draft, RoomNotLoaded
from forewarn.core.model.constraints import Budget
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.host import Host, Room
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import OrderTerms, Stage, Step
from forewarn.core.model.slice import Slice
from forewarn.core.orders import placement
from tests.contract.samples import machine_id, order, stage, step

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
WEB = GroupName("web")
OWN = HostName("own")
MINE = Machine(id=MachineId("1"), name=MachineName("web-0"), project=DEFAULT_PROJECT, group=WEB, host=OWN)


def draft(*, budget: Budget | None = None, domains: int = 3, **rooms: Room) -> Draft:
    """Create hosts with these rooms, and a group with this budget."""
    policy = GroupPolicy(budget=budget.needs if budget else 0)
    web = Group(
        name=WEB, project=DEFAULT_PROJECT, kind=GroupKind.SCALE_SET, update_domains=domains, policy=policy
    )
    base = Slice(
        number=1,
        groups={WEB: web},
        room={HostName(name): room for name, room in rooms.items()},
        budgets={WEB: budget} if budget else {},
    )
    return Draft(base, now=NOW, new_id=lambda: "")


def web(*domains: int, carried: int | None = None, busy: bool = False) -> Room:
    """Return a host with machines of web in these update domains."""
    members = {(WEB, domain): domains.count(domain) for domain in domains}
    return Room(carried=len(domains) if carried is None else carried, members=members, busy=busy)


def chosen(fleet: Draft) -> str | None:
    return placement.choose(fleet, MINE, excluded={OWN})


def test_the_emptiest_host_is_chosen_and_ties_go_by_name() -> None:
    assert chosen(draft(own=Room(), c=Room(carried=2), b=Room(carried=1), a=Room(carried=1))) == "a"


def test_of_equally_full_hosts_the_one_with_fewer_of_the_group_is_chosen() -> None:
    assert chosen(draft(a=web(1, 2), b=web(1, carried=2))) == "b"
    assert chosen(draft(a=web(1, 2), b=web(1, carried=3))) == "a"


def test_a_host_with_an_open_order_is_chosen_last() -> None:
    assert chosen(draft(a=Room(busy=True), b=web(0, 1, 2, carried=9))) == "b"
    assert chosen(draft(a=Room(busy=True))) == "a"


def test_no_host_gets_more_of_an_update_domain_than_the_group_can_spare() -> None:
    spares_one = Budget(needs=5, members=6)
    assert chosen(draft(budget=spares_one, a=web(0), b=web(1, 1, 2))) == "b"
    assert chosen(draft(budget=spares_one, a=web(0), b=web(1, 2, busy=True))) == "b"
    assert chosen(draft(budget=spares_one, a=web(0), b=web(0, 1))) == "a"


def test_machines_that_move_together_stay_together_up_to_a_limit() -> None:
    fleet = draft(a=Room(carried=1), b=Room(), c=Room(carried=1))
    assert [chosen(fleet) for _ in range(6)] == ["b", "b", "b", "b", "a", "a"]


def test_machines_of_groups_with_one_domain_are_spread() -> None:
    fleet = draft(domains=1, a=Room(carried=1), b=Room(), c=Room(carried=1))
    assert [chosen(fleet) for _ in range(4)] == ["b", "a", "c", "b"]


DB, APP = GroupName("db"), GroupName("app")
BESIDE = (
    step("web-0", group=WEB),
    step("db-0", group=DB),
    step("app-0", group=APP),
    step("app-1", group=APP, update_domain=1),
)


def beside(*homes: str, **rooms: Room) -> str | None:
    """Choose for a machine beside one of db, and two of app in different domains."""
    fleet = draft(**rooms)
    fleet.groups |= {
        name: Group(name=name, project=DEFAULT_PROJECT, kind=GroupKind.SCALE_SET, update_domains=3)
        for name in (DB, APP)
    }
    fleet.put_host(Host(name=OWN, labels={"rack": "a"}))
    terms = OrderTerms(homes=tuple(map(HostName, homes)))
    return placement.choose(
        fleet, MINE, excluded={OWN}, order=order(1, stages=(stage(*BESIDE),), terms=terms)
    )


def of(group: GroupName, domain: int, *, carried: int = 3, rack: str = "") -> Room:
    return Room(carried=carried, members={(group, domain): 1}, labels={"rack": rack} if rack else {})


def test_a_host_that_shares_waves_with_the_source_is_better_than_an_emptier_one() -> None:
    unknown = Room(carried=1)
    assert beside(a=unknown, b=of(WEB, 0)) == "b"
    assert beside(a=unknown, b=of(DB, 0)) == "b"
    assert beside(a=unknown, b=Room(carried=3, labels={"rack": "a"})) == "b"
    assert beside(a=unknown, b=Room()) == "b"
    # Groups with several domains, or none, on the source do not count.
    assert beside(a=unknown, b=of(GroupName("other"), 0)) == "a"
    assert beside(a=unknown, b=of(APP, 0)) == "a"


def test_a_host_of_other_waves_is_worse_than_an_unknown_one() -> None:
    assert beside(a=of(DB, 1, carried=1), b=Room(carried=3)) == "b"
    assert beside(a=of(DB, 1, carried=1, rack="a"), b=Room(carried=3)) == "b"
    # Two stages are worse than one more wave.
    assert beside(a=of(WEB, 1, carried=1), b=of(DB, 1)) == "b"
    assert beside(a=Room(labels={"rack": "b"}), b=Room(carried=3, labels={"rack": "a"})) == "b"


def test_a_host_that_is_far_fuller_than_the_source_is_not_chosen_for_its_waves() -> None:
    assert beside(a=of(WEB, 0, carried=15), b=Room(carried=6)) == "a"
    assert beside(a=of(WEB, 0, carried=16), b=Room(carried=6)) == "b"


def test_a_machine_prefers_its_homes() -> None:
    home = Room(carried=90)
    assert beside("b", a=Room(), b=home, c=of(WEB, 0)) == "b"
    assert beside("b", "c", a=Room(), b=home, c=Room(carried=80)) == "c"
    assert beside("b", "c", "d", a=Room(), b=of(WEB, 0), c=Room(carried=3), d=of(DB, 0)) == "c"


def test_a_home_with_an_open_order_or_in_two_waves_is_not_used() -> None:
    assert beside("b", a=Room(), b=Room(busy=True)) == "a"
    assert beside("b", a=Room(), b=of(WEB, 1)) == "a"
    assert beside("b", a=Room(), b=of(DB, 1)) == "a"
    assert beside("b", "own", a=Room(), own=Room()) == "a"


def test_a_home_without_room_or_with_a_crowded_update_domain_is_not_used() -> None:
    asked = order(1, terms=OrderTerms(homes=(HostName("b"),)))
    big = replace(MINE, resources={"vcpus": 4})
    small, crowded = draft(a=Room(carried=3), b=Room(free={"vcpus": 3})), Budget(needs=5, members=6)
    assert placement.choose(small, big, excluded={OWN}, order=asked) == "a"
    full = draft(budget=crowded, a=Room(carried=3), b=web(0))
    assert placement.choose(full, MINE, excluded={OWN}, order=asked) == "a"


def test_capacity_of_a_home_is_reserved() -> None:
    mine = replace(MINE, resources={"vcpus": 4})
    fleet = draft(own=Room(), a=Room(free={"vcpus": 9}), b=Room(carried=9, free={"vcpus": 9}))
    fleet.put_machine(mine)
    leaving = step("web-0", machine=mine.id, moves=True, work=Work.REDEPLOY)
    asked = order(1, stages=(stage(leaving),), terms=OrderTerms(homes=(HostName("b"),)))
    assert placement.machines_without_room(fleet, asked, asked.steps) == ()
    assert placement.reserve_hosts(fleet, asked, asked.steps)[mine.id].target == "b"


def test_a_machine_goes_only_to_hosts_with_its_labels() -> None:
    fleet = draft(a=Room(labels={"gpu": "a100"}), b=Room(carried=9, labels={"gpu": "h100"}), c=Room())
    mine = replace(MINE, labels={"gpu": "h100"})
    assert placement.choose(fleet, mine, excluded={OWN}) == "b"


def test_a_machine_goes_only_to_hosts_with_enough_resources() -> None:
    fleet = draft(a=Room(free={"vcpus": 3}), b=Room(carried=9, free={"vcpus": 8, "memory": 1}))
    mine = replace(MINE, resources={"vcpus": 4, "gpus": 1})
    assert [placement.choose(fleet, mine, excluded={OWN}) for _ in range(3)] == ["b", "b", None]


@pytest.mark.parametrize("state", sorted(HostState))
def test_only_other_sound_hosts_are_chosen(state: HostState) -> None:
    """A host may have been cordoned, or have failed, after its room was loaded."""
    base = draft(own=Room(), other=Room())
    base.put_host(Host(name=HostName("other"), state=state))
    assert chosen(base) == ("other" if state is HostState.OK else None)


def moving(name: str, state: StepState = StepState.WAITING) -> Step:
    return step(name, state, moves=True)


def evacuating(*steps: Step, host_stage: StageState = StageState.QUEUED, **terms: Any) -> dict[str, Any]:
    """Return an order that evacuates a host and works on it."""
    evacuate = replace(stage(*steps), kind=StageKind.EVACUATE)
    host = Stage(state=host_stage, steps=(), kind=StageKind.HOST)
    asked = OrderTerms(mode=ServiceMode.EVACUATE, **terms)
    return {"work": Work.HOST, "machine": None, "host": OWN, "stages": (evacuate, host), "terms": asked}


GONE, NEW = machine_id("web-0"), machine_id("web-1")
DONE, RUNNING, MOOT = StepState.DONE, StepState.RUNNING, StepState.MOOT


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {MINE.id}),  # nothing is planned yet
        ({"stages": (stage(moving("web-0")),)}, {GONE}),
        ({"stages": (stage(moving("web-0", StepState.FAILED)),)}, {GONE}),
        ({"stages": (stage(moving("web-0", RUNNING)),)}, set()),
        # Another machine may arrive, even one that has left before.
        ({"machine": None, "host": OWN, "stages": (stage(moving("web-0", RUNNING)),)}, {NEW}),
        ({"machine": None, "host": OWN, "stages": (stage(moving("web-1", MOOT)),)}, {NEW}),
        ({"driver": EXTERNAL}, set()),
        ({"work": Work.FREEZE}, set()),
        ({"work": None}, set()),
        ({"ended_at": NOW}, set()),
        (evacuating(moving("web-0")), {GONE, NEW}),
        (evacuating(moving("web-0", DONE)), {NEW}),
        # Once the work on it is announced, no machine leaves it; some may return.
        (evacuating(moving("web-0", DONE), host_stage=StageState.ANNOUNCED), set()),
        (evacuating(moving("web-0", DONE), host_stage=StageState.STARTED, returning=True), {GONE}),
    ],
)
def test_an_order_lists_the_machines_that_it_may_still_have_to_place(
    more: dict[str, Any], expected: set[MachineId]
) -> None:
    mine = order(1, **{"work": Work.REDEPLOY, "machine": MINE.id} | more)
    assert placement.machines_to_place(mine, [replace(MINE, id=NEW)]) == expected


@pytest.mark.parametrize(
    ("more", "machine", "expected"),
    [
        (evacuating(), {}, 2),  # the default number of machines that leave a host at once
        (evacuating() | {"driver": EXTERNAL}, {}, 3),
        (evacuating(), {"labels": {"gpu": "a"}}, 3),  # their hosts are reserved from the announcement on
        (evacuating(), {"resources": {"memory": 4}}, 3),
        (evacuating() | {"host": HostName("elsewhere")}, {}, 2),
        ({"work": Work.REDEPLOY, "machine": None, "host": OWN}, {}, 3),
    ],
)
def test_machines_that_leave_in_turns_are_placed_in_turns(
    more: dict[str, Any], machine: dict[str, Any], expected: int
) -> None:
    ids = [machine_id(f"web-{number}") for number in range(3)]
    known = {id_: replace(MINE, id=id_, **machine) for id_ in ids}
    fleet = replace(draft().base, machines=known)
    assert placement.most_placed_at_once(fleet, order(1, **more), ids) == expected
    assert placement.most_placed_at_once(fleet, order(1, **more), ids[:1]) == 1


def test_placement_fails_if_capacity_was_not_loaded() -> None:
    fleet = Draft(replace(draft().base, room=None), now=NOW, new_id=lambda: "")
    with pytest.raises(RoomNotLoaded):
        chosen(fleet)


def test_the_driver_of_the_best_host_is_used() -> None:
    assert placement.driver_of_best_host(draft(), MINE) is None
    assert placement.driver_of_best_host(draft(a=Room(driver="libvirt")), MINE) == "libvirt"
    loaded = draft(a=Room(driver="libvirt"))
    loaded.put_host(Host(name=HostName("a"), driver="external"))
    assert placement.driver_of_best_host(loaded, MINE) == "external"


OFF = replace(MINE, host=None, last_host=HostName("own"))


@pytest.mark.parametrize(
    ("driver", "more", "where"),
    [
        ("libvirt", {}, "own"),  # only this hypervisor defines it
        ("libvirt", {"own": Room(carried=9)}, "own"),
        ("libvirt", {"own": Room(labels={}, carried=0)}, "own"),
        ("simulated", {"own": Room(carried=9)}, "a"),
        ("external", {"own": Room(carried=9)}, "a"),
    ],
)
def test_a_stopped_machine_returns_to_its_host_if_that_is_real(
    driver: str, more: dict[str, Room], where: str
) -> None:
    fleet = draft(a=Room(), **more)
    fleet.put_host(Host(name=HostName("own"), driver=driver))
    assert placement.choose(fleet, OFF, excluded=()) == where
    assert fleet.room[HostName("a")].carried == (where == "a")


def test_a_stopped_machine_goes_elsewhere_if_its_host_cannot_take_it() -> None:
    def placed(host: Host | None, *, but: tuple[HostName, ...] = (), **own: Room) -> HostName | None:
        fleet = draft(a=Room(labels={"gpu": "h100"}), **own)
        if host is not None:
            fleet.put_host(host)
        return placement.choose(fleet, replace(OFF, labels={"gpu": "h100"}), excluded=but)

    real = Host(name=HostName("own"), driver="libvirt")
    assert placed(real) == "own"
    assert placed(None) == "a"  # it has left the fleet
    assert placed(replace(real, state=HostState.CORDONED)) == "a"
    assert placed(real, own=Room()) == "a"
    assert placed(real, but=(real.name,)) == "a"


def test_an_unreachable_host_is_not_chosen() -> None:
    fleet = draft(a=Room(unreachable_since=NOW), b=Room(carried=9))
    assert chosen(fleet) == "b"
    assert chosen(draft(a=Room(unreachable_since=NOW))) is None
