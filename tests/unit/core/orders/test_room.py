"""Capacity: a machine with requirements has a reserved host from its announcement on."""

from dataclasses import replace

from forewarn.core.basic_types import (
    Action,
    HostName,
    HostState,
    MachineId,
    Mobility,
    OrderState,
    StepState,
    Work,
)
from forewarn.core.model.changes import ROOM
from forewarn.core.model.host import HostResource
from forewarn.core.model.order import Order
from forewarn.core.orders import interventions
from tests.unit.slices import MINUTE, Fleet, machine

H1, H2, H3 = (HostName(f"host-{number}") for number in (1, 2, 3))
WEB_0 = MachineId("web-0")


def fleet(**vcpus: int) -> Fleet:
    """Place two machines of 4 vcpus on a host, beside hosts with so many vcpus."""
    made = Fleet(
        machine("web-0", resources={"vcpus": 4}),
        machine("web-1", domain=1, resources={"vcpus": 4}),
        hosts=[name.replace("_", "-") for name in vcpus],
    )
    for name, amount in vcpus.items():
        give(made, HostName(name.replace("_", "-")), amount)
    made.turn()
    return made


def give(made: Fleet, host: HostName, amount: float) -> None:
    made.draft.put_host(replace(made.draft.hosts[host], resources={"vcpus": HostResource(amount=amount)}))


def moved(made: Fleet) -> Order:
    return made.maintain(work=Work.REDEPLOY)


def targets(made: Fleet, order: Order) -> list[HostName | None]:
    return [step.target for step in made.draft.orders[order.id].steps]


def bound_for(made: Fleet, name: str = "web-0") -> HostName | None:
    return made.draft.machines[MachineId(name)].bound_for


def test_a_host_is_reserved_when_a_move_is_announced() -> None:
    made = fleet(host_2=2, host_3=4)
    order = moved(made)
    assert (order.state, targets(made, order)[0], bound_for(made)) == (OrderState.ANNOUNCED, H3, H3)
    made.turn()
    assert made.draft.room[H3].free == {"vcpus": 0}


def test_a_machine_without_room_waits_with_its_reason() -> None:
    made = fleet(host_2=2, host_3=3)
    order = moved(made)
    assert (order.state, bound_for(made)) == (OrderState.QUEUED, None)
    (wait,) = order.waiting
    assert (wait.what, wait.room) == ("web-0", True)
    assert wait.reason == "finds no host with room for it: most lack 4 vcpus"


def test_a_machine_that_waited_for_room_goes_on_when_there_is_some() -> None:
    made = fleet(host_2=2)
    order = moved(made)
    made.turn()
    give(made, H2, 4)
    assert ROOM in made.draft.changes().relieved_groups
    made.pass_(MINUTE)
    assert targets(made, made.draft.orders[order.id])[0] == H2


def test_a_machine_that_leaves_frees_its_resources() -> None:
    made = fleet(host_2=2)
    made.turn()
    made.draft.put_machine(replace(made.draft.machines[WEB_0], host=H2))
    assert ROOM in made.draft.changes().relieved_groups
    plain = Fleet(machine("web-0"))
    plain.draft.put_machine(replace(plain.draft.machines[WEB_0], size="s"))
    assert ROOM not in plain.draft.changes().relieved_groups


def test_a_label_that_no_host_has_is_named() -> None:
    made = Fleet(machine("web-0", labels={"gpu": "h100"}), hosts=["host-2"])
    assert [wait.reason for wait in moved(made).waiting] == [
        "finds no host with room for it: most lack gpu=h100"
    ]


def test_without_sound_hosts_no_requirement_is_named() -> None:
    made = fleet(host_2=8)
    made.draft.put_host(replace(made.draft.hosts[H2], state=HostState.CORDONED))
    made.draft.put_host(replace(made.draft.hosts[H1], state=HostState.CORDONED))
    made.turn()
    assert [wait.reason for wait in moved(made).waiting] == ["finds no host with room for it"]


def test_a_machine_goes_to_its_reserved_host() -> None:
    made = fleet(host_2=8, host_3=8)
    order = moved(made)
    reserved = targets(made, order)[0]
    made.pass_(15 * MINUTE)
    (first, *_) = made.draft.orders[order.id].steps
    assert (first.state, first.target) == (StepState.RUNNING, reserved)


