"""Groups whose update domains do not count: gangs, and Freezes up to the limit of a group."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.basic_types import (
    Action,
    GroupName,
    HostName,
    Kind,
    OrderState,
    ProjectName,
    ServiceMode,
    Work,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import ArmedDomain
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import Host
from forewarn.core.model.order import Order
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts import waves
from tests.unit.core.model.test_rollout import over
from tests.unit.slices import MINUTE, Fleet, machine

WEB = GroupName("web")
GANG = {"web": GroupPolicy(gang=True)}


def web(count: int, **policy: int | bool) -> Fleet:
    """Place machines of `web`, each in its own update domain on its own host."""
    machines = (machine(f"web-{n}", f"host-{n + 1}", domain=n) for n in range(count))
    return Fleet(*machines, policies={"web": GroupPolicy(**policy)}, hosts=["host-9"])  # type: ignore[arg-type]


def freeze(fleet: Fleet, host: str, **terms: object) -> Order:
    return fleet.maintain(host, work=Work.FREEZE, **terms)


# Gangs


def test_update_domains_of_a_gang_are_announced_together_without_a_broken_promise() -> None:
    fleet = web(2, gang=True)
    orders = fleet.maintain("host-1"), fleet.maintain("host-2")
    assert {order.state for order in orders} == {OrderState.ANNOUNCED}
    assert fleet.history(Kind.PROMISE_BROKEN) == []


def test_a_gang_on_a_host_is_announced_at_once_with_one_event_per_update_domain() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), policies=GANG)
    order = fleet.maintain(whole=True)
    assert [event.update_domain for event in fleet.events(order.id)] == [0, 1]


def test_a_gang_that_is_done_together_breaks_no_promise() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), policies=GANG)
    fleet.maintain(together="its board is swapped")
    assert fleet.history(Kind.PROMISE_BROKEN) == []


def test_a_gang_restarts_together_with_its_host() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), policies=GANG)
    order = fleet.maintain(action=Action.SERVICE, work=Work.HOST, mode=ServiceMode.IN_PLACE)
    assert len(fleet.events(order.id)) == 2


def test_update_domains_of_other_groups_do_not_restart_together() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1))
    with pytest.raises(Conflict, match="web-0 of domain 0, web-1 of domain 1"):
        fleet.maintain(action=Action.SERVICE, work=Work.HOST, mode=ServiceMode.IN_PLACE)


def test_a_latecomer_of_a_gang_joins_in_any_update_domain() -> None:
    fleet = Fleet(machine("web-0"), policies=GANG)
    order = fleet.maintain()
    fleet.draft.put_machine(machine("web-1", domain=1))
    fleet.pass_(MINUTE)
    assert len(fleet.events(order.id)) == 2


# Freezes at once


def test_a_group_limits_how_many_machines_are_frozen_at_once() -> None:
    fleet = web(3, freezes_at_once=2)
    states = [freeze(fleet, f"host-{n}").state for n in (1, 2, 3)]
    assert states == [OrderState.ANNOUNCED, OrderState.ANNOUNCED, OrderState.QUEUED]
    (third,) = (order for order in fleet.draft.orders.values() if order.host == "host-3")
    assert fleet.waits(third.id) == [
        "web: permits 2 freezes at once, and 2 of its machines are frozen or soon will be"
    ]
    assert third.waiting[0].group == WEB


def test_waiting_freezes_go_on_when_others_are_over() -> None:
    fleet = web(3, freezes_at_once=2)
    first, _, third = (freeze(fleet, f"host-{n}") for n in (1, 2, 3))
    fleet.approve(fleet.events(first.id)[0])
    fleet.finish(first.id)
    fleet.pass_(90 * timedelta(seconds=1))
    fleet.pass_(timedelta())
    assert fleet.draft.orders[third.id].state is OrderState.ANNOUNCED


def test_a_freeze_waits_for_another_kind_of_work() -> None:
    fleet = web(2, freezes_at_once=2)
    fleet.maintain("host-1")
    assert fleet.waits(freeze(fleet, "host-2").id) == ["web: a Freeze waits for domain 0"]


def test_other_work_waits_for_a_freeze_of_another_update_domain() -> None:
    fleet = web(2, freezes_at_once=2)
    freeze(fleet, "host-1")
    assert fleet.waits(fleet.maintain("host-2").id) == ["web: update domain 1 waits for domain 0"]


def test_a_host_with_more_machines_than_may_be_frozen_at_once_goes_by_update_domain() -> None:
    fleet = Fleet(
        machine("web-0"), machine("web-1", domain=1), policies={"web": GroupPolicy(freezes_at_once=1)}
    )
    order = freeze(fleet, "host-1")
    assert [event.update_domain for event in fleet.events(order.id)] == [0]


# Waves


def ground(**policy: int | bool) -> HostSurvey:
    names = [HostName(f"host-{n}") for n in range(4)]
    carried = (Footprint(counts={WEB: {n: 1}}, projects=frozenset({ProjectName("shop")})) for n in range(4))
    return HostSurvey(
        hosts={name: Host(name=name) for name in names},
        footprints=dict(zip(names, carried, strict=True)),
        policies={WEB: GroupPolicy(**policy)},  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("policy", "work", "sizes"),
    [
        ({}, Work.FREEZE, [1, 1, 1, 1]),
        ({"gang": True}, Work.REBOOT, [4]),
        ({"freezes_at_once": 3}, Work.FREEZE, [3, 1]),
        ({"freezes_at_once": 3}, Work.REBOOT, [1, 1, 1, 1]),
    ],
)
def test_a_wave_holds_as_many_machines_as_a_group_permits_together(
    policy: dict[str, int], work: Work, sizes: list[int]
) -> None:
    survey = ground(**policy).disturbed_by(work)
    plan = over(survey, at_once=10)
    assert [len(wave.hosts) for wave in plan.waves] == sizes


def test_a_wave_announced_now_holds_fewer_machines_while_others_are_frozen() -> None:
    frozen = {WEB: {0: ArmedDomain(events=1, freezes=1, frozen=2)}}
    survey = replace(ground(freezes_at_once=3).disturbed_by(Work.FREEZE), armed=frozen)
    plan = over(survey, at_once=10)
    assert len(waves.limits_now(plan, survey).pick(plan.hosts)) == 1
