"""Where a machine goes that moves."""

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
    """Hosts with this room, and a group that needs what the budget says."""
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
    """A host with machines of web in these update domains."""
    members = {(WEB, domain): domains.count(domain) for domain in domains}
    return Room(carried=len(domains) if carried is None else carried, members=members, busy=busy)


def chosen(fleet: Draft) -> str | None:
    return placement.choose(fleet, MINE, but={OWN})


def test_the_emptiest_host_is_chosen_and_ties_go_by_name() -> None:
    assert chosen(draft(own=Room(), c=Room(carried=2), b=Room(carried=1), a=Room(carried=1))) == "a"


def test_of_hosts_that_are_as_full_one_with_fewer_of_its_group_is_better() -> None:
    assert chosen(draft(a=web(1, 2), b=web(1, carried=2))) == "b"
    assert chosen(draft(a=web(1, 2), b=web(1, carried=3))) == "a"


def test_a_host_that_is_worked_on_is_only_chosen_if_there_is_no_other() -> None:
    assert chosen(draft(a=Room(busy=True), b=web(0, 1, 2, carried=9))) == "b"
    assert chosen(draft(a=Room(busy=True))) == "a"


def test_no_host_gets_more_of_an_update_domain_than_the_group_can_spare() -> None:
    spares_one = Budget(needs=5, members=6)
    assert chosen(draft(budget=spares_one, a=web(0), b=web(1, 1, 2))) == "b"
    assert chosen(draft(budget=spares_one, a=web(0), b=web(1, 2, busy=True))) == "b"
    assert chosen(draft(budget=spares_one, a=web(0), b=web(0, 1))) == "a"


def test_those_that_move_together_stay_together_until_that_is_enough() -> None:
    fleet = draft(a=Room(carried=1), b=Room(), c=Room(carried=1))
    assert [chosen(fleet) for _ in range(6)] == ["b", "b", "b", "b", "a", "a"]


def test_machines_whose_groups_have_one_domain_are_kept_apart() -> None:
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
    """Choose for a machine that stands beside one of db, and two of app in different domains."""
    fleet = draft(**rooms)
    fleet.groups |= {
        name: Group(name=name, project=DEFAULT_PROJECT, kind=GroupKind.SCALE_SET, update_domains=3)
        for name in (DB, APP)
    }
    fleet.put_host(Host(name=OWN, labels={"rack": "a"}))
    terms = OrderTerms(homes=tuple(map(HostName, homes)))
    return placement.choose(fleet, MINE, but={OWN}, order=order(1, stages=(stage(*BESIDE),), terms=terms))


def of(group: GroupName, domain: int, *, carried: int = 3, rack: str = "") -> Room:
    return Room(carried=carried, members={(group, domain): 1}, labels={"rack": rack} if rack else {})


def test_a_host_that_is_in_waves_with_the_source_is_better_than_an_emptier_one() -> None:
    unknown = Room(carried=1)
    assert beside(a=unknown, b=of(WEB, 0)) == "b"
    assert beside(a=unknown, b=of(DB, 0)) == "b"
    assert beside(a=unknown, b=Room(carried=3, labels={"rack": "a"})) == "b"
    assert beside(a=unknown, b=Room()) == "b"
    # What the source has several domains of says nothing, nor what it has none of.
    assert beside(a=unknown, b=of(GroupName("other"), 0)) == "a"
    assert beside(a=unknown, b=of(APP, 0)) == "a"


def test_a_host_of_other_waves_is_worse_than_one_of_which_nothing_is_known() -> None:
    assert beside(a=of(DB, 1, carried=1), b=Room(carried=3)) == "b"
    assert beside(a=of(DB, 1, carried=1, rack="a"), b=Room(carried=3)) == "b"
    # Two stages are worse than one wave more.
    assert beside(a=of(WEB, 1, carried=1), b=of(DB, 1)) == "b"
    assert beside(a=Room(labels={"rack": "b"}), b=Room(carried=3, labels={"rack": "a"})) == "b"


def test_a_host_that_carries_far_more_than_the_source_is_not_chosen_for_its_waves() -> None:
    assert beside(a=of(WEB, 0, carried=15), b=Room(carried=6)) == "a"
    assert beside(a=of(WEB, 0, carried=16), b=Room(carried=6)) == "b"


