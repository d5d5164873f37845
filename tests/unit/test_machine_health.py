"""Whether the machines of a wave are well again, and when that is looked at next."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from forewarn.core.model.rollout import Rollout, RolloutTerms
from forewarn.core.policy import Policy
from forewarn.core.rollouts import machine_health
from forewarn.core.words import MachineId, StageKind, StepState
from tests.unit.rollouts import begun, done, started, step
from tests.unit.test_rollout import NOW

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
POLICY = Policy()  # work is expected to take five minutes
WEB_1 = MachineId("web-1")


def rollout(**terms: Any) -> Rollout:
    """Hosts whose machines may take ten minutes to be well."""
    return begun(done(1), terms=RolloutTerms(health=10 * MINUTE, **terms))


def test_a_machine_that_polled_before_its_work_and_not_since_is_silent() -> None:
    wanted, orders = rollout(require_poll=True), [done(1)]
    (silent,) = machine_health.silent(wanted, orders, {WEB_1: NOW})
    assert silent.machine == WEB_1
    assert machine_health.silent(wanted, orders, {WEB_1: NOW + MINUTE}) == ()
    assert machine_health.silent(wanted, orders, {}) == ()
    assert machine_health.silent(wanted, [started(1)], {WEB_1: NOW}) == ()


def test_silence_matters_only_where_polls_are_required_and_to_nobody_who_gave_up() -> None:
    seen = {WEB_1: NOW}
    required = rollout(require_poll=True)
    for wanted in (rollout(), replace(required, aborting=True), replace(required, excused=(WEB_1,))):
        assert machine_health.silent(wanted, [done(1)], seen) == ()


def test_a_machine_is_unwell_when_its_work_should_have_been_over_for_longer_than_it_may_take() -> None:
    def unwell(after: timedelta, **terms: Any) -> list[str]:
        orders = [started(1), done(2)]
        found = machine_health.unwell(rollout(**terms), orders, (), now=NOW + after, policy=POLICY)
        return list(map(str, found.values()))

    late = ["web-1: is not healthy 10 m after its work should have been over"]
    assert [unwell(after) for after in (15 * MINUTE - SECOND, 15 * MINUTE)] == [[], late]
    longer = 20 * MINUTE
    assert [unwell(after, expected=longer) for after in (15 * MINUTE, 30 * MINUTE)] == [[], late]


def test_a_machine_is_unwell_when_it_has_not_polled_for_as_long_after_its_work() -> None:
    quiet = [step("web-1", StepState.DONE, ended_at=NOW)]

    def unwell(after: timedelta) -> list[str]:
        now = NOW + after
        return list(map(str, machine_health.unwell(rollout(), [], quiet, now=now, policy=POLICY).values()))

    assert unwell(10 * MINUTE - SECOND) == []
    assert unwell(10 * MINUTE) == ["web-1: has not polled again 10 m after its work"]


def test_it_is_looked_at_again_when_the_next_machine_should_be_well() -> None:
    quiet = [step("web-2", StepState.DONE, ended_at=NOW)]

    def look_at(after: timedelta) -> timedelta | None:
        now = NOW + after
        at = machine_health.look_at(rollout(), [started(1)], quiet, now=now, policy=POLICY)
        return None if at is None else at - NOW

    assert [look_at(after * MINUTE) for after in (0, 10, 15)] == [10 * MINUTE, 15 * MINUTE, None]


def test_a_machine_that_is_away_with_its_host_is_not_said_to_be_unwell() -> None:
    order = started(1)
    away = replace(order, stages=(replace(order.stages[0], kind=StageKind.HOST),))
    now = NOW + timedelta(days=1)
    assert machine_health.unwell(rollout(), [away], (), now=now, policy=POLICY) == {}
    assert machine_health.look_at(rollout(), [away], (), now=NOW, policy=POLICY) is None
