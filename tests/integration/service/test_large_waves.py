"""Waves of many hosts: orders are placed a few at a time, and other callers get their turn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.control.rollouts import rollout_cache
from forewarn.control.rollouts.rollout_engine import FEW, TOGETHER
from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.core.basic_types import Action, HostName, OrderId, OrderState, Work
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout, RolloutState, WaveState
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.store.queries.rollouts import RolloutQueries
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import START, TEST, Service, fleet, machine

HOSTS = TOGETHER + 3
LAST = HostName(f"host-{HOSTS}")


def many_hosts(*, carrying: int = HOSTS) -> FleetSpec:
    """Hosts with one machine each, except the last ones."""
    return fleet(*(machine(f"vm-{n}", f"host-{n}") for n in range(1, carrying + 1)), hosts=HOSTS)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(many_hosts())
    yield service
    service.close()


def begun(service: Service, work: Work = Work.FREEZE) -> Rollout:
    """Begin a rollout over all hosts at once; the first ones have their orders."""
    rollout = service.rollouts.begin(over_all(work)).rollout
    service.engine.tick(service.clock.now(), few=True)
    return service.rollout(rollout)


def over_all(work: Work = Work.FREEZE) -> RolloutRequest:
    hosts = tuple(HostName(f"host-{number}") for number in range(1, HOSTS + 1))
    return RolloutRequest(hosts=hosts, work=work, hosts_at_once=HOSTS, by="test")


def placed(service: Service) -> set[HostName | None]:
    """Return the hosts with an open order."""
    return {order.host for order in service.everything().orders.values() if order.open}


def hold_last(service: Service) -> str:
    return service.fleet.hosts.hold(OrderRequest(by="ops", reason="audit"), project=None, host=LAST).id


def test_all_hosts_of_a_large_wave_are_announced_for_the_same_time(
    service: Service,
) -> None:
    rollout = begun(service)
    [wave] = rollout.waves
    assert (len(wave.hosts), len(wave.orders), len(placed(service))) == (HOSTS, FEW, FEW)
    assert (wave.state, len(rollout.coming), rollout.left) == (WaveState.ANNOUNCED, HOSTS - FEW, ())
    service.tick()
    [wave] = service.rollout(rollout).waves
    orders = service.everything().orders
    assert [orders[id_].host for id_ in wave.orders] == list(wave.hosts)
    assert {order.announced_at for order in orders.values()} == {START}
    assert len(service.rollout(rollout).drivers) == HOSTS
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert len(service.driver.begun) == HOSTS


def test_a_large_wave_continues_after_a_crash(service: Service) -> None:
    rollout = begun(service)
    service.restart()
    assert len(placed(service)) == HOSTS
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_the_rest_of_a_large_wave_is_left_to_do_when_it_is_paused(service: Service) -> None:
    rollout = begun(service)
    paused = service.rollouts.pause(rollout.id, by="ops").rollout
    [wave] = paused.waves
    assert (wave.state, wave.orders, len(paused.left)) == (WaveState.PLANNED, (), HOSTS)
    service.advance(hours=1)
    assert placed(service) == set()
    service.rollouts.resume(rollout.id, by="ops")
    service.tick()
    assert len(placed(service)) == HOSTS
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_the_rest_of_a_large_wave_is_not_ordered_when_it_is_aborted(service: Service) -> None:
    rollout = begun(service)
    service.rollouts.abort(rollout.id, by="ops")
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.ABORTED
    states = [order.state for order in service.everything().orders.values()]
    assert states == [OrderState.CANCELLED] * len(states)
    assert service.driver.begun == []


def test_a_failure_of_the_first_hosts_pauses_a_large_wave(service: Service) -> None:
    rollout = begun(service)
    service.orders.cancel_order(rollout.waves[0].orders[0], by="ops")
    service.tick()
    known = service.rollout(rollout)
    assert (known.state, placed(service)) == (RolloutState.PAUSED, set())
    assert "was cancelled" in known.why


def test_a_host_that_is_held_before_its_order_is_placed_waits_for_the_next_wave(service: Service) -> None:
    rollout = begun(service)
    hold = hold_last(service)
    service.tick()
    first, second = service.rollout(rollout).waves
    assert (len(first.orders), second.hosts, second.state) == (HOSTS - 1, (LAST,), WaveState.PLANNED)
    service.advance(hours=1)
    assert len(service.driver.begun) == HOSTS - 1
    service.fleet.hosts.release(hold, by="ops")
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_host_that_fails_before_its_order_is_placed_waits_for_the_next_wave(service: Service) -> None:
    rollout = begun(service)
    service.fleet.hosts.order_host(LAST, Action.FAIL, TEST)
    service.tick()
    assert LAST not in service.rollout(rollout).begun[0].hosts
    assert service.rollout(rollout).left == (LAST,)


def test_a_host_that_leaves_before_its_order_is_placed_is_forgotten(service: Service) -> None:
    rollout = begun(service)
    spec = many_hosts(carrying=HOSTS - 1)
    service.apply(replace(spec, hosts=spec.hosts[:-1]))
    service.advance(hours=1)
    done = service.rollout(rollout)
    assert (done.state, len(done.hosts), len(done.waves)) == (RolloutState.DONE, HOSTS - 1, 1)


def test_no_machine_can_move_onto_a_host_of_its_own_large_wave(service: Service) -> None:
    service.apply(many_hosts(carrying=0))
    [wave] = begun(service, Work.REDEPLOY).waves
    assert len(wave.orders) == HOSTS


def test_fewer_orders_are_placed_at_a_time_while_callers_wait(service: Service) -> None:
    begun(service)
    service.engine.tick(service.clock.now(), few=True)
    assert len(placed(service)) == 2 * FEW
    service.engine.tick(service.clock.now())
    assert len(placed(service)) == HOSTS


def reads_of(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many orders each look at a rollout reads."""
    read: list[int] = []
    found = RolloutQueries.orders_by_id

    def noted(reads: RolloutQueries, orders: Iterable[OrderId]) -> Mapping[OrderId, Order]:
        wanted = list(orders)
        read.append(len(wanted))
        return found(reads, wanted)

    monkeypatch.setattr(RolloutQueries, "orders_by_id", noted)
    return read


