"""Machines that stay on a host during work: their driver verifies afterwards that they run."""

from dataclasses import replace

from forewarn.core.basic_types import EXTERNAL, Kind, MachineState, OrderState, ServiceMode, StepState
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import interventions, reports
from forewarn.core.policy import Policy
from tests.unit.slices import MINUTE, Fleet, machine

VERIFYING = Policy(
    verifying_restarts=frozenset({"libvirt"}), working_on_hosts=frozenset({"libvirt", "simulated"})
)


def begun(driver: str = "libvirt", **terms: object) -> tuple[Fleet, Order]:
    """Start work on a host with a machine that stays."""
    fleet = Fleet(machine("web-0"), policy=VERIFYING)
    order = fleet.service(mode=ServiceMode.IN_PLACE, driver=driver, **terms)
    fleet.pass_(15 * MINUTE)
    return fleet, order


def worked_on(driver: str = "libvirt") -> tuple[Fleet, Order]:
    fleet, order = begun(driver)
    fleet.finish_host(order.id)
    return fleet, order


def now(fleet: Fleet, order: Order) -> Order:
    return fleet.draft.orders[order.id]


def driven(fleet: Fleet, order: Order) -> list[str]:
    return [step.name for step in now(fleet, order).driven]


def state(fleet: Fleet, order: Order) -> StepState:
    return now(fleet, order).steps[0].state


def test_a_machine_that_stayed_is_verified_after_the_work_on_its_host() -> None:
    fleet, order = begun()
    assert driven(fleet, order) == ["work"]
    fleet.finish_host(order.id)
    assert driven(fleet, order) == ["web-0"]
    assert state(fleet, order) is StepState.RUNNING
    fleet.pass_(5 * MINUTE)
    assert now(fleet, order).state is OrderState.STARTED
    fleet.finish(order.id)
    assert state(fleet, order) is StepState.DONE
    assert fleet.machine("web-0").state is MachineState.RUNNING
    fleet.advance(order.id)
    assert now(fleet, order).state is OrderState.DONE


def test_a_driver_without_verification_is_not_asked() -> None:
    for driver in ("simulated", "command", EXTERNAL):
        fleet, order = begun(driver, host_driver="simulated")
        fleet.finish_host(order.id)
        assert (driven(fleet, order), state(fleet, order)) == ([], StepState.DONE)


def test_a_machine_that_does_not_run_fails_its_order_and_can_be_retried() -> None:
    fleet, order = worked_on()
    fleet.fail(order.id, why="it is off, and cannot be started: no such disk")
    failed = now(fleet, order)
    assert (failed.state, failed.steps[0].why) == (
        OrderState.FAILED,
        "it is off, and cannot be started: no such disk",
    )
    fleet.pass_(2 * MINUTE)
    interventions.retry(fleet.draft, order.id, by="olga", policy=fleet.policy)
    assert driven(fleet, order) == ["web-0"]
    assert now(fleet, order).steps[0].attempt == 2
    fleet.finish(order.id)
    assert now(fleet, order).state is OrderState.DONE
    assert len(fleet.history(Kind.STEP_BEGUN)) == 3  # twice the machine, once the work


def test_an_order_that_is_abandoned_before_the_work_is_done_verifies_nothing() -> None:
    fleet, order = begun()
    interventions.abandon(fleet.draft, order.id, by="olga")
    reports.step_cancelled(fleet.draft, AttemptId(order.id, "host/work", 1))
    fleet.advance(order.id)
    assert (driven(fleet, order), state(fleet, order)) == ([], StepState.MOOT)


def test_abandoning_an_order_cancels_its_verification() -> None:
    fleet, order = worked_on()
    interventions.abandon(fleet.draft, order.id, by="olga")
    assert driven(fleet, order) == ["web-0"]
    reports.step_cancelled(fleet.draft, AttemptId(order.id, "web-0", 1))
    assert fleet.advance(order.id).why == "abandoned by olga"


def test_a_machine_that_waits_for_another_order_is_verified_too() -> None:
    fleet, order = begun()
    (stage,) = now(fleet, order).stages
    waiting = replace(stage.steps[0], state=StepState.WAITING)
    fleet.draft.put_order(replace(now(fleet, order), stages=(replace(stage, steps=(waiting,)),)))
    fleet.finish_host(order.id)
    assert driven(fleet, order) == ["web-0"]
