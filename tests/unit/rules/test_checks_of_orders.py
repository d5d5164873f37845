"""The checks of orders: each finds what breaks its rule, and accepts the exceptions."""

from dataclasses import replace
from datetime import datetime

import pytest

from forewarn.core.basic_types import (
    Action,
    ApprovedBy,
    EventStatus,
    HostName,
    HostState,
    MachineId,
    MachineState,
    OrderId,
    Priority,
    ServiceMode,
    StageState,
    StepState,
    Work,
)
from forewarn.core.model.event import Approval
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Order, Stage
from forewarn.core.model.project import Calendar
from forewarn.core.model.slice import Slice
from forewarn.core.orders import stages
from tests.rules import violations
from tests.unit.rules.test_checks import NIGHT, broken, change, fleet, of_web, with_event
from tests.unit.slices import MINUTE, NOON, Fleet, machine

QUARTER = 15 * MINUTE
EVENING = NOON.replace(hour=21, minute=50)


def only(part: Slice) -> Order:
    (order,) = part.orders.values()
    return order


def with_stages(part: Slice, *changed: Stage) -> Slice:
    order = only(part)
    return replace(part, orders={order.id: replace(order, stages=changed)})


def started(made: Fleet) -> tuple[Slice, Slice]:
    """Return the fleet before and after the announced events start."""
    made.turn(QUARTER)
    before = made.draft.base
    for order in list(made.draft.orders):
        made.advance(order)
    after = made.saved()
    assert {event.status for event in after.events.values()} == {EventStatus.STARTED}
    return before, after


# Recommendations


def recommended() -> Fleet:
    made = Fleet(machine("web-0", priority=Priority.SPOT), machine("web-1", "host-2", domain=1))
    made.order("web-0", Action.RECOMMEND_REBALANCE)
    made.turn()
    return made


def test_a_recommendation_that_starts_or_is_approved_is_found() -> None:
    made = recommended()
    saved = made.draft.base
    assert broken(saved, saved, made) == set()
    word = Approval(by="web-0", kind=ApprovedBy.GUEST, at=NOON)
    for wrong in (with_event(saved, status=EventStatus.STARTED), with_event(saved, approvals=(word,))):
        assert "recommendations_never_start" in broken(saved, wrong, made)


def test_a_recommendation_that_has_steps_is_found() -> None:
    made = recommended()
    saved = made.draft.base
    step = stages.step_of(made.machine("web-0"), Work.REBOOT)
    wrong = with_stages(saved, Stage(state=StageState.ANNOUNCED, steps=(step,)))
    assert broken(saved, wrong, made) == {"recommendations_never_start"}


def test_a_recommendation_does_not_block_another_update_domain() -> None:
    made = recommended()
    made.maintain("host-2")
    assert violations(change(made.draft.base, made.saved(), made)) == []


# Rule 4


def test_a_stage_that_disturbs_two_update_domains_of_a_group_is_found() -> None:
    made = fleet()
    saved = made.saved()
    (stage,) = only(saved).stages
    *most, last = sorted(stage.steps, key=lambda step: step.group)
    other = replace(last, update_domain=1)
    rule = "stages_have_one_domain_of_a_group"
    assert rule in broken(saved, with_stages(saved, replace(stage, steps=(*most, other))), made)
    moot = replace(other, state=StepState.MOOT)
    assert rule not in broken(saved, with_stages(saved, replace(stage, steps=(*most, moot))), made)


# Rule 5


def test_work_on_a_whole_host_that_begins_twice_or_unannounced_is_found() -> None:
    made = Fleet(machine("web-0"), machine("db-0"))
    made.maintain(whole=True)
    before, after = started(made)
    assert violations(change(before, after, made)) == []
    (stage,) = only(after).stages
    rule = "work_on_whole_hosts_begins_once"
    assert rule in broken(before, with_stages(after, stage, stage), made)
    assert rule in broken(before, with_stages(after, replace(stage, steps=stage.steps[:1])), made)


def test_work_on_a_host_with_two_domains_or_an_unannounced_machine_is_found() -> None:
    made = Fleet(machine("web-0"), machine("web-1"), machine("web-2", "host-2", domain=1))
    made.service(mode=ServiceMode.IN_PLACE)
    before, after = started(made)
    assert violations(change(before, after, made)) == []
    rule = "work_on_hosts_is_announced_to_all_machines"
    assert rule not in broken(after, after, made)
    untold = with_event(after, resources=of_web(after).resources[:1])
    assert rule in broken(before, untold, made)
    other = replace(after.machines[MachineId("web-1")], update_domain=1)
    two = replace(after, machines={**after.machines, other.id: other})
    assert rule in broken(before, two, made)
    gone = replace(other, state=MachineState.STOPPED)
    assert rule not in broken(before, replace(two, machines={**two.machines, other.id: gone}), made)


