"""A rollout pauses when a host does not return, and continues after the decision of a person."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.core.basic_types import Action, HostName, HostState, Work
from forewarn.core.model.rollout import Rollout, RolloutState
from tests.helpers.service.harness import Service, fleet, machine


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Two hosts with a machine each and a spare one; the first host does not return from its work."""
    service = Service(f"sqlite:///{tmp_path}/lost.db")
    service.apply(fleet(machine("a", "host-1"), machine("b", "host-2"), hosts=3))
    service.driver.slow.add("work of host-1")
    yield service
    service.close()


def lost(service: Service) -> Rollout:
    begun = service.roll("host-1", "host-2", work=Work.HOST)
    service.advance(hours=3)
    assert service.everything().hosts[HostName("host-1")].state is HostState.LOST
    return service.rollout(begun)


def test_a_rollout_pauses_when_a_host_is_lost_and_names_the_choices(service: Service) -> None:
    rollout = lost(service)
    assert rollout.state is RolloutState.PAUSED
    assert "host host-1: lost" in rollout.why
    assert "`forewarn host wait host-1` gives it more time" in rollout.why


def test_a_rollout_continues_once_its_host_is_back(service: Service) -> None:
    rollout = lost(service)
    service.driver.slow.clear()
    service.advance(minutes=5)
    service.rollouts.resume(rollout.id, by="test")
    service.advance(hours=2)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert {host.state for host in service.everything().hosts.values()} == {HostState.OK}


def test_a_rollout_continues_without_a_failed_host(service: Service) -> None:
    rollout = lost(service)
    service.host_order("host-1", Action.FAIL)
    service.advance(minutes=10)
    service.rollouts.resume(rollout.id, by="test")
    service.advance(hours=2)
    assert service.rollout(rollout).state is RolloutState.DONE
    assert service.machine("a").host != "host-1"