def test_an_unsuitable_reservation_is_replaced_at_the_start() -> None:
    made = fleet(host_2=8, host_3=8)
    order = moved(made)
    reserved = targets(made, order)[0]
    assert reserved is not None
    made.turn()
    made.draft.put_host(replace(made.draft.hosts[reserved], state=HostState.CORDONED))
    made.pass_(15 * MINUTE)
    assert targets(made, order)[0] == ({H2, H3} - {reserved}).pop()


def test_a_reservation_is_replaced_if_the_host_shrinks() -> None:
    made = fleet(host_2=8, host_3=8)
    order = moved(made)
    reserved = targets(made, order)[0]
    assert reserved is not None
    made.turn()
    give(made, reserved, 1)
    made.pass_(15 * MINUTE)
    assert targets(made, order)[0] != reserved


def test_cancelling_an_order_releases_its_reservations() -> None:
    made = fleet(host_2=8)
    order = moved(made)
    made.turn()
    interventions.cancel(made.draft, order.id, by="test")
    made.turn()
    assert bound_for(made) is None
    assert made.draft.room[H2].free == {"vcpus": 8}


def test_a_machine_without_requirements_is_placed_when_it_starts() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    order = moved(made)
    assert (targets(made, order), bound_for(made)) == ([None], None)


def test_a_latecomer_gets_a_reservation() -> None:
    made = fleet(host_2=8)
    order = moved(made)
    made.turn()
    made.draft.put_machine(machine("web-2", resources={"vcpus": 4}))
    made.pass_(MINUTE)
    assert bound_for(made, "web-2") == H2
    assert order.state is OrderState.ANNOUNCED


def test_a_recovery_does_not_wait_for_room() -> None:
    made = fleet(host_2=2)
    order = made.maintain(action=Action.FAIL)
    assert not [wait for wait in order.waiting if wait.room]
    assert order.state is not OrderState.QUEUED


def test_machines_of_an_evacuation_get_reservations() -> None:
    made = fleet(host_2=8)
    order = made.service()
    assert (bound_for(made), targets(made, order)[0]) == (H2, H2)


def test_a_reservation_is_kept_while_its_order_waits() -> None:
    made = fleet(host_2=8)
    order = moved(made)
    made.turn()
    made.draft.put_order(replace(made.draft.orders[order.id], reason="kernel"))
    made.turn()
    assert bound_for(made) == H2


# Evacuations


def crowded(**free: int) -> Fleet:
    """Create two hosts with two machines each, and another with so much room."""
    made = Fleet(
        *(machine(name, resources={"vcpus": 4}, mobility=Mobility.COLD) for name in ("web-0", "db-0")),
        *(
            machine(name, "host-2", domain=1, resources={"vcpus": 4}, mobility=Mobility.COLD)
            for name in ("web-1", "db-1")
        ),
        hosts=["host-3"],
    )
    for name, amount in ({"host_1": 8, "host_2": 8} | free).items():
        give(made, HostName(name.replace("_", "-")), amount)
    made.turn()
    return made


def test_two_evacuations_do_not_hold_capacity_that_the_other_needs() -> None:
    made = crowded(host_3=8)
    first = made.service("host-1", returning=True)
    made.turn()
    second = made.service("host-2", returning=True)
    assert (first.state, second.state) == (OrderState.ANNOUNCED, OrderState.QUEUED)
    assert [(wait.what, wait.room) for wait in second.waiting if wait.room] == [
        ("db-1", True),
        ("web-1", True),
    ]
    assert made.draft.hosts[H2].state is HostState.OK


def test_an_evacuation_begins_only_if_all_machines_find_room() -> None:
    made = crowded(host_2=8, host_3=4)
    order = made.service("host-1")
    assert (order.state, made.events()) == (OrderState.QUEUED, ())
    assert made.draft.hosts[H1].state is HostState.OK
    assert [wait.what for wait in order.waiting if wait.room] == ["web-0"]


def test_machines_announced_later_keep_their_reservations_from_the_first_announcement() -> None:
    made = crowded(host_3=16)
    made.draft.put_machine(replace(made.machine("db-0"), update_domain=1, group=made.machine("web-0").group))
    order = made.service("host-1")
    assert [event.resources[0].name for event in made.events(order.id)] == ["web-0"]
    assert [bound_for(made, name) for name in ("web-0", "db-0")] == [H3, H3]
    made.pass_(MINUTE)
    assert bound_for(made, "db-0") == H3


def test_an_emergency_evacuates_as_far_as_there_is_room() -> None:
    made = crowded(host_2=8, host_3=4)
    order = made.service("host-1", emergency="coolant leak", notice=MINUTE)
    assert [event.resources[0].name for event in made.events(order.id)] == ["db-0"]
