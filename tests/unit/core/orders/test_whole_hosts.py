"""Work on a whole host: all its machines are told, awaited and worked on together, once (rules 4 and 5)."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import Action, Kind, MachineId, OrderState, Priority, StageState, StepState
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.group import GroupPolicy
from forewarn.core.orders import departures
from tests.rules import Change, violations
from tests.unit.slices import MINUTE, SECOND, Fleet, machine

QUARTER = 15 * MINUTE
WHY = "the board is swapped"


def two_domains() -> Fleet:
    """A host with two update domains of web, one of db."""
    return Fleet(machine("web-0"), machine("web-1", domain=1), machine("db-0"), hosts=["host-2"])


def broken_rules(fleet: Fleet) -> list[str]:
    base, after = fleet.draft.base, fleet.saved()
    return violations(
        Change(
            before=base,
            after=after,
            records=fleet.draft.changes().records,
            now=fleet.now,
            policy=fleet.policy,
        )
    )


def test_a_whole_host_with_two_update_domains_of_a_group_is_refused_and_nobody_is_told() -> None:
    fleet = two_domains()
    with pytest.raises(Conflict, match=r"host-1 carries update domains 0 and 1 of group web: .*--together"):
        fleet.maintain(whole=True)
    assert fleet.events() == ()


def test_not_even_an_emergency_does_a_divided_host_in_one_go() -> None:
    with pytest.raises(Conflict, match="update domains 0 and 1 of group web"):
        two_domains().maintain(whole=True, emergency="coolant leak")


def test_a_whole_host_without_them_is_done_in_one_stage() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), machine("db-0", domain=3))
    order = fleet.maintain(whole=True)
    assert [[step.name for step in stage.steps] for stage in order.stages] == [["db-0", "web-0", "web-1"]]
    assert fleet.history(Kind.PROMISE_BROKEN) == []


def test_together_all_machines_are_announced_with_full_notice_and_start_together() -> None:
    fleet = two_domains()
    order = fleet.maintain(together=WHY)
    assert {(event.group, event.update_domain, event.not_before - fleet.now) for event in fleet.events()} == {
        ("web", 0, QUARTER),
        ("web", 1, QUARTER),
        ("db", 0, QUARTER),
    }
    for event in fleet.events()[:2]:
        fleet.approve(event)
    assert fleet.draft.orders[order.id].state is OrderState.ANNOUNCED
    fleet.approve(fleet.events()[2])
    assert [step.name for step in fleet.running(order.id)] == ["db-0", "web-0", "web-1"]
    assert broken_rules(fleet) == []


def test_together_is_recorded_as_a_promise_broken_for_the_groups_that_it_breaks_it_for() -> None:
    fleet = two_domains()
    fleet.maintain(together=WHY)
    why = f"{WHY}: update domains 0 and 1 of web are disturbed together"
    assert fleet.history(Kind.PROMISE_BROKEN) == [why, why]


def test_what_is_done_together_still_waits_for_what_others_have_announced_to_the_group() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), machine("web-2", "host-2"))
    fleet.maintain("host-2")
    order = fleet.maintain(together=WHY)
    assert fleet.waits(order.id) == [
        "web: update domains 0 and 1, done together, wait for domain 0 of another order"
    ]


def test_a_group_must_spare_all_that_are_done_together() -> None:
    fleet = Fleet(
        *(machine("web-0"), machine("web-1", domain=1), machine("web-2", "host-2")),
        policies={"web": GroupPolicy(budget=2)},
    )
    with pytest.raises(Invalid, match="needs 2 healthy of 3, but host-1 carries 2 that are done together"):
        fleet.maintain(together=WHY)


def test_who_comes_after_the_announcement_joins_what_is_done_together() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(together=WHY)
    fleet.turn(MINUTE)
    fleet.draft.put_machine(machine("web-1", domain=1))
    fleet.advance(order.id)
    assert [event.update_domain for event in fleet.events()] == [0, 1]
    assert len(fleet.history(Kind.PROMISE_BROKEN)) == 1
    assert broken_rules(fleet) == []
    fleet.pass_(QUARTER)
    assert len(fleet.running(order.id)) == 2


def test_a_whole_host_does_not_start_while_it_carries_who_was_not_told() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(whole=True)
    fleet.draft.put_machine(machine("web-1", domain=1))
    fleet.pass_(QUARTER)
    assert fleet.waits(order.id) == ["web-1: is on host-1 too, and has not been told of this work"]
    fleet.draft.put_machine(machine("web-1", "host-2", domain=1))
    fleet.advance(order.id)
    assert [step.name for step in fleet.running(order.id)] == ["web-0"]


def test_one_that_could_not_start_so_waits_for_a_person() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(whole=True)
    fleet.draft.put_machine(machine("web-1", domain=1))
    fleet.pass_(QUARTER + 30 * MINUTE)
    assert fleet.events() == ()
    (waits,) = fleet.draft.orders[order.id].waiting
    assert waits.stuck
    assert str(waits).startswith("web: host-1 carries its update domains 0 and 1, which are not disturbed")


def test_a_machine_that_is_leaving_a_whole_host_is_waited_for() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", priority=Priority.SPOT))
    leaving = fleet.order("db-0", Action.TERMINATE)
    order = fleet.maintain(whole=True)
    fleet.approve(fleet.events(order.id)[0])
    assert fleet.waits(order.id) == ["db-0: is on host-1 too, and has not been told of this work"]
    fleet.turn()
    departures.remove_from_fleet(fleet.draft, fleet.machine("db-0"), why="terminated", keep=leaving.id)
    assert fleet.draft.orders[order.id].due_at == fleet.now
    assert [step.name for step in fleet.advance(order.id).steps if step.state is StepState.RUNNING] == [
        "web-0"
    ]


def test_work_on_a_whole_host_is_not_done_again_for_who_comes_while_it_is_done() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(whole=True)
    fleet.pass_(QUARTER)
    fleet.draft.put_machine(machine("db-0"))
    fleet.finish(order.id)
    fleet.pass_(90 * SECOND)
    assert order.id not in fleet.draft.orders or not fleet.draft.orders[order.id].open
    assert fleet.events() == ()


def test_a_failed_work_is_tried_again_for_all_machines() -> None:
    fleet = two_domains()
    order = fleet.maintain(together=WHY)
    fleet.pass_(QUARTER)
    fleet.fail(order.id)
    stages = fleet.draft.orders[order.id].stages
    assert [stage.state for stage in stages] == [StageState.STARTED]
    assert {step.state for step in stages[0].steps} == {StepState.FAILED}


def test_a_whole_host_that_begins_with_who_was_not_told_is_found() -> None:
    fleet = Fleet(machine("web-0"))
    fleet.maintain(whole=True)
    fleet.turn(QUARTER)
    before = fleet.draft.base
    fleet.pass_(0 * SECOND)
    after = fleet.saved()
    late = machine("db-0")
    after = replace(after, machines={**after.machines, MachineId("db-0"): late})
    found = violations(
        Change(before=before, after=after, records=fleet.records, now=fleet.now, policy=fleet.policy)
    )
    assert any(each.startswith("whole_hosts_are_done_in_one_go:") for each in found)
