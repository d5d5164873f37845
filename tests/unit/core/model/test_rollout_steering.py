"""Pausing, resuming and aborting rollouts, and the effect on their hosts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.basic_types import OrderState
from forewarn.core.errors import Conflict
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import LastChange, Rollout, RolloutState, RolloutTerms, WaveState
from forewarn.core.policy import Policy
from forewarn.core.rollouts import progress
from tests.unit.core.model.test_rollout import NOW, host
from tests.unit.rollouts import begun, by_id, cancelled, done, failed, order, started

CHANGED = LastChange(what="aborted", by="ops", at=NOW)


def hosts_of(rollout: Rollout) -> list[tuple[str, ...]]:
    return [wave.hosts for wave in rollout.waves]


# Permitted changes


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"state": RolloutState.DONE, "ended_at": NOW, "last_change": CHANGED}, "rollout R is done$"),
        (
            {"state": RolloutState.ABORTED, "ended_at": NOW, "last_change": CHANGED},
            "rollout R is aborted, aborted by ops at 2026-01-05T12:00:00Z",
        ),
        ({"state": RolloutState.ABORTED, "ended_at": NOW}, "rollout R is aborted$"),
        ({"aborting": True, "why": "smoke"}, "rollout R is being aborted: smoke"),
        (
            {"version": 3, "last_change": replace(CHANGED, what="resumed", by="")},
            r"changed since version 2: it is running \(version 3\), resumed by forewarn at 2026",
        ),
    ],
)
def test_a_change_of_an_old_version_names_the_newer_change(how: dict[str, Any], message: str) -> None:
    with pytest.raises(Conflict, match=message):
        progress.check_open(begun(started(1), **how), version=2)


def test_a_change_of_the_current_version_increases_it() -> None:
    rollout = begun(started(1), version=2)
    progress.check_open(rollout, version=2)
    progress.check_open(rollout)
    changed = progress.with_change(rollout, "aborted", by="ops", now=NOW)
    assert (changed.version, changed.last_change) == (3, CHANGED)


def test_a_paused_rollout_is_not_paused_again() -> None:
    progress.check_running(begun(started(1)))
    with pytest.raises(Conflict, match="rollout R is paused already: lunch"):
        progress.check_running(begun(started(1), state=RolloutState.PAUSED, why="lunch"))


# Pausing


def paused(rollout: Rollout, *orders: Order) -> Rollout:
    return progress.paused(rollout, by_id(*orders), why="lunch", now=NOW)


def test_pausing_puts_hosts_that_were_only_announced_back_into_the_plan() -> None:
    rollout = begun(started(1), cancelled(2), planned=1, blocked=True, due_at=NOW)
    now = paused(rollout, started(1), cancelled(2))
    assert hosts_of(now) == [(host(1),), (host(2),), (host(3),)]
    assert [wave.state for wave in now.waves] == [WaveState.STARTED, WaveState.PLANNED, WaveState.PLANNED]
    assert (now.state, now.blocked, now.due_at) == (RolloutState.PAUSED, False, None)
    assert list(map(str, now.waiting)) == ["rollout R: paused: lunch"]


def test_a_wave_without_started_work_is_planned_again() -> None:
    now = paused(begun(cancelled(1), planned=1), cancelled(1))
    assert hosts_of(now) == [(host(1),), (host(2),)]
    assert now.begun == ()


def test_hosts_without_orders_are_planned_again() -> None:
    rollout = begun(started(1), cancelled(2), cancelled(3), planned=1)
    first = replace(rollout.waves[0], orders=rollout.waves[0].orders[:2])
    now = paused(replace(rollout, waves=(first, *rollout.planned)), started(1), cancelled(2))
    assert hosts_of(now) == [(host(1),), (host(2), host(3)), (host(4),)]
    assert (now.coming, now.left) == ((), (host(2), host(3), host(4)))


def test_started_and_finished_waves_do_not_change() -> None:
    assert hosts_of(paused(begun(started(1), planned=1), started(1))) == [(host(1),), (host(2),)]
    rollout = begun(done(1), planned=1)
    settled = replace(rollout, waves=(replace(rollout.waves[0], state=WaveState.DONE), *rollout.planned))
    assert paused(settled).waves == settled.waves


def test_pausing_does_not_end_the_health_checks_of_a_wave() -> None:
    rollout = begun(done(1))
    checking = replace(rollout, waves=(replace(rollout.waves[0], state=WaveState.CHECKING),))
    assert [wave.state for wave in paused(checking, done(1)).waves] == [WaveState.CHECKING]


# Resuming


def resumed(rollout: Rollout, *orders: Order, after: timedelta = timedelta()) -> Rollout:
    return progress.resumed(rollout, by_id(*orders), now=NOW + after, policy=Policy())


def test_only_a_paused_rollout_is_resumed() -> None:
    message = "rollout R is running, there is nothing to resume, aborted by ops at 2026"
    with pytest.raises(Conflict, match=message):
        resumed(begun(started(1), last_change=CHANGED), started(1))


def test_failed_orders_must_be_resolved_before_resuming() -> None:
    rollout = begun(done(1), failed(2), state=RolloutState.PAUSED)
    with pytest.raises(Conflict, match="host-2: order 2 failed: retry or abandon it"):
        resumed(rollout, done(1), failed(2))


def test_resuming_skips_abandoned_hosts_and_excuses_unhealthy_machines() -> None:
    terms = RolloutTerms(health=timedelta(minutes=10))
    rollout = begun(
        order(1, OrderState.FAILED), started(2), state=RolloutState.PAUSED, why="lunch", terms=terms
    )
    now = resumed(rollout, order(1, OrderState.FAILED), started(2), after=timedelta(hours=1))
    assert (now.state, now.why, now.waiting) == (RolloutState.RUNNING, "", ())
    assert (now.abandoned, now.excused) == ((host(1),), ("web-2",))


# Aborting


def test_aborting_cancels_queued_work_and_finishes_started_work() -> None:
    rollout = begun(started(1), cancelled(2), planned=2, blocked=True, due_at=NOW)
    now = progress.aborted(rollout, by_id(started(1), cancelled(2)), why="smoke", now=NOW)
    assert hosts_of(now) == [(host(1),)]
    assert (now.open, now.aborting, now.why) == (True, True, "smoke")
    assert (now.blocked, now.due_at) == (False, None)
