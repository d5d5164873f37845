"""The check of rule 13: it finds machines that leave a host which may still touch them."""

from dataclasses import replace

from forewarn.core.model.order import Order
from forewarn.core.model.slice import Slice
from forewarn.core.words import Action, HostName, HostState, HostTask, Kind
from tests.unit.slices import Fleet, machine
from tests.unit.test_checks import broken

RULE = "hosts_are_fenced_before_others_take_over"
HOST = HostName("host-1")


def recovered(*, fenced: str = "") -> tuple[Fleet, Slice, Slice]:
    """The fleet before and after a failed host is fenced, and its machine goes elsewhere."""
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


def test_a_machine_of_a_fenced_host_may_come_back_elsewhere() -> None:
    made, before, after = recovered()
    assert RULE not in broken(before, after, made)


def test_a_machine_of_a_host_that_is_not_fenced_is_found() -> None:
    made, before, after = recovered()
    assert RULE in broken(before, with_order(after, host_steps=()), made)


def test_a_vouch_is_as_good_as_a_fence_if_it_is_recorded() -> None:
    made, before, after = recovered(fenced="its plug is pulled")
    records = [each for each in made.records if each.kind == Kind.HOST_FENCED]
    assert len(records) == 1
    assert RULE not in broken(before, after, made)
    made.records.clear()
    assert RULE in broken(before, after, made)


def test_a_machine_that_another_order_moves_off_a_lost_host_is_found() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    order = made.order("web-0", Action.REDEPLOY)
    made.turn()
    before = made.draft.base
    made.approve(made.events(order.id)[0])
    after = made.saved()
    assert RULE not in broken(before, after, made)
    hosts = {**after.hosts, HOST: replace(after.hosts[HOST], state=HostState.LOST)}
    assert RULE in broken(before, replace(after, hosts=hosts), made)
