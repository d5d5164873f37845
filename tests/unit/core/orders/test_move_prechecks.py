"""Moves are announced only after their driver has agreed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.core.basic_types import (
    Action,
    EventType,
    HostName,
    HostState,
    Kind,
    Mobility,
    OrderState,
    StepState,
    Work,
)
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, Order, Step
from forewarn.core.orders import interventions, move_prechecks
from forewarn.core.policy import Policy
from tests.unit.slices import HOUR, MINUTE, Fleet, machine

ASKED = Policy(prechecking=frozenset({"libvirt"}), working_on_hosts=frozenset({"libvirt"}))
OTHERS = ("host-2", "host-3")
SECOND = timedelta(seconds=1)


def live(name: str = "a-0", **more: object) -> Machine:
    return machine(name, mobility=Mobility.LIVE, **more)  # type: ignore[arg-type]


def live_only(name: str = "a-0") -> Machine:
    return machine(name, mobility=Mobility.LIVE_ONLY)


def fleet_of(*machines: Machine, hosts: tuple[str, ...] = OTHERS) -> Fleet:
    return Fleet(*machines, hosts=hosts, policy=ASKED)


def leaving(*machines: Machine, hosts: tuple[str, ...] = OTHERS, **terms: object) -> tuple[Fleet, Order]:
    fleet = fleet_of(*machines, hosts=hosts)
    return fleet, fleet.service(driver="libvirt", **terms)


def steps(fleet: Fleet, order: Order) -> list[Step]:
    return [each for each in fleet.draft.orders[order.id].steps if each.moves]


def asked(fleet: Fleet, order: Order) -> dict[str, str]:
    """Return the open questions to the driver: machine and target host."""
    waiting = (each for each in steps(fleet, order) if each.state is StepState.WAITING)
    return {
        each.name: each.precheck.target
        for each in waiting
        if each.precheck is not None and each.precheck.answered_at is None
    }


def answer(fleet: Fleet, order: Order, *, refused: str = "", unknown: str = "") -> None:
    """Answer all open questions, and advance the order."""
    for step in steps(fleet, order):
        if step.name in asked(fleet, order):
            target = HostName(asked(fleet, order)[step.name])
            attempt = AttemptId(order.id, step.machine, step.attempt)
            move_prechecks.answered(fleet.draft, attempt, step.work, target, refused=refused, unknown=unknown)
    fleet.advance(order.id)


def types(fleet: Fleet) -> list[EventType]:
    return [event.type for event in fleet.events()]


def test_a_move_is_announced_when_its_driver_has_agreed() -> None:
    fleet, order = leaving(live())
    assert (types(fleet), asked(fleet, order)) == ([], {"a-0": "host-2"})
    assert fleet.waits(order.id) == ["a-0: driver libvirt checks whether it can go to host-2"]
    assert fleet.draft.orders[order.id].state is OrderState.QUEUED
    before = fleet.draft.orders[order.id]
    assert fleet.advance(order.id) == before
    answer(fleet, order)
    assert types(fleet) == [EventType.FREEZE]
    fleet.pass_(15 * MINUTE)
    assert [each.target for each in fleet.running(order.id)] == ["host-2"]


def test_a_driver_without_prechecks_is_not_asked() -> None:
    for driver in ("simulated", "external"):
        fleet = fleet_of(live())
        fleet.service(driver=driver)
        assert types(fleet) == [EventType.FREEZE]
    fleet = fleet_of(live())
    fleet.draft.put_host(replace(fleet.draft.hosts[HostName("host-1")], driver="libvirt"))
    fleet.maintain(work=Work.REBOOT, driver="libvirt")
    assert types(fleet) == [EventType.REBOOT]


def test_machines_are_checked_against_different_hosts() -> None:
    fleet, order = leaving(live("a-0"), live("b-0"))
    assert sorted(asked(fleet, order).values()) == ["host-2", "host-3"]
    answer(fleet, order)
    fleet.pass_(15 * MINUTE)
    assert sorted(f"{each.target}" for each in fleet.running(order.id)) == ["host-2", "host-3"]


def test_if_one_host_refuses_another_is_checked() -> None:
    fleet, order = leaving(live())
    answer(fleet, order, refused="no such network")
    assert (types(fleet), asked(fleet, order)) == ([], {"a-0": "host-3"})
    answer(fleet, order)
    assert types(fleet) == [EventType.FREEZE]


def test_if_no_host_takes_a_machine_live_only_a_redeploy_is_announced() -> None:
    fleet, order = leaving(live(), hosts=("host-2",))
    answer(fleet, order, refused="another CPU")
    assert (types(fleet), asked(fleet, order)) == ([], {"a-0": "host-2"})
    (step,) = steps(fleet, order)
    assert (step.work, step.lowered_from) == (Work.REDEPLOY, Work.FREEZE)
    fleet.pass_(SECOND)
    answer(fleet, order)
    assert types(fleet) == [EventType.REDEPLOY]
    said = fleet.history(Kind.ORDER_RETRIED)
    assert said == ["cannot be moved live: it is redeployed, with notice of its own"]


def test_a_move_that_every_host_refuses_is_not_announced_and_can_be_retried() -> None:
    fleet, order = leaving(live(), hosts=("host-2",))
    answer(fleet, order, refused="disk vda is not seen by both")
    answer(fleet, order, refused="disk vda is not seen by both")
    mine = fleet.draft.orders[order.id]
    assert (types(fleet), mine.state) == ([], OrderState.FAILED)
    assert "host-2 cannot take it, disk vda is not seen by both" in mine.steps[0].why
    assert fleet.history(Kind.EVENT_SCHEDULED) == []
    fleet.pass_(HOUR)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    interventions.retry(fleet.draft, order.id, by="olga", policy=fleet.policy)
    assert asked(fleet, order) == {"a-0": "host-2"}
    answer(fleet, order)
    assert types(fleet) == [EventType.REDEPLOY]


def test_a_live_only_machine_waits_and_is_checked_again() -> None:
    fleet, order = leaving(live_only(), hosts=("host-2",))
    answer(fleet, order, refused="another CPU")
    why = "a-0: it is live-only, so it is not redeployed and stays: host-2 cannot take it, another CPU"
    assert fleet.waits(order.id) == [why]
    mine = fleet.draft.orders[order.id]
    assert (mine.state, mine.due_at) == (OrderState.QUEUED, fleet.now + move_prechecks.REFUSED_FOR)
    fleet.pass_(move_prechecks.REFUSED_FOR - SECOND)
    assert fleet.waits(order.id) == [why]
    fleet.pass_(SECOND)
    assert asked(fleet, order) == {"a-0": "host-2"}
    answer(fleet, order)
    assert types(fleet) == [EventType.FREEZE]


def test_an_order_waits_for_a_hypervisor_that_does_not_answer() -> None:
    fleet, order = leaving(live(), hosts=("host-2",))
    answer(fleet, order, unknown="host-2 cannot be reached")
    assert fleet.waits(order.id) == [
        "a-0: whether it can go to host-2 is not known: host-2 cannot be reached"
    ]
    assert fleet.draft.orders[order.id].due_at == fleet.now + move_prechecks.ASK_AGAIN
    fleet.pass_(move_prechecks.ASK_AGAIN)
    assert (types(fleet), asked(fleet, order)) == ([], {"a-0": "host-2"})
    answer(fleet, order)
    assert types(fleet) == [EventType.FREEZE]


def test_a_lost_question_is_asked_again() -> None:
    fleet, order = leaving(live())
    first = steps(fleet, order)[0].precheck
    assert fleet.draft.orders[order.id].due_at == fleet.now + move_prechecks.ANSWERED_WITHIN
    fleet.pass_(move_prechecks.ANSWERED_WITHIN)
    assert steps(fleet, order)[0].precheck != first
    assert asked(fleet, order) == {"a-0": "host-2"}


def test_unanswered_questions_are_repeated_with_growing_delays() -> None:
    fleet, order = leaving(live())
    asked_at = []
    for _ in range(8):
        due_at = fleet.draft.orders[order.id].due_at
        assert due_at is not None
        asked_at.append(due_at - fleet.now)
        fleet.pass_(due_at - fleet.now)
    assert asked_at == [(2 ** min(number, 5)) * move_prechecks.ANSWERED_WITHIN for number in range(8)]


def test_an_answer_to_an_outdated_question_is_ignored() -> None:
    fleet, order = leaving(live())
    attempt = AttemptId(order.id, "a-0", 1)
    before = fleet.draft.orders[order.id]
    move_prechecks.answered(fleet.draft, attempt, Work.FREEZE, HostName("host-3"), refused="no")
    move_prechecks.answered(fleet.draft, attempt, Work.REDEPLOY, HostName("host-2"), refused="no")
    assert fleet.draft.orders[order.id] == before
    answer(fleet, order)
    announced = fleet.draft.orders[order.id]
    move_prechecks.answered(fleet.draft, attempt, Work.FREEZE, HostName("host-2"), refused="no")
    assert fleet.draft.orders[order.id] == announced


def test_the_driver_is_asked_just_before_the_announcement() -> None:
    fleet, order = leaving(live())
    paused = replace(order, terms=replace(order.terms, paused="by olga"))
    fleet.draft.put_order(replace(fleet.draft.orders[order.id], terms=paused.terms))
    answer(fleet, order)
    assert types(fleet) == []
    fleet.pass_(HOUR)
    fleet.draft.put_order(replace(fleet.draft.orders[order.id], terms=order.terms))
    fleet.advance(order.id)
    assert (types(fleet), list(asked(fleet, order))) == ([], ["a-0"])


def test_if_the_target_is_closed_another_host_is_checked() -> None:
    fleet, order = leaving(live())
    closed = fleet.draft.hosts[HostName("host-2")]
    fleet.draft.put_host(replace(closed, state=HostState.CORDONED))
    fleet.pass_(SECOND)
    assert asked(fleet, order) == {"a-0": "host-3"}


def test_a_machine_without_a_host_waits_and_names_the_refusals() -> None:
    fleet, order = leaving(live(), hosts=())
    assert fleet.waits(order.id) == ["a-0: finds no host with room for it"]
    assert fleet.draft.orders[order.id].waiting[0].room


def test_a_machine_waits_for_a_full_host_beside_a_refusing_one() -> None:
    fleet, order = leaving(live(resources={"memory": 4.0}), hosts=("host-2", "host-3"))
    full = fleet.draft.hosts[HostName("host-3")]
    fleet.draft.room[full.name] = replace(fleet.draft.room[full.name], free={"memory": 2.0})
    answer(fleet, order, refused="another CPU")
    assert types(fleet) == []
    assert steps(fleet, order)[0].state is StepState.WAITING
    assert fleet.waits(order.id)[0].startswith("a-0: host-2 cannot take it, another CPU; finds no host")


def test_a_redeploy_of_a_host_is_announced_when_all_its_machines_can_go() -> None:
    fleet = fleet_of(machine("web-0"), machine("web-1"))
    order = fleet.maintain(work=Work.REDEPLOY, driver="libvirt")
    assert (types(fleet), len(asked(fleet, order))) == ([], 2)
    answer(fleet, order)
    assert types(fleet) == [EventType.REDEPLOY]


def test_a_users_redeploy_that_no_host_takes_is_never_announced() -> None:
    fleet = fleet_of(machine("web-0"), hosts=("host-2",))
    order = fleet.order("web-0", Action.REDEPLOY, driver="libvirt")
    answer(fleet, order, refused="disk vda is not seen by both")
    mine = fleet.draft.orders[order.id]
    assert (types(fleet), mine.state) == ([], OrderState.FAILED)
    assert fleet.waits(order.id)[0].startswith("web-0: failed: no sound host can take")
    fleet.pass_(HOUR)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    interventions.retry(fleet.draft, order.id, by="olga", policy=fleet.policy)
    answer(fleet, order)
    assert types(fleet) == [EventType.REDEPLOY]


def test_a_latecomer_joins_once_its_driver_has_agreed() -> None:
    fleet = fleet_of(machine("web-0"))
    order = fleet.maintain(work=Work.REDEPLOY, driver="libvirt")
    answer(fleet, order)
    fleet.draft.put_machine(machine("web-1"))
    fleet.turn()
    fleet.advance(order.id)
    assert list(asked(fleet, order)) == ["web-1"]
    assert len(fleet.events()) == 1
    assert any("checks whether it can go to" in why for why in fleet.waits(order.id))
    answer(fleet, order)
    assert len(fleet.events()) == 2


@pytest.mark.parametrize("refuses", [False, True])
def test_the_return_of_machines_is_checked_too(refuses: bool) -> None:
    fleet, order = leaving(machine("a-0"), returning=True)
    answer(fleet, order)
    fleet.pass_(10 * MINUTE)
    fleet.finish(order.id)
    fleet.finish_host(order.id)
    fleet.pass_(2 * MINUTE)
    assert asked(fleet, order) == {"a-0": "host-1"}
    answer(fleet, order, refused="full" if refuses else "")
    assert types(fleet) == ([] if refuses else [EventType.REDEPLOY])
    state = fleet.draft.orders[order.id].state
    assert state is OrderState.FAILED if refuses else state is not OrderState.FAILED


def test_a_machine_with_a_named_target_is_checked_against_that_host_only() -> None:
    fleet = fleet_of(live(resources={"memory": 4.0}))
    order = fleet.order("a-0", Action.MOVE, driver="libvirt", to=HostName("host-2"))
    assert asked(fleet, order) == {"a-0": "host-2"}
    answer(fleet, order, refused="another CPU")
    assert (types(fleet), fleet.draft.orders[order.id].state) == ([], OrderState.FAILED)
