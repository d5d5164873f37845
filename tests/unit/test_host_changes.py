"""A host is not reached in another way while its driver is at work there."""

from dataclasses import replace

import pytest

from forewarn.core.errors import Conflict
from forewarn.core.fleet import applying
from forewarn.core.fleet.parts import FleetPart
from forewarn.core.model.declaration import HostSpec
from forewarn.core.model.order import AttemptId, HostStep, Order
from forewarn.core.orders import reports
from forewarn.core.words import EXTERNAL, HOOK, SIMULATED, HostName, HostTask, StepState, Work
from tests.unit.slices import HOUR, Fleet, machine

ONE, TWO = HostName("host-1"), HostName("host-2")


def at_work(driver: str = "libvirt", work: Work = Work.REDEPLOY) -> tuple[Fleet, Order]:
    """A machine that moves from the first host to the second."""
    fleet = Fleet(machine("web-0"), hosts=[TWO, "host-3"])
    for name, host in list(fleet.draft.hosts.items()):
        fleet.draft.hosts[name] = replace(host, driver=driver, uri=f"qemu+ssh://{name}/system")
    order = fleet.maintain(work=work, driver=driver)
    fleet.pass_(HOUR / 4)
    return fleet, fleet.draft.orders[order.id]


def declare(fleet: Fleet, host: HostName, **fields: object) -> tuple[str, ...]:
    known = fleet.draft.hosts[host]
    spec = HostSpec(**{"name": host, "driver": known.driver, "uri": known.uri, **fields})  # type: ignore[arg-type]
    return applying.apply(fleet.draft, FleetPart(hosts=(spec,)), by="olga")


@pytest.mark.parametrize("host", [ONE, TWO])
def test_a_uri_does_not_change_while_a_step_runs_there(host: HostName) -> None:
    fleet, order = at_work()
    said = f'hosts.{host}: uri: order {order.id} .maintenance. is at work there, on "web-0": change it when'
    with pytest.raises(Conflict, match=said):
        declare(fleet, host, uri="qemu+tls://elsewhere/system")
    assert fleet.draft.hosts[host].uri == f"qemu+ssh://{host}/system"


def test_all_else_may_change_meanwhile_and_the_uri_afterwards() -> None:
    fleet, order = at_work()
    assert declare(fleet, ONE, at_once=7) == ("~ host host-1: at-once none to 7",)
    fleet.finish(order.id)
    assert declare(fleet, TWO, uri="test://") == ("~ host host-2: uri qemu+ssh://host-2/system to test://",)


def test_a_host_that_has_nothing_to_do_with_it_is_declared_as_one_likes() -> None:
    fleet, _ = at_work()
    assert declare(fleet, HostName("host-3"), uri="test://")


def test_where_the_driver_cannot_tell_how_it_is_doing_another_uri_may_be_what_it_needs() -> None:
    fleet, order = at_work()
    (step,) = order.running
    reports.step_unknown(fleet.draft, AttemptId(order.id, step.machine, 1), why="no route to host-1")
    assert declare(fleet, ONE, uri="qemu+tls://host-1/system")


@pytest.mark.parametrize("driver", [SIMULATED, EXTERNAL])
def test_who_does_not_go_by_it_is_not_asked(driver: str) -> None:
    fleet, _ = at_work(driver)
    assert declare(fleet, ONE, uri="test://")


def test_a_step_of_a_machine_that_was_removed_is_nowhere() -> None:
    fleet, _ = at_work(work=Work.REBOOT)
    fleet.draft.machines.clear()
    assert declare(fleet, ONE, uri="test://")


def test_work_on_the_host_itself_is_work_there() -> None:
    fleet, _ = at_work(work=Work.REBOOT)
    order = next(iter(fleet.draft.orders.values()))
    working = HostStep(task=HostTask.FENCE, driver="libvirt", state=StepState.RUNNING)
    fleet.draft.put_order(replace(order, stages=(), host_steps=(working,)))
    with pytest.raises(Conflict, match='on "fence"'):
        declare(fleet, ONE, uri="test://")
    fleet.draft.put_order(replace(order, stages=(), host_steps=(replace(working, driver=HOOK),)))
    assert declare(fleet, ONE, uri="test://")
