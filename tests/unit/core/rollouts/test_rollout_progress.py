"""Progress of a rollout: its waves follow their orders, and failures name the next step."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.admission import holds
from forewarn.core.basic_types import HostTask, OrderState, StageKind, StageState, Work
from forewarn.core.model.constraints import Hold, Waiting
from forewarn.core.model.declaration import FleetDefaults, HostDrivers
from forewarn.core.model.order import Order, Stage
from forewarn.core.model.rollout import Rollout, RolloutState, RolloutTerms, Wave, WaveState
from forewarn.core.policy import Policy
from forewarn.core.rollouts import planning, progress
from forewarn.core.rollouts.machine_health import UnwellMachine
from tests.unit.core.model.test_rollout import NOW, carries, host, over, survey
from tests.unit.rollouts import announced, begun, by_id, cancelled, done, failed, order, started, step

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
POLICY = Policy()
PAUSED = RolloutState.PAUSED


def settled(rollout: Rollout, *orders: Order, after: timedelta = timedelta()) -> Rollout:
    return progress.settle(rollout, by_id(*orders), now=NOW + after)


def said(waiting: tuple[Waiting, ...]) -> list[str]:
    return list(map(str, waiting))


# Waves


def test_a_wave_starts_with_the_first_of_its_orders() -> None:
    both = begun(announced(1), announced(2))
    (wave,) = settled(both, announced(1), announced(2)).waves
    assert (wave.state, wave.started_at) == (WaveState.ANNOUNCED, None)
    (wave,) = settled(both, announced(1), started(2)).waves
    assert (wave.state, wave.started_at) == (WaveState.STARTED, NOW)


def test_work_on_an_empty_host_has_begun_although_no_machine_left() -> None:
    left = Stage(steps=(), kind=StageKind.EVACUATE, state=StageState.DONE)
    worked_on = Stage(steps=(), kind=StageKind.HOST, state=StageState.DONE)
    announced_without_groups = replace(worked_on, state=StageState.ANNOUNCED)
    assert not progress.has_begun(replace(announced(1), stages=(left, announced_without_groups)))
    assert progress.has_begun(replace(started(1), stages=(left, worked_on)))


def test_a_wave_ends_with_the_last_of_its_orders() -> None:
    both = begun(done(1), done(2), planned=1)
    assert settled(both, done(1), started(2)).waves[0].state is WaveState.STARTED
    wave, planned = settled(both, done(1), done(2, ended_at=NOW + MINUTE), after=2 * MINUTE).waves
    assert (wave.state, wave.ended_at) == (WaveState.DONE, NOW + MINUTE)
    assert planned.state is WaveState.PLANNED


def test_a_wave_does_not_end_while_orders_are_still_to_be_placed() -> None:
    both = begun(done(1), done(2))
    first = replace(both, waves=(replace(both.waves[0], orders=both.waves[0].orders[:1]),))
    assert first.coming == (host(2),)
    assert settled(first, done(1)).waves[0].state is WaveState.STARTED


def test_a_wave_whose_machines_must_poll_ends_when_they_have() -> None:
    rollout = progress.settle(begun(done(1)), by_id(done(1)), [step("web-1", ended_at=NOW)], now=NOW)
    assert (rollout.state, rollout.waves[0].state) == (RolloutState.RUNNING, WaveState.CHECKING)
    over_ = settled(rollout, done(1), after=MINUTE)
    assert (over_.state, over_.waves[0].state) == (RolloutState.DONE, WaveState.DONE)
    assert (over_.ended_at, over_.waves[0].ended_at) == (NOW + MINUTE, NOW + MINUTE)


def checking(**more: Any) -> Rollout:
    """Finish the work on a host whose machines have not polled again."""
    rollout = begun(done(1), **more)
    return replace(rollout, waves=(replace(rollout.waves[0], state=WaveState.CHECKING),))


def test_no_poll_ends_a_wave_of_a_paused_rollout() -> None:
    same = settled(checking(state=PAUSED, why="lunch"), done(1))
    assert (same.state, same.waves[0].state) == (PAUSED, WaveState.CHECKING)
    assert said(same.waiting) == ["rollout R: paused: lunch"]


def test_finished_waves_and_aborted_rollouts_wait_for_no_poll() -> None:
    work_over = settled(begun(done(1), planned=1, state=PAUSED), done(1))
    assert (work_over.state, work_over.waves[0].state) == (PAUSED, WaveState.DONE)
    assert settled(checking(state=PAUSED, aborting=True), done(1)).state is RolloutState.ABORTED


# Failures


@pytest.mark.parametrize(
    ("mine", "reason"),
    [
        (failed(1), "order 1 failed: retry or abandon it"),
        (
            failed(1, waiting=(Waiting(what="web-1", reason="it burns"),)),
            "order 1 failed (web-1 it burns): retry or abandon it",
        ),
        (cancelled(1), "order 1 was cancelled: paused"),
        (order(1, OrderState.FAILED, why="abandoned"), "order 1 was failed: abandoned"),
    ],
)
def test_a_failed_order_names_the_next_step(mine: Order, reason: str) -> None:
    assert said(progress.trouble(begun(mine), by_id(mine))) == [f"host-1: {reason}"]


def test_abandoned_and_settled_orders_are_no_trouble() -> None:
    mine = failed(1)
    assert progress.trouble(begun(mine, abandoned=(host(1),)), by_id(mine)) == ()
    assert progress.trouble(begun(mine), {}) == ()
    assert progress.trouble(begun(done(1)), by_id(done(1))) == ()


def test_stuck_reasons_come_from_open_orders() -> None:
    waits = (Waiting(what="web", reason="crowded", stuck=True), Waiting(what="web", reason="not yet"))
    stuck, over_ = announced(1, waiting=waits), done(2, waiting=waits)
    assert said(progress.stuck(begun(stuck, over_), by_id(stuck, over_))) == ["web: crowded"]


def test_a_paused_rollout_names_its_reason_and_failures() -> None:
    assert said(settled(begun(failed(1), state=PAUSED, why="lunch"), failed(1)).waiting) == [
        "rollout R: paused: lunch",
        "host-1: order 1 failed: retry or abandon it",
    ]


def test_started_work_is_finished_before_an_abort_is_complete() -> None:
    aborting = begun(failed(1), started(2), done(3), aborting=True)
    busy = settled(aborting, failed(1), started(2), done(3))
    assert busy.open
    assert said(busy.waiting) == [
        "host-1: order 1 failed: retry or abandon it",
        "host-2: started work is finished before the rollout is aborted",
    ]
    over_ = settled(aborting, order(1, OrderState.FAILED), done(2), done(3))
    assert (over_.state, over_.ended_at, over_.abandoned) == (RolloutState.ABORTED, NOW, (host(1),))


def test_a_rollout_is_done_when_no_host_is_left_and_none_failed() -> None:
    over_ = settled(begun(done(1)), done(1))
    assert (over_.state, over_.ended_at) == (RolloutState.DONE, NOW)
    assert settled(over_, done(1), after=MINUTE) == over_
    assert settled(begun(done(1), planned=1), done(1)).open
    assert settled(begun(cancelled(1)), cancelled(1)).open


# Due times


def due(rollout: Rollout, *orders: Order, after: timedelta = timedelta()) -> timedelta | None:
    at = planning.with_due_time(rollout, by_id(*orders), now=NOW + after, policy=POLICY).due_at
    return None if at is None else at - NOW


def test_a_rollout_with_a_wave_under_way_is_due_when_its_machines_should_be_healthy() -> None:
    rollout = begun(started(1), terms=RolloutTerms(health=10 * MINUTE))
    assert due(rollout, started(1)) == 15 * MINUTE


def test_a_rollout_that_waits_for_polls_is_due_every_five_seconds() -> None:
    assert due(checking(), done(1), after=MINUTE) == MINUTE + 5 * SECOND


@pytest.mark.parametrize("how", [{"state": PAUSED}, {"aborting": True}])
def test_a_rollout_that_waits_for_a_person_or_its_orders_has_no_due_time(how: dict[str, Any]) -> None:
    assert due(begun(started(1), **how), started(1)) is None


def resting(**more: Any) -> Rollout:
    """Finish the first host now; the other one waits for ten minutes."""
    plan = over(survey(carries(web={0: 1}), carries(web={0: 1})), gap=10 * MINUTE)
    first = Wave(hosts=(host(1),), state=WaveState.DONE, ended_at=NOW)
    return replace(plan, waves=(first, Wave(hosts=(host(2),))), **more)


def test_after_the_gap_a_rollout_has_no_other_due_time() -> None:
    assert [due(resting(), after=after * MINUTE) for after in (9, 10)] == [10 * MINUTE, None]


def test_the_next_wave_names_the_gap_that_it_waits_for() -> None:
    gap = "host-2: wave 2 waits for the gap after wave 1, until 2026-01-05T12:10:00Z"
    assert said(planning.reasons(resting(), now=NOW)) == [gap]
    assert planning.reasons(resting(), now=NOW + 10 * MINUTE) == ()


@pytest.mark.parametrize("how", [{"ended_at": NOW}, {"aborting": True}])
def test_a_rollout_without_a_next_wave_keeps_only_its_known_reasons(how: dict[str, Any]) -> None:
    known = (Waiting(what="host-1", reason="is finished"),)
    assert planning.reasons(resting(waiting=known, **how), now=NOW) == known


# Drivers


def test_the_driver_of_a_host_is_the_requested_the_used_or_the_declared_one() -> None:
    known = HostDrivers(defaults=FleetDefaults(driver="simulated"), own={host(2): "external"})
    rollout = begun(started(1), planned=2, drivers={host(1): "command"})
    assert list(rollout.driven_by(known).values()) == ["command", "external", "simulated"]
    asked = replace(rollout, terms=RolloutTerms(driver="libvirt"))
    assert set(asked.driven_by(known).values()) == {"libvirt"}


def test_host_work_may_have_another_driver_than_the_moves() -> None:
    known = HostDrivers(defaults=FleetDefaults(driver="simulated"), own={})
    moving = replace(begun(started(1)), terms=RolloutTerms(driver="libvirt"))
    serviced = replace(moving, work=Work.HOST)
    asked = replace(serviced, terms=RolloutTerms(driver="libvirt", host_driver="external"))
    by_hook = [HostTask.WORK]
    assert set(serviced.driven_by(known).values()) == {"libvirt"}
    assert set(serviced.driven_by(known, by_hook).values()) == {"hook"}
    assert set(asked.driven_by(known, by_hook).values()) == {"external"}
    assert set(moving.driven_by(known, by_hook).values()) == {"libvirt"}


# Stopped machines, and holds


def test_the_next_wave_waits_while_a_machine_of_the_last_is_off() -> None:
    rollout = settled(begun(done(1), planned=1), done(1))
    quiet = [UnwellMachine(step=step("web-1", ended_at=NOW), reason="is off, as its hypervisor says,")]
    later = planning.with_due_time(rollout, by_id(done(1)), quiet, now=NOW, policy=POLICY)
    assert later.due_at == NOW + 5 * SECOND
    assert said(later.waiting) == ["web-1: is off, as its hypervisor says, since its work"]


def test_holds_that_begun_hosts_wait_for_are_listed() -> None:
    there = Hold(id="1", reason="audit", by="ops", at=NOW, host=host(1))
    other = replace(there, id="2", host=host(2))
    waits = (*holds.reaching([there], hosts=[host(1)], projects=[]), Waiting(what="web-1", reason="runs"))
    orders = by_id(started(1, waiting=waits), done(2, waiting=waits))
    assert said(progress.held(orders, [there, other])) == ["host host-1: held by ops: audit"]
    assert progress.held(orders, [other]) == ()
