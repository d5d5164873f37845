"""The health of machines after their wave, and when it is checked next."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from forewarn.core.basic_types import Kind, MachineId, StageKind, StepState
from forewarn.core.model.order import Step
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout, RolloutTerms
from forewarn.core.policy import Policy
from forewarn.core.rollouts import machine_health
from forewarn.core.rollouts.machine_health import UnwellMachine
from tests.unit.core.model.test_rollout import NOW
from tests.unit.rollouts import begun, done, started, step

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
POLICY = Policy()  # work is expected to take five minutes
WEB_1 = MachineId("web-1")
NOT_POLLED = "has not polled again"


def mute(known: Step) -> UnwellMachine:
    return UnwellMachine(step=known, reason=NOT_POLLED)


def rollout(**terms: Any) -> Rollout:
    """Return a rollout whose machines have ten minutes to become healthy."""
    return begun(done(1), terms=RolloutTerms(health=10 * MINUTE, **terms))


def test_a_machine_that_polled_before_its_work_and_not_since_is_silent() -> None:
    wanted, orders = rollout(require_poll=True), [done(1)]
    (silent,) = machine_health.not_polling(wanted, orders, {WEB_1: NOW})
    assert (silent.step.machine, silent.reason) == (WEB_1, NOT_POLLED)
    assert machine_health.not_polling(wanted, orders, {WEB_1: NOW + MINUTE}) == ()
    assert machine_health.not_polling(wanted, orders, {}) == ()
    assert machine_health.not_polling(wanted, [started(1)], {WEB_1: NOW}) == ()


def test_silence_counts_only_if_polls_are_required_and_the_rollout_goes_on() -> None:
    seen = {WEB_1: NOW}
    required = rollout(require_poll=True)
    for wanted in (rollout(), replace(required, aborting=True), replace(required, excused=(WEB_1,))):
        assert machine_health.not_polling(wanted, [done(1)], seen) == ()


def test_a_machine_is_unhealthy_if_its_work_is_overdue_by_the_limit() -> None:
    def unwell(after: timedelta, **terms: Any) -> list[str]:
        orders = [started(1), done(2)]
        found = machine_health.unwell(rollout(**terms), orders, (), now=NOW + after, policy=POLICY)
        return list(map(str, found.values()))

    late = ["web-1: is not healthy 10 m after its work should have been over"]
    assert [unwell(after) for after in (15 * MINUTE - SECOND, 15 * MINUTE)] == [[], late]
    longer = 20 * MINUTE
    assert [unwell(after, expected=longer) for after in (15 * MINUTE, 30 * MINUTE)] == [[], late]


def test_a_machine_is_unhealthy_if_it_has_not_polled_within_the_limit() -> None:
    quiet = [mute(step("web-1", StepState.DONE, ended_at=NOW))]

    def unwell(after: timedelta) -> list[str]:
        now = NOW + after
        return list(map(str, machine_health.unwell(rollout(), [], quiet, now=now, policy=POLICY).values()))

    assert unwell(10 * MINUTE - SECOND) == []
    assert unwell(10 * MINUTE) == ["web-1: has not polled again 10 m after its work"]


def test_a_rollout_is_due_when_the_next_machine_reaches_the_limit() -> None:
    quiet = [mute(step("web-2", StepState.DONE, ended_at=NOW))]

    def look_at(after: timedelta) -> timedelta | None:
        now = NOW + after
        at = machine_health.next_limit(rollout(), [started(1)], quiet, now=now, policy=POLICY)
        return None if at is None else at - NOW

    assert [look_at(after * MINUTE) for after in (0, 10, 15)] == [10 * MINUTE, 15 * MINUTE, None]


def test_a_machine_that_restarts_with_its_host_is_not_unhealthy() -> None:
    order = started(1)
    away = replace(order, stages=(replace(order.stages[0], kind=StageKind.HOST),))
    now = NOW + timedelta(days=1)
    assert machine_health.unwell(rollout(), [away], (), now=now, policy=POLICY) == {}
    assert machine_health.next_limit(rollout(), [away], (), now=NOW, policy=POLICY) is None


# Stopped machines


def test_a_machine_that_was_stopped_outside_forewarn_is_unhealthy() -> None:
    known = step("web-1", StepState.DONE, ended_at=NOW)
    (off,) = machine_health.stopped_outside([known, step("web-2", ended_at=NOW)], {WEB_1})
    found = machine_health.unwell(rollout(), [], [off], now=NOW + 10 * MINUTE, policy=POLICY)
    assert list(map(str, found.values())) == ["web-1: is off, as its hypervisor says, 10 m after its work"]


def test_a_treated_machine_is_watched_until_it_is_excused_or_the_rollout_is_aborted() -> None:
    def treated(mine: Rollout) -> list[str]:
        return [each.name for each in machine_health.finished_steps(mine, [done(1), started(2)])]

    assert treated(rollout()) == ["web-1"]
    assert treated(replace(rollout(), excused=(WEB_1,))) == []
    assert treated(replace(rollout(), aborting=True)) == []


def test_waves_are_watched_within_the_time_limit_of_their_machines() -> None:
    mine = rollout()
    over = replace(mine, waves=(replace(mine.waves[0], ended_at=NOW),))
    assert machine_health.watched_waves(mine, now=NOW + timedelta(days=1)) == mine.begun
    assert machine_health.watched_waves(over, now=NOW + 10 * MINUTE) == over.begun
    assert machine_health.watched_waves(over, now=NOW + 10 * MINUTE + SECOND) == ()


def test_the_newest_record_tells_how_a_machine_was_stopped() -> None:
    def record(kind: Kind, reason: str) -> Record:
        return Record(number=1, at=NOW, kind=kind, order=None, event=None, by="test", reason=reason)

    others = record(Kind.MACHINE_CHANGED, "state running to stopped, outside forewarn")
    evicted, tagged = record(Kind.STEP_DONE, "evict"), record(Kind.MACHINE_CHANGED, "tags")
    assert machine_health.is_stopped_by_others([tagged, others, evicted])
    assert not machine_health.is_stopped_by_others([tagged, evicted, others])
    assert not machine_health.is_stopped_by_others([])
