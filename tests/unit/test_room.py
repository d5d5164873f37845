"""Room: a machine that takes or asks something of its host has a place from its announcement on."""

from dataclasses import replace

from forewarn.core.model.host import HostResource
from forewarn.core.model.order import Order
from forewarn.core.orders import interventions
from forewarn.core.wakes import ROOM
from forewarn.core.words import Action, HostName, HostState, MachineId, OrderState, StepState, Work
from tests.unit.slices import MINUTE, Fleet, machine

H1, H2, H3 = (HostName(f"host-{number}") for number in (1, 2, 3))
WEB_0 = MachineId("web-0")


def fleet(**vcpus: int) -> Fleet:
    """Two machines of 4 vcpus on a host, and others with so many vcpus."""
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


def test_a_place_is_reserved_when_the_move_is_announced() -> None:
    made = fleet(host_2=2, host_3=4)
    order = moved(made)
    assert (order.state, targets(made, order)[0], bound_for(made)) == (OrderState.ANNOUNCED, H3, H3)
    made.turn()
    assert made.draft.room[H3].free == {"vcpus": 0}


def test_what_finds_no_room_waits_and_says_so() -> None:
    made = fleet(host_2=2, host_3=3)
    order = moved(made)
    assert (order.state, bound_for(made)) == (OrderState.QUEUED, None)
    (wait,) = order.waiting
    assert (wait.what, wait.room) == ("web-0", True)
    assert wait.reason == "finds no host with room for it: most lack 4 vcpus"


def test_what_waited_for_room_goes_on_when_there_is_some() -> None:
    made = fleet(host_2=2)
    order = moved(made)
    made.turn()
    give(made, H2, 4)
    assert ROOM in made.draft.changes().relieved_groups
    made.pass_(MINUTE)
    assert targets(made, made.draft.orders[order.id])[0] == H2


def test_a_machine_that_took_something_leaves_room() -> None:
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


def test_where_no_host_is_sound_there_is_nothing_to_name() -> None:
    made = fleet(host_2=8)
    made.draft.put_host(replace(made.draft.hosts[H2], state=HostState.CORDONED))
    made.draft.put_host(replace(made.draft.hosts[H1], state=HostState.CORDONED))
    made.turn()
    assert [wait.reason for wait in moved(made).waiting] == ["finds no host with room for it"]


def test_the_reserved_place_is_where_the_machine_goes() -> None:
    made = fleet(host_2=8, host_3=8)
    order = moved(made)
    reserved = targets(made, order)[0]
    made.pass_(15 * MINUTE)
    (first, *_) = made.draft.orders[order.id].steps
    assert (first.state, first.target) == (StepState.RUNNING, reserved)


def test_a_place_that_is_no_good_any_more_is_chosen_anew_at_the_start() -> None:
    made = fleet(host_2=8, host_3=8)
    order = moved(made)
    reserved = targets(made, order)[0]
    assert reserved is not None
    made.turn()
    made.draft.put_host(replace(made.draft.hosts[reserved], state=HostState.CORDONED))
    made.pass_(15 * MINUTE)
    assert targets(made, order)[0] == ({H2, H3} - {reserved}).pop()


def test_a_host_that_was_given_less_meanwhile_is_left() -> None:
    made = fleet(host_2=8, host_3=8)
    order = moved(made)
    reserved = targets(made, order)[0]
    assert reserved is not None
    made.turn()
    give(made, reserved, 1)
    made.pass_(15 * MINUTE)
    assert targets(made, order)[0] != reserved


def test_a_cancelled_order_gives_its_places_back() -> None:
    made = fleet(host_2=8)
    order = moved(made)
    made.turn()
    interventions.cancel(made.draft, order.id, by="test")
    made.turn()
    assert bound_for(made) is None
    assert made.draft.room[H2].free == {"vcpus": 8}


def test_a_machine_that_needs_nothing_is_placed_when_it_starts() -> None:
    made = Fleet(machine("web-0"), hosts=["host-2"])
    order = moved(made)
    assert (targets(made, order), bound_for(made)) == ([None], None)


def test_a_machine_that_comes_later_has_its_place_too() -> None:
    made = fleet(host_2=8)
    order = moved(made)
    made.turn()
    made.draft.put_machine(machine("web-2", resources={"vcpus": 4}))
    made.pass_(MINUTE)
    assert bound_for(made, "web-2") == H2
    assert order.state is OrderState.ANNOUNCED


def test_a_failed_host_waits_for_no_room() -> None:
    made = fleet(host_2=2)
    order = made.maintain(action=Action.FAIL)
    assert not [wait for wait in order.waiting if wait.room]
    assert order.state is not OrderState.QUEUED


def test_machines_that_leave_a_host_have_their_places_too() -> None:
    made = fleet(host_2=8)
    order = made.service()
    assert (bound_for(made), targets(made, order)[0]) == (H2, H2)


def test_a_place_is_kept_while_its_order_waits() -> None:
    made = fleet(host_2=8)
    order = moved(made)
    made.turn()
    made.draft.put_order(replace(made.draft.orders[order.id], reason="kernel"))
    made.turn()
    assert bound_for(made) == H2
