"""Rollouts of work on hosts themselves, with the simulated driver."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.control.driver import Done, Failed
from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    GroupName,
    HostName,
    HostState,
    HostTask,
    Mobility,
    OrderState,
    ServiceMode,
    StageKind,
    Work,
)
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.model.rollout import DEFAULT_TERMS, FailureLimit, Rollout, RolloutState, RolloutTerms
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.redaction import unmarked
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.scripted_driver import ScriptedDriver
from tests.integration.service.test_host_steps import make_calls


def racks() -> FleetSpec:
    """Two hosts with domain 0 of web and one with domain 1; host-4 is empty and host-5 keeps its machine."""
    return fleet(
        group("web"),
        machine("web-0", "host-1", group="web", domain=0, mobility=Mobility.LIVE),
        machine("web-1", "host-2", group="web", domain=0),
        machine("web-2", "host-3", group="web", domain=1),
        machine("pinned", "host-5", mobility=Mobility.NONE),
        hosts=5,
    )


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(racks())
    yield service
    service.close()


def planned(*hosts: str, terms: RolloutTerms = DEFAULT_TERMS) -> RolloutRequest:
    return RolloutRequest(hosts=tuple(map(HostName, hosts)), work=Work.HOST, terms=terms, by="test")


def carried(service: Service, host: str) -> list[str]:
    return sorted(each.name for each in service.everything().machines.values() if each.host == host)


def test_the_hosts_of_a_wave_are_emptied_and_worked_on_together(service: Service) -> None:
    # A third host is interchangeable with the two, so both may be emptied at once.
    service.put("web-3", host=HostName("host-4"), group=GroupName("web"))
    rollout = service.roll("host-1", "host-2", "host-3", work=Work.HOST, hosts_at_once=3)
    assert [wave.hosts for wave in rollout.waves] == [("host-1", "host-2"), ("host-3",)]
    orders = [service.views.order(id_).order for id_ in rollout.waves[0].orders]
    assert {order.action for order in orders} == {Action.SERVICE}
    assert service.everything().hosts[HostName("host-1")].state is HostState.CORDONED
    service.advance(minutes=30)
    # Neither machine moved to the other host, which is worked on too.
    assert not {"web-0", "web-1"} & {*carried(service, "host-1"), *carried(service, "host-2")}
    service.advance(hours=2)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert {host.state for host in service.everything().hosts.values()} == {HostState.OK}
    assert any("service of 3 hosts" in each.reason for each in service.history())


def test_machines_return_on_request(service: Service) -> None:
    rollout = service.roll("host-1", work=Work.HOST, terms=RolloutTerms(returning=True))
    service.advance(hours=2)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert carried(service, "host-1") == ["web-0"]


def test_in_place_all_restart_with_their_host(service: Service) -> None:
    rollout = service.roll("host-1", work=Work.HOST, terms=RolloutTerms(mode=ServiceMode.IN_PLACE))
    (order,) = (service.views.order(id_).order for id_ in rollout.waves[0].orders)
    assert [stage.kind for stage in order.stages] == [StageKind.HOST]
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert carried(service, "host-1") == ["web-0"]


def test_two_domains_that_would_restart_together_need_a_reason(
    service: Service,
) -> None:
    service.put("web-2", host=HostName("host-1"))
    service.roll("host-1", work=Work.HOST)  # they can leave one after the other
    in_place = RolloutTerms(mode=ServiceMode.IN_PLACE)
    with pytest.raises(Conflict, match="Move machines away, evacuate them"):
        service.roll("host-1", work=Work.HOST, overlap=True, terms=in_place)
    together = replace(in_place, together="firmware")
    plan = service.rollouts.plan(planned("host-1", terms=together))
    assert len(plan.expected[0].stages) == 1


def test_options_for_work_on_hosts_are_refused_elsewhere(service: Service) -> None:
    for terms in (RolloutTerms(returning=True), RolloutTerms(mode=ServiceMode.EVACUATE)):
        with pytest.raises(Invalid, match='only beside action "service"'):
            service.roll("host-1", terms=terms)
    with pytest.raises(Invalid, match="host_work: expected"):
        service.roll("host-1", work=Work.HOST, terms=RolloutTerms(host_driver="nobody"))
    with pytest.raises(Invalid, match="whole: always the case for work on the host itself"):
        service.roll("host-1", work=Work.HOST, terms=RolloutTerms(whole=True))


def test_empty_hosts_are_worked_on_at_once(service: Service) -> None:
    rollout = service.roll("host-4", work=Work.HOST)
    service.advance(minutes=10)
    assert service.rollout(rollout).state is RolloutState.DONE


def test_a_pause_withdraws_announced_hosts(service: Service) -> None:
    rollout = service.roll("host-5", work=Work.HOST)
    service.rollouts.pause(rollout.id, by="test")
    order = service.views.order(rollout.waves[0].orders[0]).order
    assert order.state is OrderState.CANCELLED
    assert service.everything().hosts[HostName("host-5")].state is HostState.OK
    service.rollouts.resume(rollout.id, by="test")
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE


def begun(service: Service, kind: str) -> list[str]:
    return [f"{each.machine or each.reason}" for each in service.history() if each.kind == kind]


def leaving(service: Service) -> Rollout:
    """Let web-0 leave host-1, where solo-0 waits for its NotBefore."""
    service.put("solo-0", host=HostName("host-1"))
    rollout = service.roll("host-1", "host-3", work=Work.HOST, terms=RolloutTerms(returning=True))
    [event] = [each for each in service.everything().events.values() if each.group == "web"]
    service.orders.approve_event(event.id, by="ops")
    return rollout


@pytest.mark.parametrize("paused", [True, False])
@pytest.mark.parametrize("ticked", [True, False])
def test_after_an_abort_no_machine_moves_and_no_host_is_worked_on(
    service: Service, paused: bool, ticked: bool
) -> None:
    rollout = leaving(service)
    if ticked:
        service.tick()
    if paused:
        service.rollouts.pause(rollout.id, by="ops")
    moved, known = begun(service, "step-begun"), len(begun(service, "event-scheduled"))
    assert moved == ["web-0"]
    service.rollouts.abort(rollout.id, by="ops", reason="smoke")
    for minutes in (1, 10, 120):
        service.advance(minutes=minutes)
    now = service.rollout(rollout)
    assert (now.state, now.hosts_done, now.abandoned) == (RolloutState.ABORTED, (), ("host-1",))
    assert (begun(service, "step-begun"), len(begun(service, "event-scheduled"))) == (moved, known)
    order = service.views.order(now.waves[0].orders[0]).order
    assert unmarked(order.why) == (
        f"rollout {rollout.id} is aborted: by ops: smoke; machines that have moved stay there: "
        "web-0 on host-2"
    )
    assert (carried(service, "host-1"), carried(service, "host-2")) == (["solo-0"], ["web-0", "web-1"])
    assert {host.state for host in service.everything().hosts.values()} == {HostState.OK}
    assert service.everything().events == {}


def test_an_abort_ends_immediately_if_nothing_runs(service: Service) -> None:
    rollout = leaving(service)
    service.advance(minutes=8)  # its event is over; the other one waits for its NotBefore
    aborted = service.rollouts.abort(rollout.id, by="ops").rollout
    assert aborted.state is RolloutState.ABORTED
    assert [wave.hosts for wave in aborted.waves] == [("host-1",)]
    assert service.everything().hosts[HostName("host-1")].state is HostState.OK
    with pytest.raises(Conflict, match="is aborted"):
        service.rollouts.abort(rollout.id, by="ops")


def test_a_waiting_abort_cannot_be_repeated(service: Service) -> None:
    rollout = leaving(service)
    service.rollouts.abort(rollout.id, by="ops")
    with pytest.raises(Conflict, match="is being aborted: by ops"):
        service.rollouts.abort(rollout.id, by="otto")


def test_an_abort_survives_a_restart(service: Service) -> None:
    rollout = leaving(service)
    service.rollouts.abort(rollout.id, by="ops")
    service.restart()
    service.advance(hours=2)
    assert service.rollout(rollout).state is RolloutState.ABORTED
    assert begun(service, "step-begun") == ["web-0"]


def test_a_host_that_does_not_come_back_pauses_its_rollout(service: Service) -> None:
    terms = RolloutTerms(host_driver=EXTERNAL, health=timedelta(days=1))
    rollout = service.roll("host-4", "host-5", work=Work.HOST, terms=terms)
    service.advance(hours=2)
    now = service.rollout(rollout)
    assert now.state is RolloutState.PAUSED
    assert "host host-4" in now.why
    assert "lost" in now.why
    with pytest.raises(Conflict, match="lost"):
        service.host_order("host-4", Action.MAINTENANCE, Work.FREEZE)
    plan = service.rollouts.plan(planned("host-4"))
    assert any("is lost: fail it, or wait for it" in wait.reason for wait in plan.waiting)


def test_failed_hosts_are_skipped_and_receive_no_machines(service: Service) -> None:
    terms = RolloutTerms(host_driver=EXTERNAL, max_failures=FailureLimit(amount=1))
    rollout = service.roll("host-5", "host-4", work=Work.HOST, terms=terms)
    service.advance(minutes=20)
    order = rollout.waves[0].orders[0]
    service.orders.fail_order(order, by="test", why="no image")
    service.tick()
    now = service.rollout(rollout)
    assert now.abandoned == (HostName("host-5"),)
    left = service.everything().hosts[HostName("host-5")]
    assert (left.state, left.cordoned_for) == (HostState.CORDONED, None)
    assert now.state is RolloutState.RUNNING


def test_a_host_cordoned_by_others_stays_cordoned(service: Service) -> None:
    service.fleet.hosts.order_host(HostName("host-4"), Action.CORDON, OrderRequest(by="test"))
    rollout = service.roll("host-4", work=Work.HOST)
    service.advance(minutes=10)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert service.everything().hosts[HostName("host-4")].state is HostState.CORDONED


def test_a_host_that_cannot_be_emptied_is_skipped_after_all_attempts(service: Service) -> None:
    service.put("solo", host=HostName("host-1"))
    service.driver.failing.add("web-0")
    terms = RolloutTerms(max_failures=FailureLimit(amount=1))
    rollout = service.roll("host-1", "host-3", work=Work.HOST, terms=terms)
    service.advance(hours=3)
    now = service.rollout(rollout)
    assert (now.state, now.abandoned) == (RolloutState.DONE, (HostName("host-1"),))
    assert service.everything().hosts[HostName("host-1")].state is HostState.OK
    assert carried(service, "host-1") == ["web-0"]  # machines that have left stay there
    tried = [(each.kind, each.reason) for each in service.history() if each.machine == "web-0"]
    said = [reason for kind, reason in tried if kind == "order-retried"]
    assert said == [
        "is moved again, attempt 2 of 2",
        "cannot be moved live: it is redeployed, with notice of its own",
        "is moved again, attempt 2 of 2",
    ]
    assert [task[2] for task in service.driver.begun if task[1] == "web-0"] == [1, 2, 3, 4]


def test_the_next_wave_waits_for_healthy_hosts_and_an_unhealthy_one_pauses_the_rollout(
    service: Service,
) -> None:
    hook = ScriptedDriver()
    hook.begins = [Done(), Failed("3 of 4 fans turn")]
    service.policy = replace(service.policy, hooks=frozenset({HostTask.HEALTH}))
    service.more_drivers["hook"] = hook
    service.restart()
    terms = RolloutTerms(max_failures=FailureLimit(amount=2))
    rollout = service.roll("host-1", "host-3", "host-5", terms=terms)
    for _ in range(2):
        service.advance(minutes=20)
        assert len(service.rollout(rollout).begun) == len(hook.asked) + 1
        make_calls(service, hook)
    now = service.rollout(rollout)
    assert [each[1] for each in hook.asked] == ["health of host-1", "health of host-3"]
    assert now.state is RolloutState.PAUSED
    assert "health of host host-3 failed: its hook says: 3 of 4 fans turn" in now.why