def test_a_machine_goes_to_a_home_whatever_else_is_emptier_or_in_waves_with_the_source() -> None:
    home = Room(carried=90)
    assert beside("b", a=Room(), b=home, c=of(WEB, 0)) == "b"
    assert beside("b", "c", a=Room(), b=home, c=Room(carried=80)) == "c"
    assert beside("b", "c", "d", a=Room(), b=of(WEB, 0), c=Room(carried=3), d=of(DB, 0)) == "c"


def test_a_home_that_is_worked_on_or_would_be_in_two_waves_is_none() -> None:
    assert beside("b", a=Room(), b=Room(busy=True)) == "a"
    assert beside("b", a=Room(), b=of(WEB, 1)) == "a"
    assert beside("b", a=Room(), b=of(DB, 1)) == "a"
    assert beside("b", "own", a=Room(), own=Room()) == "a"


def test_a_home_without_room_or_of_too_much_of_an_update_domain_is_none() -> None:
    asked = order(1, terms=OrderTerms(homes=(HostName("b"),)))
    big = replace(MINE, resources={"vcpus": 4})
    small, crowded = draft(a=Room(carried=3), b=Room(free={"vcpus": 3})), Budget(needs=5, members=6)
    assert placement.choose(small, big, but={OWN}, order=asked) == "a"
    full = draft(budget=crowded, a=Room(carried=3), b=web(0))
    assert placement.choose(full, MINE, but={OWN}, order=asked) == "a"


def test_room_at_a_home_is_reserved() -> None:
    mine = replace(MINE, resources={"vcpus": 4})
    fleet = draft(own=Room(), a=Room(free={"vcpus": 9}), b=Room(carried=9, free={"vcpus": 9}))
    fleet.put_machine(mine)
    leaving = step("web-0", machine=mine.id, moves=True, work=Work.REDEPLOY)
    asked = order(1, stages=(stage(leaving),), terms=OrderTerms(homes=(HostName("b"),)))
    assert placement.without_room(fleet, asked, asked.steps) == ()
    assert placement.reserved(fleet, asked, asked.steps)[mine.id].target == "b"


def test_a_machine_goes_only_where_its_labels_are() -> None:
    fleet = draft(a=Room(labels={"gpu": "a100"}), b=Room(carried=9, labels={"gpu": "h100"}), c=Room())
    mine = replace(MINE, labels={"gpu": "h100"})
    assert placement.choose(fleet, mine, but={OWN}) == "b"


def test_a_machine_goes_only_where_there_is_as_much_as_it_takes() -> None:
    fleet = draft(a=Room(free={"vcpus": 3}), b=Room(carried=9, free={"vcpus": 8, "memory": 1}))
    mine = replace(MINE, resources={"vcpus": 4, "gpus": 1})
    assert [placement.choose(fleet, mine, but={OWN}) for _ in range(3)] == ["b", "b", None]


@pytest.mark.parametrize("state", sorted(HostState))
def test_neither_its_own_host_nor_one_that_is_not_sound_is_chosen(state: HostState) -> None:
    """A host may have been cordoned, or have failed, after its room was counted."""
    base = draft(own=Room(), other=Room())
    base.put_host(Host(name=HostName("other"), state=state))
    assert chosen(base) == ("other" if state is HostState.OK else None)


def moving(name: str, state: StepState = StepState.WAITING) -> Step:
    return step(name, state, moves=True)


def evacuating(*steps: Step, host_stage: StageState = StageState.QUEUED, **terms: Any) -> dict[str, Any]:
    """An order that empties a host, and then works on it."""
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
        # Another machine may come to a host, also one that it has been told to leave before.
        ({"machine": None, "host": OWN, "stages": (stage(moving("web-0", RUNNING)),)}, {NEW}),
        ({"machine": None, "host": OWN, "stages": (stage(moving("web-1", MOOT)),)}, {NEW}),
        ({"driver": EXTERNAL}, set()),
        ({"work": Work.FREEZE}, set()),
        ({"work": None}, set()),
        ({"ended_at": NOW}, set()),
        (evacuating(moving("web-0")), {GONE, NEW}),
        (evacuating(moving("web-0", DONE)), {NEW}),
        # Nobody leaves it any more once the work on it is announced; some may come back.
        (evacuating(moving("web-0", DONE), host_stage=StageState.ANNOUNCED), set()),
        (evacuating(moving("web-0", DONE), host_stage=StageState.STARTED, returning=True), {GONE}),
    ],
)
def test_orders_say_which_machines_they_may_yet_have_to_place(
    more: dict[str, Any], expected: set[MachineId]
) -> None:
    mine = order(1, **{"work": Work.REDEPLOY, "machine": MINE.id} | more)
    assert placement.machines_to_place(mine, [replace(MINE, id=NEW)]) == expected