def test_orders_that_this_process_has_saved_are_not_read_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reads_of(service, monkeypatch)
    rollout = begun(service)
    service.tick()
    service.advance(hours=1)
    assert (service.rollout(rollout).state, read) == (RolloutState.DONE, [])


def test_pausing_a_rollout_uses_the_orders_in_the_cache(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = begun(service)
    service.tick()
    service.advance(minutes=15)
    read = reads_of(service, monkeypatch)
    paused = service.rollouts.pause(rollout.id, by="ops").rollout
    assert (paused.state, read) == (RolloutState.PAUSED, [])


def test_the_orders_of_a_wave_are_read_once_after_a_start(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = begun(service)
    service.tick()
    service.restart()
    read = reads_of(service, monkeypatch)
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert sum(read) <= HOSTS


def test_orders_are_read_again_after_an_uncertain_commit(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = begun(service)
    service.tick()
    read = reads_of(service, monkeypatch)
    service.store.saved(None)
    service.orders.cancel_order(service.rollout(rollout).waves[0].orders[0], by="ops")
    service.tick()
    assert service.rollout(rollout).state is RolloutState.PAUSED
    assert read[0] == HOSTS - 1


def test_the_notice_of_a_large_wave_is_summed_up_some_orders_at_a_time(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout_cache, "SUMMED_AT_ONCE", 5)
    rollout = begun(service)
    service.tick()
    service.fetch("vm-1", "vm-2")
    service.advance(minutes=15)
    summed: list[int] = []
    found = RolloutQueries.events_of_orders

    def noted(reads: RolloutQueries, orders: Sequence[OrderId]) -> Sequence[Event]:
        summed.append(len(orders))
        return found(reads, orders)

    with monkeypatch.context() as patched:
        patched.setattr(RolloutQueries, "events_of_orders", noted)
        service.advance(hours=1)
    [wave] = service.rollout(rollout).waves
    assert (wave.state, max(summed), sum(summed)) == (WaveState.DONE, 5, HOSTS)
    assert wave.notice is not None
    assert (wave.notice.never, wave.notice.late) == (HOSTS - 2, 0)
