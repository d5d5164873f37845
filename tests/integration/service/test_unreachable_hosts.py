"""Unreachable hosts in store and engine: orders wait, and continue automatically."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from forewarn.cli.main import app
from forewarn.control.driver import Unknown
from forewarn.control.engine.incoming_changes import ReachabilitySaver
from forewarn.control.host_reachability import UNKNOWN, Reachability
from forewarn.control.rollouts.rollout_views import RolloutRequest
from forewarn.core.basic_types import Action, EventStatus, HostName, Kind, StepState, Work
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.declaration import FleetDefaults, HostSpec
from forewarn.core.model.rollout import RolloutState
from tests.helpers.database.transactions import InTransactions
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.scripted_driver import SCRIPTED, ScriptedDriver, make_calls
from tests.helpers.service.served import app_of, serving

SOURCE, TARGET = HostName("host-1"), HostName("host-2")


@pytest.fixture
def driver() -> ScriptedDriver:
    return ScriptedDriver()


@pytest.fixture
def service(tmp_path: Path, driver: ScriptedDriver) -> Iterator[Service]:
    """A machine on host-1, and host-2 with room for it."""
    service = Service(f"sqlite:///{tmp_path}/reach.db")
    service.more_drivers[SCRIPTED] = driver
    service.wire(service.store)
    declare(service, SOURCE, TARGET)
    service.poll("web-0")
    yield service
    service.close()


def declare(service: Service, *hosts: HostName) -> None:
    spec = fleet(machine("web-0", SOURCE))
    declared = tuple(HostSpec(name=name) for name in hosts)
    service.apply(replace(spec, hosts=declared, defaults=FleetDefaults(driver=SCRIPTED)))


def reach(service: Service) -> InTransactions:
    return InTransactions(ReachabilitySaver(service.context), service.transact)


def heard(service: Service, why: str | None, *hosts: HostName) -> None:
    """Save what a driver reports about hosts, and do the work that becomes due."""
    known = UNKNOWN.heard(why, at=service.clock.now())
    reach(service).save(dict.fromkeys(hosts or (TARGET,), known))
    service.tick()


def cut(service: Service, *hosts: HostName) -> None:
    heard(service, "no route to it", *hosts)


def test_the_json_output_names_unreachable_hosts(service: Service) -> None:
    with serving(app_of(service)) as url:
        words = ["watch", "--once", "--json", "--server", url]
        assert json.loads(CliRunner().invoke(app, words).stdout)["unreachable"] == {}
        cut(service)
        frame = json.loads(CliRunner().invoke(app, words).stdout)
    assert frame["trouble"] is None
    assert frame["unreachable"].keys() == {TARGET}
    assert frame["unreachable"][TARGET].startswith("cannot be reached since 2026-01-05 12:00:00 UTC: ")


def carry_out(service: Service, driver: ScriptedDriver) -> None:
    """Let a driver begin the waiting step, and finish it later."""
    make_calls(service, driver)
    make_calls(service, driver, seconds=120)


def history(service: Service, *kinds: Kind) -> list[tuple[str, str | None, str]]:
    found = service.views.history(HistoryFilter(kinds=frozenset(kinds)))
    return [(record.kind, record.host, record.reason) for record in reversed(found)]


def test_a_change_is_saved_with_a_record_and_survives_a_restart(service: Service) -> None:
    cut(service)
    cut(service)
    cut(service, HostName("gone"))
    service.restart()
    host, *_ = service.fleet.views.host(TARGET)
    assert host.unreachable_since == service.clock.now()
    service.advance(seconds=40)
    heard(service, None)
    heard(service, None)
    assert service.fleet.views.host(TARGET)[0].unreachable_since is None
    assert history(service, Kind.HOST_UNREACHABLE, Kind.HOST_REACHABLE) == [
        ("host-unreachable", TARGET, "no route to it"),
        ("host-reachable", TARGET, "after 40 s"),
    ]


def test_a_host_that_is_no_longer_tested_counts_as_usable(service: Service) -> None:
    cut(service)
    reach(service).save({TARGET: Reachability()})
    assert history(service, Kind.HOST_REACHABLE) == [
        ("host-reachable", TARGET, "its driver no longer tests the connection")
    ]


def test_an_order_whose_only_target_is_unreachable_continues_when_it_is_back(
    service: Service, driver: ScriptedDriver
) -> None:
    cut(service)
    placed = service.order("web-0", Action.REDEPLOY)
    (wait,) = service.reload(placed).waiting
    assert f"{wait}" == "web-0: finds no host: host-2 cannot be reached since 2026-01-05T12:00:00Z"
    service.advance(hours=2)
    assert service.events("web-0") == []
    heard(service, None)
    assert [event.status for event in service.events("web-0")] == [EventStatus.SCHEDULED]
    service.advance(minutes=15)
    carry_out(service, driver)
    assert service.machine("web-0").host == TARGET


def test_a_step_whose_target_is_unreachable_waits_and_continues_automatically(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.refusing = {TARGET: Unknown("no answer within 10 s", host=TARGET)}
    placed = service.order("web-0", Action.REDEPLOY)
    service.advance(minutes=15)
    make_calls(service, driver)
    (step,) = service.reload(placed).steps
    assert (step.state, step.attempt, step.failures, step.refused) == (StepState.WAITING, 2, 0, ())
    assert driver.asked == []  # nothing has begun
    assert service.fleet.views.host(TARGET)[0].unreachable_since == service.clock.now()
    assert ("host-unreachable", TARGET, "no answer within 10 s") in history(service, Kind.HOST_UNREACHABLE)
    service.advance(hours=1)
    make_calls(service, driver, seconds=3600)
    assert driver.asked == []
    driver.refusing = {}
    heard(service, None)
    carry_out(service, driver)
    assert driver.asked == [("begin", "web-0", 2), ("check", "web-0", 2)]
    assert service.machine("web-0").host == TARGET


def test_a_target_that_comes_and_goes_ends_no_order(service: Service, driver: ScriptedDriver) -> None:
    placed = service.order("web-0", Action.REDEPLOY)
    service.advance(minutes=15)
    driver.refusing = {TARGET: Unknown("no answer", host=TARGET)}
    for _ in range(20):
        make_calls(service, driver)
        (step,) = service.reload(placed).steps
        assert (step.state, step.failures) == (StepState.WAITING, 0)
        heard(service, None)
    driver.refusing = {}
    carry_out(service, driver)
    assert service.machine("web-0").host == TARGET
    assert len(driver.asked) == 2


def test_the_only_reachable_host_is_chosen_among_many_empty_ones(service: Service) -> None:
    """The store reads only the emptiest hosts. Unreachable ones must not hide the reachable one."""
    away = [HostName(f"away-{number:02}") for number in range(60)]
    declare(service, SOURCE, *away, HostName("there"))
    cut(service, *away)
    service.order("web-0", Action.REDEPLOY)
    service.advance(minutes=15)
    (call,) = service.calls.waiting
    assert call.task.target is not None
    assert call.task.target.name == "there"


def test_a_plan_names_unreachable_targets(service: Service) -> None:
    cut(service)
    request = RolloutRequest(hosts=(SOURCE,), work=Work.HOST, by="test")
    planned = service.rollouts.plan(request)
    (host,) = planned.emptying
    (obstacle,) = host.obstacles
    said = "finds no host with room for it; host-2 cannot be reached since 2026-01-05T12:00:00Z"
    assert (obstacle.machine, obstacle.reason) == ("web-0", said)


def test_a_rollout_waits_for_an_unreachable_host_and_continues_automatically(service: Service) -> None:
    cut(service)
    rollout = service.roll(TARGET)
    waiting = service.rollout(rollout).waiting
    assert [f"{each}" for each in waiting] == ["host-2: cannot be reached since 2026-01-05T12:00:00Z"]
    heard(service, None)
    assert service.rollout(rollout).waiting == ()
    service.advance(hours=1)
    assert service.rollout(rollout).state is RolloutState.DONE
