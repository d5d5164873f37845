"""Bare metal: a host whose only machine cannot move."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    Action,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineState,
    Mobility,
    Priority,
    ServiceMode,
    StageKind,
    StepState,
    Work,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders import bare_metal, interventions
from tests.unit.slices import HOUR, MINUTE, Fleet, machine

GPU = HostName("gpu-0")


def fleet() -> Fleet:
    made = Fleet(machine("gpu-0", "gpu-0", mobility=Mobility.NONE, priority=Priority.SPOT), hosts=["host-2"])
    made.draft.put_host(replace(made.draft.hosts[GPU], bare_metal=True))
    made.turn()
    return made


def test_service_of_bare_metal_restarts_its_machine() -> None:
    made = fleet()
    order = made.service("gpu-0")
    assert (order.terms.mode, [stage.kind for stage in order.stages]) == (
        ServiceMode.IN_PLACE,
        [StageKind.HOST],
    )
    made.pass_(HOUR / 4)
    assert made.machine("gpu-0").state is MachineState.RESTARTING
    made.finish_host(order.id)
    made.pass_(2 * MINUTE)
    assert (made.machine("gpu-0").state, made.machine("gpu-0").host) == (MachineState.RUNNING, GPU)
    assert made.draft.hosts[GPU].state is HostState.OK


def test_bare_metal_is_maintained_by_a_reboot() -> None:
    made = fleet()
    order = made.maintain("gpu-0", work=Work.REBOOT)
    made.pass_(HOUR / 4)
    made.finish(order.id)
    assert (made.machine("gpu-0").state, made.machine("gpu-0").host) == (MachineState.RUNNING, GPU)


@pytest.mark.parametrize(
    ("action", "work", "terms"),
    [
        (Action.MAINTENANCE, Work.REDEPLOY, {}),
        (Action.DEGRADE, None, {}),
        (Action.SERVICE, None, {"mode": ServiceMode.EVACUATE}),
    ],
)
def test_bare_metal_cannot_be_evacuated(action: Action, work: Work | None, terms: dict[str, object]) -> None:
    with pytest.raises(Conflict, match='host "gpu-0" is bare metal, and cannot be emptied'):
        fleet().maintain("gpu-0", action, work=work, **terms)


def test_a_rollout_services_bare_metal_in_place() -> None:
    host = fleet().draft.hosts[GPU]
    terms = OrderTerms(mode=ServiceMode.EVACUATE, rollout="R")
    bare_metal.check_host(host, Action.SERVICE, Work.HOST, terms)


def test_bare_metal_cannot_be_moved() -> None:
    with pytest.raises(Conflict, match='machine "gpu-0" is bare metal, and cannot be moved'):
        fleet().order("gpu-0", Action.REDEPLOY)


def test_bare_metal_that_failed_is_recovered_in_place_once_restored() -> None:
    made = fleet()
    order = made.maintain("gpu-0", Action.FAIL)
    made.finish_host(order.id, HostTask.FENCE)
    assert made.draft.orders[order.id].steps[0].state is StepState.FAILED
    made.maintain("gpu-0", Action.RESTORE)
    made.turn()
    interventions.retry(made.draft, order.id, by="olga", policy=made.policy)
    made.finish(order.id)
    assert (made.machine("gpu-0").state, made.machine("gpu-0").host) == (MachineState.RUNNING, GPU)


def test_bare_metal_does_not_wait_for_other_unreachable_hosts() -> None:
    made = fleet()
    other = next(host for name, host in made.draft.hosts.items() if name != GPU)
    made.draft.put_host(replace(other, unreachable_since=made.now))
    made.turn()
    order = made.maintain("gpu-0", Action.FAIL, fenced="its plug is pulled")
    assert made.draft.orders[order.id].steps[0].state is StepState.FAILED


def test_stopped_bare_metal_starts_where_it_is() -> None:
    made = fleet()
    eviction = made.order("gpu-0", Action.EVICT)
    made.pass_(MINUTE)
    made.finish(eviction.id)
    assert (made.machine("gpu-0").state, made.machine("gpu-0").host) == (MachineState.STOPPED, GPU)
    made.pass_(2 * MINUTE)
    start = made.order("gpu-0", Action.START)
    assert [step.target for step in made.running(start.id)] == [GPU]


def test_bare_metal_stays_down_where_it_is_when_its_recovery_is_abandoned() -> None:
    made = fleet()
    order = made.maintain("gpu-0", Action.FAIL, fenced="its plug is pulled")
    interventions.abandon(made.draft, order.id, by="olga")
    assert (made.machine("gpu-0").state, made.machine("gpu-0").host) == (MachineState.STOPPED, GPU)
    assert made.history(Kind.ORDER_ABANDONED)
