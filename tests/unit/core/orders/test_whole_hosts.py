"""Work on a whole host: its machines are announced, started and treated together, once (rules 4 and 5)."""

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
    """Create a host with two update domains of web, and one of db."""
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


def test_a_whole_host_with_two_update_domains_of_a_group_is_refused_unannounced() -> None:
    fleet = two_domains()
    with pytest.raises(Conflict, match=r"host-1 carries update domains 0 and 1 of group web: .*--together"):
        fleet.maintain(whole=True)
    assert fleet.events() == ()


def test_even_an_emergency_does_not_treat_a_divided_host_in_one_go() -> None:
    with pytest.raises(Conflict, match="update domains 0 and 1 of group web"):
        two_domains().maintain(whole=True, emergency="coolant leak")


def test_an_undivided_whole_host_is_one_stage() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), machine("db-0", domain=3))
    order = fleet.maintain(whole=True)
    assert [[step.name for step in stage.steps] for stage in order.stages] == [["db-0", "web-0", "web-1"]]
    assert fleet.history(Kind.PROMISE_BROKEN) == []


def test_together_announces_all_machines_with_full_notice_and_starts_them_together() -> None:
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


def test_together_records_a_broken_promise_for_each_divided_group() -> None:
    fleet = two_domains()
    fleet.maintain(together=WHY)
    why = f"{WHY}: update domains 0 and 1 of web are disturbed together"
    assert fleet.history(Kind.PROMISE_BROKEN) == [why, why]


def test_together_still_waits_for_armed_events_of_other_orders() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1", domain=1), machine("web-2", "host-2"))
    fleet.maintain("host-2")
    order = fleet.maintain(together=WHY)
    assert fleet.waits(order.id) == [
        "web: update domains 0 and 1, done together, wait for domain 0 of another order"
    ]


def test_a_group_must_spare_all_machines_that_are_disturbed_together() -> None:
    fleet = Fleet(
        *(machine("web-0"), machine("web-1", domain=1), machine("web-2", "host-2")),
        policies={"web": GroupPolicy(budget=2)},
    )
    with pytest.raises(Invalid, match="needs 2 healthy of 3, but host-1 carries 2 that are done together"):
        fleet.maintain(together=WHY)


def test_a_latecomer_joins_work_that_is_done_together() -> None:
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


def test_a_whole_host_does_not_start_while_it_carries_an_unannounced_machine() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(whole=True)
    fleet.draft.put_machine(machine("web-1", domain=1))
    fleet.pass_(QUARTER)
    assert fleet.waits(order.id) == ["web-1: is on host-1 too, and was not notified of this work"]
    fleet.draft.put_machine(machine("web-1", "host-2", domain=1))
    fleet.advance(order.id)
    assert [step.name for step in fleet.running(order.id)] == ["web-0"]


def test_a_divided_whole_host_waits_for_a_person() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(whole=True)
    fleet.draft.put_machine(machine("web-1", domain=1))
    fleet.pass_(QUARTER + 30 * MINUTE)
    assert fleet.events() == ()
    (waits,) = fleet.draft.orders[order.id].waiting
    assert waits.stuck
    assert str(waits).startswith("web: host-1 carries its update domains 0 and 1, which are not disturbed")


def test_a_whole_host_waits_for_a_machine_that_is_leaving() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0", priority=Priority.SPOT))
    leaving = fleet.order("db-0", Action.TERMINATE)
    order = fleet.maintain(whole=True)
    fleet.approve(fleet.events(order.id)[0])
    assert fleet.waits(order.id) == ["db-0: is on host-1 too, and was not notified of this work"]
    fleet.turn()
    departures.remove_from_fleet(fleet.draft, fleet.machine("db-0"), why="terminated", keep=leaving.id)
    assert fleet.draft.orders[order.id].due_at == fleet.now
    assert [step.name for step in fleet.advance(order.id).steps if step.state is StepState.RUNNING] == [
        "web-0"
    ]


def test_work_on_a_whole_host_is_not_repeated_for_machines_that_arrive_during_it() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(whole=True)
    fleet.pass_(QUARTER)
    fleet.draft.put_machine(machine("db-0"))
    fleet.finish(order.id)
    fleet.pass_(90 * SECOND)
    assert order.id not in fleet.draft.orders or not fleet.draft.orders[order.id].open
    assert fleet.events() == ()


def test_failed_work_is_retried_for_all_machines() -> None:
    fleet = two_domains()
    order = fleet.maintain(together=WHY)
    fleet.pass_(QUARTER)
    fleet.fail(order.id)
    stages = fleet.draft.orders[order.id].stages
    assert [stage.state for stage in stages] == [StageState.STARTED]
    assert {step.state for step in stages[0].steps} == {StepState.FAILED}


def test_a_whole_host_that_starts_with_an_unannounced_machine_is_found() -> None:
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
    assert any(each.startswith("work_on_whole_hosts_begins_once:") for each in found)
