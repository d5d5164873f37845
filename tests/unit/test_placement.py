"""Where a machine goes that moves."""

from datetime import UTC, datetime
from typing import Any

import pytest

from forewarn.core.draft import Draft
from forewarn.core.model.budget import Budget
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.room import Room
from forewarn.core.model.slice import Slice
from forewarn.core.orders import placement
from forewarn.core.words import (
    DEFAULT_PROJECT,
    EXTERNAL,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    MachineId,
    MachineName,
    StepState,
    Work,
)
from tests.contract.samples import order, stage, step

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
WEB = GroupName("web")
OWN = HostName("own")
MINE = Machine(id=MachineId("1"), name=MachineName("web-0"), project=DEFAULT_PROJECT, group=WEB, host=OWN)


def draft(*, budget: Budget | None = None, **rooms: Room) -> Draft:
    """Hosts with this room, and a group that needs what the budget says."""
    policy = GroupPolicy(budget=budget.needs if budget else 0)
    web = Group(name=WEB, project=DEFAULT_PROJECT, kind=GroupKind.SCALE_SET, update_domains=3, policy=policy)
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
    assert chosen(draft(a=web(1, 2), b=web(0, carried=2))) == "b"
    assert chosen(draft(a=web(1, 2), b=web(0, carried=3))) == "a"


def test_a_host_that_is_worked_on_is_only_chosen_if_there_is_no_other() -> None:
    assert chosen(draft(a=Room(busy=True), b=web(0, 1, 2, carried=9))) == "b"
    assert chosen(draft(a=Room(busy=True))) == "a"


def test_no_host_gets_more_of_an_update_domain_than_the_group_can_spare() -> None:
    spares_one = Budget(needs=5, members=6)
    assert chosen(draft(budget=spares_one, a=web(0), b=web(1, 1, 2))) == "b"
    assert chosen(draft(budget=spares_one, a=web(0), b=web(1, 2, busy=True))) == "b"
    assert chosen(draft(budget=spares_one, a=web(0), b=web(0, 1))) == "a"


def test_those_that_move_together_are_kept_apart_too() -> None:
    fleet = draft(a=Room(carried=1), b=Room(), c=Room(carried=1))
    assert [chosen(fleet) for _ in range(4)] == ["b", "a", "c", "b"]


@pytest.mark.parametrize("state", sorted(HostState))
def test_neither_its_own_host_nor_one_that_is_not_sound_is_chosen(state: HostState) -> None:
    """A host may have been cordoned, or have failed, after its room was counted."""
    base = draft(own=Room(), other=Room())
    base.put_host(Host(name=HostName("other"), state=state))
    assert chosen(base) == ("other" if state is HostState.OK else None)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, True),  # nothing is planned yet
        ({"stages": (stage(step("web-0")),)}, True),
        ({"stages": (stage(step("web-0", StepState.FAILED)),)}, True),
        ({"stages": (stage(step("web-0", StepState.RUNNING)),)}, False),
        # Another machine may come to a host.
        ({"machine": None, "host": OWN, "stages": (stage(step("web-0", StepState.RUNNING)),)}, True),
        ({"driver": EXTERNAL}, False),
        ({"work": Work.FREEZE}, False),
        ({"work": None}, False),
        ({"ended_at": NOW}, False),
    ],
)
def test_orders_say_whether_machines_of_theirs_may_yet_be_placed(
    more: dict[str, Any], expected: bool
) -> None:
    assert placement.may_be_placed(order(1, **{"work": Work.REDEPLOY, "machine": MINE.id} | more)) == expected


def test_the_driver_where_a_machine_would_go_is_that_of_the_host() -> None:
    assert placement.driver_where_chosen(draft(), MINE) is None
    assert placement.driver_where_chosen(draft(a=Room(driver="libvirt")), MINE) == "libvirt"
    loaded = draft(a=Room(driver="libvirt"))
    loaded.put_host(Host(name=HostName("a"), driver="external"))
    assert placement.driver_where_chosen(loaded, MINE) == "external"
