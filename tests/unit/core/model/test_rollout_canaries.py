"""Canaries and failure limits of rollouts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.basic_types import HostTask, OrderState, StepState
from forewarn.core.model.order import HostStep
from forewarn.core.model.rollout import FailureLimit, Rollout, RolloutState, WaveState
from forewarn.core.model.slice import HostSurvey
from forewarn.core.policy import Policy
from forewarn.core.rollouts import forecast, planning, progress
from tests.unit.core.model.test_rollout import NOW, carries, host, over, survey
from tests.unit.rollouts import begun, by_id, done, failed, order, started, step

HOUR = timedelta(hours=1)
GROUND = survey(*(carries(web={0: 1}) for _ in range(5)))


def wanted(ground: HostSurvey = GROUND, *, gap: timedelta = timedelta(), **terms: Any) -> Rollout:
    rollout = over(ground, gap=gap)
    return planning.replan(replace(rollout, terms=replace(rollout.terms, **terms), waves=()), ground)


def hosts_of(rollout: Rollout) -> list[tuple[str, ...]]:
    return [wave.hosts for wave in rollout.waves]


def with_first_wave_over(rollout: Rollout) -> Rollout:
    first, *rest = rollout.waves
    over_ = replace(first, state=WaveState.DONE, orders=("1",), ended_at=NOW)
    return replace(rollout, waves=(over_, *rest))


# Canaries


def test_canaries_have_a_wave_of_their_own() -> None:
    assert hosts_of(wanted(canary=2)) == [(host(1), host(2)), (host(3), host(4), host(5))]


def test_canaries_that_exclude_each_other_still_come_before_all_others() -> None:
    ground = survey(carries(web={0: 1}), carries(web={1: 1}), carries(web={0: 1}))
    assert hosts_of(wanted(ground, canary=2)) == [(host(1),), (host(2),), (host(3),)]


def test_nothing_is_announced_during_the_soak() -> None:
    rollout = with_first_wave_over(wanted(canary=1, soak=HOUR))
    assert planning.rest_ends_at(rollout) == NOW + HOUR
    assert not planning.is_ready(rollout, now=NOW + HOUR - timedelta(seconds=1))
    assert planning.is_ready(rollout, now=NOW + HOUR)
    first = planning.reasons(rollout, now=NOW)[0]
    assert (first.what, first.until) == (host(2), NOW + HOUR)
    assert first.reason.startswith("wave 2 waits for the soak time of the canaries, until ")


def test_a_gap_longer_than_the_soak_applies() -> None:
    rollout = with_first_wave_over(wanted(gap=2 * HOUR, canary=1, soak=HOUR))
    assert planning.rest_ends_at(rollout) == NOW + 2 * HOUR
    assert "waits for the gap after wave 1" in planning.reasons(rollout, now=NOW)[0].reason


def test_the_soak_begins_after_the_last_canary() -> None:
    ground = survey(carries(web={0: 1}), carries(web={1: 1}), carries(web={0: 1}))
    rollout = with_first_wave_over(wanted(ground, canary=2, soak=HOUR))
    assert planning.rest_ends_at(rollout) == NOW


def test_all_other_hosts_wait_for_a_blocked_canary() -> None:
    ground = replace(GROUND, orders={host(1): order(9, OrderState.STARTED)})
    rollout, chosen = planning.next_wave(wanted(ground, canary=1), ground, now=NOW, policy=Policy())
    assert (chosen, rollout.blocked) == ((), True)


def test_the_forecast_includes_the_soak() -> None:
    rollout = wanted(canary=1, soak=HOUR)
    arranged, expected = forecast.forecast(rollout, GROUND, now=NOW, policy=Policy())
    assert hosts_of(arranged) == hosts_of(rollout)
    assert expected[1].announce_at == expected[0].end_at + HOUR
    assert forecast.wave_times(rollout, GROUND, now=NOW, policy=Policy()) == expected


# Failures


@pytest.mark.parametrize(
    ("limit", "allowed", "written"),
    [
        (FailureLimit(amount=3), 3, "3"),
        (FailureLimit(amount=2, percent=True), 10, "2%"),
        (FailureLimit(amount=0.5, percent=True), 2, "0.5%"),
        (FailureLimit(), 0, "0"),
    ],
)
def test_a_failure_limit_is_a_number_or_a_percentage_rounded_down(
    limit: FailureLimit, allowed: int, written: str
) -> None:
    assert (limit.of(500), f"{limit}") == (allowed, written)


def bearing(amount: int, *orders: Any, **more: Any) -> Rollout:
    rollout = begun(*orders, **more)
    return replace(rollout, terms=replace(rollout.terms, max_failures=FailureLimit(amount=amount)))


def test_a_failed_host_is_skipped_within_the_failure_limit() -> None:
    orders = (failed(1), started(2))
    rollout = bearing(1, *orders)
    assert progress.trouble(rollout, by_id(*orders)) == ()
    assert progress.orders_to_abandon(rollout, by_id(*orders)) == (orders[0],)
    assert progress.without(rollout, [host(1)]).failures_left == 0


def test_beyond_the_failure_limit_all_failures_are_reported() -> None:
    orders = (failed(1), failed(2))
    rollout = bearing(1, *orders)
    assert [wait.what for wait in progress.trouble(rollout, by_id(*orders))] == [host(1), host(2)]
    assert progress.orders_to_abandon(rollout, by_id(*orders)) == ()


def test_skipped_hosts_count_towards_the_failure_limit() -> None:
    orders = (failed(1), done(2))
    rollout = bearing(1, *orders, abandoned=(host(2),))
    assert [wait.what for wait in progress.trouble(rollout, by_id(*orders))] == [host(1)]


def test_a_failed_host_is_not_skipped_while_its_other_machines_are_worked_on() -> None:
    mine = started(1)
    stage = replace(mine.stages[0], steps=(*mine.stages[0].steps, step("web-x", StepState.FAILED)))
    half = replace(mine, state=OrderState.FAILED, stages=(stage,))
    rollout = bearing(1, half)
    assert progress.orders_to_abandon(rollout, by_id(half)) == ()
    assert progress.trouble(rollout, by_id(half)) == ()


@pytest.mark.parametrize("stopped", [{"state": RolloutState.PAUSED}, {"aborting": True}])
def test_a_rollout_that_is_not_running_skips_no_host(stopped: dict[str, Any]) -> None:
    mine = failed(1)
    rollout = bearing(1, mine, **stopped)
    assert progress.orders_to_abandon(rollout, by_id(mine)) == ()
    assert len(progress.trouble(rollout, by_id(mine))) == 1


def test_an_unhealthy_host_pauses_a_rollout_whatever_its_failure_limit() -> None:
    health = HostStep(task=HostTask.HEALTH, driver="hook", state=StepState.FAILED, why="fans")
    rollout = begun(failed(1, host_steps=(health,)), planned=3)
    rollout = replace(rollout, terms=replace(rollout.terms, max_failures=FailureLimit(amount=3)))
    orders = by_id(failed(1, host_steps=(health,)))
    assert progress.orders_to_abandon(rollout, orders) == ()
    assert progress.trouble(rollout, orders)
    assert not progress.trouble(rollout, by_id(failed(1)))
