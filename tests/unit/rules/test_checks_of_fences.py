"""The checks of rule 13: machines that leave a host that may still run them."""

from dataclasses import replace

from forewarn.core.basic_types import (
    Action,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineState,
    OrderId,
    StepState,
)
from forewarn.core.model.order import Order
from forewarn.core.model.slice import Slice
from tests.unit.rules.test_checks import broken
from tests.unit.slices import Fleet, machine

RULE = "hosts_are_fenced_before_machines_leave"
HOST = HostName("host-1")


def recovered(*, fenced: str = "") -> tuple[Fleet, Slice, Slice]:
    """Return the fleet before and after a machine of a failed host is recovered on another host."""
    made = Fleet(machine("web-0"), hosts=["host-2"])
    made.turn()
    before = made.draft.base
    order = made.maintain(action=Action.FAIL, fenced=fenced)
    if not fenced:
        made.turn()
        before = made.draft.base
        made.finish_host(order.id, HostTask.FENCE)
    return made, before, made.saved()


def with_order(part: Slice, **changed: object) -> Slice:
    (order,) = part.orders.values()
    wrong: Order = replace(order, **changed)  # type: ignore[arg-type]
    return replace(part, orders={order.id: wrong})


def test_a_machine_of_a_fenced_host_may_be_recovered() -> None:
    made, before, after = recovered()
    assert RULE not in broken(before, after, made)


def test_recovering_a_machine_of_an_unfenced_host_is_found() -> None:
    made, before, after = recovered()
    assert RULE in broken(before, with_order(after, host_steps=()), made)


def test_a_recorded_confirmation_counts_as_a_fence() -> None:
    made, before, after = recovered(fenced="its plug is pulled")
    records = [each for each in made.records if each.kind == Kind.HOST_FENCED]
    assert len(records) == 1
    assert RULE not in broken(before, after, made)
    made.records.clear()
    assert RULE in broken(before, after, made)


def test_moving_a_machine_off_a_lost_host_is_found() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    order = made.order("web-0", Action.REDEPLOY)
    made.turn()
    before = made.draft.base
    made.approve(made.events(order.id)[0])
    after = made.saved()
    assert RULE not in broken(before, after, made)
    hosts = {**after.hosts, HOST: replace(after.hosts[HOST], state=HostState.LOST)}
    assert RULE in broken(before, replace(after, hosts=hosts), made)


STAYS = "machines_stay_on_hosts_that_are_not_fenced"
UP = "nothing_starts_on_a_failed_host"


def test_a_recovery_by_an_older_failure_is_found() -> None:
    made, before, after = recovered()
    (order,) = after.orders.values()
    newer = replace(order, id=OrderId("newer"), number=order.number + 1, stages=(), host_steps=())
    assert RULE in broken(before, replace(after, orders={**after.orders, newer.id: newer}), made)


def away(*, host: str | None, fenced: bool) -> tuple[Fleet, Slice, Slice]:
    """Return the fleet before and after a machine of a failed host is on another host without a step."""
    made = Fleet(machine("web-0"), hosts=["host-2"])
    made.maintain(action=Action.FAIL)
    made.turn()
    before = with_order(made.draft.base, **({"host_steps": (), **_confirmed(made)} if fenced else {}))
    found = replace(
        before.machines[made.machine("web-0").id],
        host=None if host is None else HostName(host),
        state=MachineState.STOPPED,
    )
    after = replace(before, machines={found.id: found})
    return made, before, after


def _confirmed(made: Fleet) -> dict[str, object]:
    (order,) = made.draft.base.orders.values()
    return {"terms": replace(order.terms, fenced="its plug is pulled")}


def test_a_machine_that_left_its_restored_host_without_a_fence_is_found() -> None:
    made, before, after = away(host=None, fenced=False)
    restored = {**after.hosts, HOST: replace(after.hosts[HOST], state=HostState.OK)}
    assert STAYS in broken(before, replace(after, hosts=restored), made)
    made, before, after = away(host=None, fenced=True)
    assert STAYS not in broken(before, replace(after, hosts=restored), made)


def test_a_machine_that_left_its_unfenced_host_is_found() -> None:
    for host in ("host-2", None):
        made, before, after = away(host=host, fenced=False)
        made.records.clear()
        assert STAYS in broken(before, after, made)


def test_a_machine_of_a_fenced_host_may_be_elsewhere() -> None:
    made, before, after = away(host="host-2", fenced=True)
    assert STAYS not in broken(before, after, made)
    over = replace(after, orders={}, events={})
    assert STAYS not in broken(before, over, made)


def test_a_machine_that_left_an_unfenced_host_without_a_failure_order_is_found() -> None:
    made, before, after = away(host="host-2", fenced=False)
    made.records.clear()
    before, after = (replace(each, orders={}, events={}) for each in (before, after))
    assert STAYS in broken(before, after, made)


def test_reports_and_declarations_may_move_a_machine() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    made.maintain(action=Action.FAIL)
    made.turn()
    before = made.draft.base
    known = made.machine("web-0")
    made.draft.put_machine(replace(known, host=HostName("host-2")))
    made.draft.record(Kind.MACHINE_MOVED, known)
    assert STAYS not in broken(before, made.saved(), made)


def test_a_recovery_may_end_after_its_host_failed_again() -> None:
    made, _, before = recovered()
    (order,) = before.orders.values()
    newer = replace(order, id=OrderId("newer"), number=order.number + 1, stages=(), host_steps=())
    before = replace(before, orders={**before.orders, newer.id: newer})
    found = replace(made.machine("web-0"), host=HostName("host-2"))
    made.records.clear()
    assert STAYS not in broken(before, replace(before, machines={found.id: found}), made)


def test_a_recovery_that_continues_on_a_failed_host_is_found() -> None:
    made, before, after = recovered()
    assert UP not in broken(before, after, made)
    (order,) = after.orders.values()
    (step,) = order.steps
    assert (step.state, step.target) == (StepState.RUNNING, "host-2")
    hosts = {
        **after.hosts,
        HostName("host-2"): replace(after.hosts[HostName("host-2")], state=HostState.FAILED),
    }
    assert UP in broken(before, replace(after, hosts=hosts), made)
