"""The life of a step, and what it does to its machine (rule 8)."""

import pytest

from forewarn.core.basic_types import (
    Action,
    HostName,
    HostState,
    Kind,
    MachineId,
    MachineState,
    Priority,
    StepState,
    Work,
)
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.orders import steps
from tests.unit.slices import HOUR, MINUTE, NOON, Fleet, machine


def started(fleet: Fleet, work: Work = Work.REBOOT) -> Order:
    """Advance maintenance of host-1 to its NotBefore."""
    order = fleet.maintain(work=work)
    fleet.pass_(HOUR / 4)
    return fleet.draft.orders[order.id]


def placed(found: Machine) -> tuple[MachineState, HostName | None, HostName | None]:
    return found.state, found.host, found.bound_for


@pytest.mark.parametrize(
    ("work", "during"),
    [
        (Work.FREEZE, MachineState.FROZEN),
        (Work.REBOOT, MachineState.RESTARTING),
        (Work.REDEPLOY, MachineState.MOVING),
    ],
)
def test_a_step_changes_the_state_of_its_machine(work: Work, during: MachineState) -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    started(fleet, work)
    assert fleet.machine("web-0").state is during


def test_a_freeze_and_a_reboot_leave_a_machine_on_its_host() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = started(fleet)
    fleet.finish(order.id)
    assert placed(fleet.machine("web-0")) == (MachineState.RUNNING, "host-1", None)


def test_a_redeploy_is_bound_for_another_host_and_arrives_there() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = started(fleet, Work.REDEPLOY)
    assert placed(fleet.machine("web-0")) == (MachineState.MOVING, "host-1", "host-2")
    fleet.finish(order.id)
    assert placed(fleet.machine("web-0")) == (MachineState.RUNNING, "host-2", None)


def test_an_evicted_machine_is_stopped_on_no_host() -> None:
    fleet = Fleet(machine("web-0", priority=Priority.SPOT))
    order = fleet.order("web-0", Action.EVICT)
    fleet.pass_(MINUTE)
    fleet.finish(order.id)
    assert placed(fleet.machine("web-0")) == (MachineState.STOPPED, None, None)


def test_a_stopped_machine_starts_on_a_host_with_room() -> None:
    fleet = Fleet(machine("web-0", "host-1", state=MachineState.STOPPED), hosts=["host-2"])
    order = fleet.order("web-0", Action.START)
    fleet.finish(order.id)
    assert placed(fleet.machine("web-0")) == (MachineState.RUNNING, "host-2", None)


def test_without_a_sound_host_a_move_fails_at_once_and_names_a_remedy() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet, Work.REDEPLOY)
    (step,) = order.steps
    assert (step.state, step.why) == (
        StepState.FAILED,
        'no sound host can take "web-0": add or uncordon one, then retry',
    )


def test_an_external_driver_chooses_the_host_itself() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = fleet.maintain(work=Work.REDEPLOY, driver="external")
    fleet.pass_(HOUR / 4)
    (step,) = fleet.running(order.id)
    assert (step.target, fleet.machine("web-0").bound_for) == (None, None)


def test_a_machine_of_a_failed_host_is_down_and_may_return_once_that_is_restored() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(action=Action.FAIL, fenced="its plug is pulled")
    assert order.steps[0].state is StepState.FAILED
    assert fleet.machine("web-0").state is MachineState.RESTARTING
    fleet.draft.put_host(Host(name=HostName("host-1")))
    fleet.turn()
    begun = steps.begin(fleet.draft, fleet.draft.orders[order.id], order.steps[0])
    assert (begun.state, begun.target) == (StepState.RUNNING, "host-1")


def test_a_step_is_checked_at_once_and_keeps_its_start_time() -> None:
    fleet = Fleet(machine("web-0"))
    (step,) = started(fleet).steps
    assert (step.begun_at, step.look_at, step.attempt) == (NOON + HOUR / 4, NOON + HOUR / 4, 1)


def test_a_finished_step_is_not_checked() -> None:
    fleet = Fleet(machine("web-0"), machine("db-0"))
    order = fleet.maintain()
    fleet.pass_(HOUR / 4)
    done = steps.done(fleet.draft, order, order.steps[0])
    failed = steps.fail(fleet.draft, order, order.steps[1], why="it burns")
    assert (done.state, done.look_at, done.ended_at) == (StepState.DONE, None, fleet.now)
    assert (failed.state, failed.look_at, failed.ended_at) == (StepState.FAILED, None, fleet.now)
    assert failed.why == "it burns"


def test_a_failed_move_has_no_target() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    order = started(fleet, Work.REDEPLOY)
    fleet.fail(order.id)
    assert placed(fleet.machine("web-0")) == (MachineState.MOVING, "host-1", None)


def test_an_abandoned_step_is_moot_and_its_machine_runs() -> None:
    fleet = Fleet(machine("web-0"))
    order = started(fleet)
    moot = steps.abandon(fleet.draft, order, order.steps[0], why="enough")
    assert (moot.state, moot.why) == (StepState.MOOT, "enough")
    assert fleet.machine("web-0").state is MachineState.RUNNING


def test_an_abandoned_step_that_never_began_leaves_its_machine() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain()
    before = fleet.machine("web-0")
    steps.abandon(fleet.draft, order, order.steps[0], why="enough")
    assert fleet.machine("web-0") is before


def test_a_machine_whose_recovery_is_abandoned_is_stopped_without_a_host() -> None:
    fleet = Fleet(machine("web-0"))
    order = fleet.maintain(action=Action.FAIL)
    steps.abandon(fleet.draft, order, order.steps[0], why="enough")
    assert placed(fleet.machine("web-0")) == (MachineState.STOPPED, None, None)


def test_abandoning_a_step_does_not_change_a_machine_that_another_order_works_on() -> None:
    fleet = Fleet(machine("web-0"))
    failed = fleet.maintain(action=Action.FAIL, fenced="its plug is pulled")
    assert failed.steps[0].state is StepState.FAILED  # there is no other host
    fleet.maintain(action=Action.RESTORE)
    other = fleet.order("web-0")
    fleet.pass_(15 * MINUTE)
    assert fleet.running(other.id)
    before = fleet.machine("web-0")
    steps.abandon(fleet.draft, failed, failed.steps[0], why="enough")
    assert fleet.machine("web-0") is before


def test_another_order_with_a_running_step_is_found() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"))
    order = started(fleet)
    other = fleet.order("web-0", Action.FREEZE)
    assert steps.running_elsewhere(fleet.draft, MachineId("web-0"), other) == order
    assert steps.running_elsewhere(fleet.draft, MachineId("web-0"), order) is None


def test_every_step_records_its_start_and_its_end() -> None:
    fleet = Fleet(machine("web-0"), machine("web-1"), hosts=["host-2"])
    order = started(fleet, Work.REDEPLOY)
    fleet.finish(order.id)
    assert fleet.history(Kind.STEP_BEGUN) == ["redeploy to host-2, simulated"] * 2
    assert fleet.history(Kind.STEP_DONE) == ["redeploy to host-2, simulated"] * 2


def test_a_failed_host_is_not_a_target() -> None:
    fleet = Fleet(machine("web-0"), hosts=["host-2"])
    fleet.maintain("host-2", Action.FAIL)
    assert fleet.draft.hosts[HostName("host-2")].state is HostState.FAILED
    order = fleet.maintain(work=Work.REDEPLOY)
    fleet.pass_(HOUR / 4)
    assert fleet.draft.orders[order.id].steps[0].state is StepState.FAILED
