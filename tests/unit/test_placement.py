"""Where a machine goes that moves."""

from datetime import UTC, datetime

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
    GroupKind,
    GroupName,
    HostName,
    HostState,
    MachineId,
    MachineName,
)

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