@pytest.mark.parametrize(
    ("more", "machine", "expected"),
    [
        (evacuating(), {}, 2),  # as many as leave a host at once, if it does not say
        (evacuating() | {"driver": EXTERNAL}, {}, 3),
        (evacuating(), {"labels": {"gpu": "a"}}, 3),  # they have their places from the announcement on
        (evacuating(), {"resources": {"memory": 4}}, 3),
        (evacuating() | {"host": HostName("elsewhere")}, {}, 2),
        ({"work": Work.REDEPLOY, "machine": None, "host": OWN}, {}, 3),
    ],
)
def test_machines_that_leave_a_host_in_turns_are_placed_in_turns(
    more: dict[str, Any], machine: dict[str, Any], expected: int
) -> None:
    ids = [machine_id(f"web-{number}") for number in range(3)]
    known = {id_: replace(MINE, id=id_, **machine) for id_ in ids}
    fleet = replace(draft().base, machines=known)
    assert placement.most_placed_at_once(fleet, order(1, **more), ids) == expected
    assert placement.most_placed_at_once(fleet, order(1, **more), ids[:1]) == 1


def test_nothing_is_placed_where_the_room_was_not_loaded() -> None:
    fleet = Draft(replace(draft().base, room=None), now=NOW, new_id=lambda: "")
    with pytest.raises(RoomNotLoaded):
        chosen(fleet)


def test_the_driver_where_a_machine_would_go_is_that_of_the_host() -> None:
    assert placement.driver_where_chosen(draft(), MINE) is None
    assert placement.driver_where_chosen(draft(a=Room(driver="libvirt")), MINE) == "libvirt"
    loaded = draft(a=Room(driver="libvirt"))
    loaded.put_host(Host(name=HostName("a"), driver="external"))
    assert placement.driver_where_chosen(loaded, MINE) == "external"


OFF = replace(MINE, host=None, last_host=HostName("own"))


@pytest.mark.parametrize(
    ("driver", "more", "where"),
    [
        ("libvirt", {}, "own"),  # its hypervisor has it there, and nowhere else
        ("libvirt", {"own": Room(carried=9)}, "own"),
        ("libvirt", {"own": Room(labels={}, carried=0)}, "own"),
        ("simulated", {"own": Room(carried=9)}, "a"),
        ("external", {"own": Room(carried=9)}, "a"),
    ],
)
def test_a_machine_that_was_off_comes_back_to_its_host_where_that_is_real(
    driver: str, more: dict[str, Room], where: str
) -> None:
    fleet = draft(a=Room(), **more)
    fleet.put_host(Host(name=HostName("own"), driver=driver))
    assert placement.choose(fleet, OFF, but=()) == where
    assert fleet.room[HostName("a")].carried == (where == "a")


def test_it_goes_elsewhere_where_its_host_cannot_take_it() -> None:
    def placed(host: Host | None, *, but: tuple[HostName, ...] = (), **own: Room) -> HostName | None:
        fleet = draft(a=Room(labels={"gpu": "h100"}), **own)
        if host is not None:
            fleet.put_host(host)
        return placement.choose(fleet, replace(OFF, labels={"gpu": "h100"}), but=but)

    real = Host(name=HostName("own"), driver="libvirt")
    assert placed(real) == "own"
    assert placed(None) == "a"  # it is not in the fleet any more
    assert placed(replace(real, state=HostState.CORDONED)) == "a"
    assert placed(real, own=Room()) == "a"
    assert placed(real, but=(real.name,)) == "a"


def test_a_host_that_cannot_be_reached_is_not_chosen() -> None:
    fleet = draft(a=Room(unreachable_since=NOW), b=Room(carried=9))
    assert chosen(fleet) == "b"
    assert chosen(draft(a=Room(unreachable_since=NOW))) is None
