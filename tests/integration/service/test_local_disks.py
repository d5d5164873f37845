"""Machines with local disks require a label that no other host has, so none takes them after a failure."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.core.basic_types import Action, HostName, MachineState, OrderState, StepState
from forewarn.server.fleet_file import apply_file
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service

NIGHT = Path(__file__).parents[3] / "examples/night.toml"
KVM = HostName("kvm01")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    apply_file(service.use_cases.declarations, service.transact, str(NIGHT), say=lambda line: None)
    yield service
    service.close()


def test_a_machine_with_local_disks_waits_until_its_host_is_restored(
    service: Service,
) -> None:
    order = service.host_order("kvm01", Action.FAIL).order
    service.advance(minutes=10)
    steps = {f"{step.name}": step for step in service.reload(order).steps}
    others = [name for name in steps if name != "db-0"]
    assert {steps[name].state for name in others} == {StepState.DONE}
    assert KVM not in {service.machine(name).host for name in others}
    assert steps["db-0"].state is StepState.FAILED
    assert steps["db-0"].why == (
        'no sound host can take "db-0": most lack disks=kvm01; '
        "restore its host, or add or uncordon another, then retry"
    )
    service.host_order("kvm01", Action.RESTORE)
    service.orders.retry_order(order.id, by="test")
    service.advance(minutes=10)
    database = service.machine("db-0")
    assert (database.host, database.state) == (KVM, MachineState.RUNNING)
    assert service.reload(order).state is OrderState.DONE
