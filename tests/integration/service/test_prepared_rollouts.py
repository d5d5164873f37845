"""Rollouts over many hosts are planned in advance, and the plan is used if it is still valid."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.control.rollouts.rollout_views import (
    LONGEST_AGE,
    MOST_HOSTS_AT_ONCE,
    RolloutPlan,
    RolloutRequest,
    RolloutViews,
)
from forewarn.core.basic_types import Action, HostName, Work
from forewarn.core.errors import NotFound
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.model.rollout import RolloutState, WaveState
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import TEST, Service, fleet, machine

HOSTS = MOST_HOSTS_AT_ONCE + 2
NAMES = tuple(HostName(f"host-{number}") for number in range(1, HOSTS + 1))
LAST = NAMES[-1]
# A host without a rollout.
ELSEWHERE = HostName(f"host-{HOSTS + 1}")
ALL = RolloutRequest(hosts=NAMES, work=Work.FREEZE, hosts_at_once=HOSTS, by="test")


def a_fleet(hosts: int = HOSTS + 1) -> FleetSpec:
    return fleet(*(machine(f"vm-{n}", f"host-{n}") for n in range(1, hosts + 1)), hosts=hosts)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(a_fleet())
    yield service
    service.close()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[RolloutRequest]:
    """Return the plans that are made in transactions."""
    made: list[RolloutRequest] = []
    plan = RolloutViews.planned

    def noted(views: RolloutViews, snapshot: object, request: RolloutRequest, now: object) -> object:
        made.append(request)
        return plan(views, snapshot, request, now)  # type: ignore[arg-type]

    monkeypatch.setattr(RolloutViews, "planned", noted)
    return made


def prepared(service: Service, request: RolloutRequest = ALL) -> RolloutPlan:
    plan = service.rollouts.prepare(request)
    assert plan is not None
    return plan


def test_a_rollout_over_few_hosts_needs_no_preparation(service: Service) -> None:
    few = RolloutRequest(hosts=NAMES[:MOST_HOSTS_AT_ONCE], work=Work.FREEZE, by="test")
    assert service.rollouts.prepare(few) is None
    begun = service.rollouts.begin(few).rollout
    assert len(begun.waves[0].orders) == 1


def test_a_valid_plan_is_not_made_again(service: Service, planned: list[RolloutRequest]) -> None:
    plan = prepared(service)
    planned.clear()
    begun = service.rollouts.begin(ALL, plan).rollout
    assert (planned, begun.id) == ([], plan.rollout.id)
    [wave] = begun.waves
    assert (wave.hosts, wave.state, wave.orders) == (NAMES, WaveState.ANNOUNCED, ())
    service.advance(hours=1)
    assert service.rollout(begun).state is RolloutState.DONE
    assert len(service.driver.begun) == HOSTS


def test_changes_elsewhere_keep_a_plan_valid(service: Service, planned: list[RolloutRequest]) -> None:
    plan = prepared(service)
    service.order(f"vm-{HOSTS + 1}", Action.RESTART)
    planned.clear()
    assert service.rollouts.begin(ALL, plan).rollout.id == plan.rollout.id
    assert planned == []


def test_a_plan_is_made_again_if_one_of_its_hosts_has_failed(service: Service) -> None:
    plan = prepared(service)
    service.host_order(LAST, Action.FAIL)
    begun = service.rollouts.begin(ALL, plan).rollout
    assert begun.waves[0].hosts == NAMES[:-1]
    assert begun.left == (LAST,)


def test_a_plan_is_refused_if_one_of_its_hosts_has_left_the_fleet(service: Service) -> None:
    plan = prepared(service, ALL)
    service.apply(a_fleet(HOSTS - 1))
    with pytest.raises(NotFound, match=LAST):
        service.rollouts.begin(ALL, plan)


def test_an_old_plan_is_made_again(service: Service, planned: list[RolloutRequest]) -> None:
    plan = prepared(service)
    service.advance(seconds=LONGEST_AGE.total_seconds() + 1)
    planned.clear()
    service.rollouts.begin(ALL, plan)
    assert planned == [ALL]


def test_hosts_that_fail_before_the_first_order_are_not_done(service: Service) -> None:
    begun = service.rollouts.begin(ALL, prepared(service)).rollout
    for host in NAMES:
        service.fleet.hosts.order_host(host, Action.FAIL, TEST)
    service.tick()
    known = service.rollout(begun)
    assert (known.begun, known.left) == ((), NAMES)


def test_a_rollout_paused_before_its_first_order_continues_when_it_is_resumed(service: Service) -> None:
    begun = service.rollouts.begin(ALL, prepared(service)).rollout
    paused = service.rollouts.pause(begun.id, by="ops").rollout
    assert (paused.begun, paused.left) == ((), NAMES)
    service.rollouts.resume(begun.id, by="ops")
    service.advance(hours=1)
    assert service.rollout(begun).state is RolloutState.DONE


def test_a_rollout_aborted_before_its_first_order_does_nothing(service: Service) -> None:
    begun = service.rollouts.begin(ALL, prepared(service)).rollout
    service.rollouts.abort(begun.id, by="ops")
    service.advance(hours=1)
    assert service.rollout(begun).state is RolloutState.ABORTED
    assert service.everything().orders == {}