def test_an_evacuation_beyond_the_limit_of_moves_is_found() -> None:
    made = Fleet(*(machine(f"web-{number}") for number in range(3)), hosts=["host-2"])
    made.service()
    before, after = started(made)
    assert violations(change(before, after, made)) == []
    stage, *more = only(after).stages
    moving = replace(stage, steps=tuple(replace(step, state=StepState.RUNNING) for step in stage.steps))
    assert "concurrent_moves_are_limited" in broken(before, with_stages(after, moving, *more), made)


def test_a_cordon_that_outlives_its_order_is_found() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    made.service()
    saved = made.saved()
    assert violations(change(made.draft.base, saved, made)) == []
    assert "cordons_end_with_their_order" in broken(saved, replace(saved, orders={}, events={}), made)


def test_a_move_outside_a_window_is_found() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    made.service()
    before, after = started(made)
    projects = {name: replace(each, calendar=NIGHT) for name, each in after.projects.items()}
    assert "windows_are_respected" in broken(before, replace(after, projects=projects), made)


def test_an_event_that_starts_while_another_order_works_on_its_machine_is_found() -> None:
    made = fleet()
    before, after = started(made)
    busy = {**before.orders, OrderId("X"): replace(only(after), id=OrderId("X"))}
    found = broken(replace(before, orders=busy), replace(after, orders={**busy, **after.orders}), made)
    assert "machines_are_free_when_their_stage_starts" in found


def test_a_failed_host_gives_no_notice_and_waits_for_no_other_work() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    made.order("web-0", at_once=True)
    made.turn()
    made.maintain(action=Action.FAIL)
    assert violations(change(made.draft.base, made.saved(), made)) == []


# Targets of moves


@pytest.mark.parametrize("state", [HostState.CORDONED, HostState.DEGRADED, HostState.FAILED])
def test_a_move_to_an_unusable_host_is_found(state: HostState) -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    made.order("web-0", Action.REDEPLOY)
    before, after = started(made)
    assert violations(change(before, after, made)) == []
    other = HostName("host-2")
    unsound = replace(after, hosts={**after.hosts, other: replace(after.hosts[other], state=state)})
    assert "machines_move_to_sound_hosts" in broken(before, unsound, made)


def test_a_move_to_an_unreachable_host_is_found() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    made.order("web-0", Action.REDEPLOY)
    before, after = started(made)
    other = HostName("host-2")
    away = replace(after.hosts[other], unreachable_since=made.now)
    assert "machines_move_to_sound_hosts" in broken(
        before, replace(after, hosts={**after.hosts, other: away}), made
    )


# Rule 6


def test_the_incarnation_of_a_new_group_is_not_compared() -> None:
    made = fleet()
    saved = made.saved()
    grown = replace(saved.groups[of_web(saved).group], incarnation=9)
    after = replace(saved, groups={**saved.groups, grown.name: grown})
    assert broken(saved, after, made) == {"incarnations_count_changes"}
    assert broken(replace(saved, groups={}), after, made) == set()


# Windows and budgets


def at_night(calendar: Calendar = NIGHT, *, now: datetime = EVENING) -> tuple[Fleet, Slice, Slice]:
    """Start work that was announced in the evening, whatever the windows of its project."""
    made = Fleet(machine("web-0"), now=now)
    made.maintain()
    before, after = started(made)
    projects = {name: replace(project, calendar=calendar) for name, project in after.projects.items()}
    return made, before, replace(after, projects=projects)


def test_a_start_on_a_blackout_day_is_found_and_one_in_a_window_accepted() -> None:
    made, before, after = at_night()
    assert violations(change(before, after, made)) == []
    made, before, after = at_night(replace(NIGHT, blackout=frozenset({EVENING.date()})))
    assert broken(before, after, made) == {"windows_are_respected"}
    made, before, after = at_night(now=EVENING - 10 * MINUTE)
    assert broken(before, after, made) == {"windows_are_respected"}


def test_user_orders_and_emergencies_may_start_outside_windows() -> None:
    made = Fleet(machine("web-0"), machine("db-0", "host-2"), calendar=NIGHT)
    made.order("web-0")
    made.maintain("host-2", emergency="smoke", notice=MINUTE)
    assert violations(change(*started(made), made)) == []


def test_maintenance_within_a_budget_is_accepted() -> None:
    made = Fleet(machine("web-0"), machine("web-1", "host-2"), policies={"web": GroupPolicy(budget=1)})
    made.maintain()
    before, after = made.draft.base, made.saved()
    assert violations(change(before, after, made)) == []
    group = after.groups[of_web(after).group]
    greedy = replace(after, groups={group.name: replace(group, policy=GroupPolicy(budget=2))})
    assert broken(before, greedy, made) == {"budgets_are_respected"}
