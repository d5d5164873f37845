"""Rollouts as JSON, in the manner of `operator`."""

from collections.abc import Iterable

from forewarn.core.guests import notice
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.model.waiting import Waiting
from forewarn.core.rollouts.forecast import Expected
from forewarn.wire import operator


def rollout(
    rollout_: Rollout,
    *,
    waiting: Iterable[Waiting],
    expected: tuple[Expected, ...] = (),
    warnings: Iterable[str] = (),
) -> dict[str, object]:
    """Show a rollout, why everything of it waits and, if that was asked for, what is expected of it."""
    # What is expected is so of the waves that have not begun; of the last ones perhaps nothing is.
    before = (None,) * len(rollout_.begun)
    after = (None,) * (len(rollout_.planned) - len(expected))
    times = (*before, *expected, *after)
    return {
        "id": rollout_.id or None,
        "state": rollout_.state.value,
        "aborting": rollout_.aborting,
        "action": rollout_.work.value,
        "hosts": list(rollout_.hosts),
        "hosts_at_once": rollout_.hosts_at_once,
        "gap_seconds": rollout_.gap.total_seconds(),
        "driver": rollout_.terms.driver,
        "deadline": operator.time_or_null(rollout_.terms.deadline),
        "expected_seconds": operator.seconds_or_null(rollout_.terms.expected),
        "health_seconds": rollout_.terms.health.total_seconds(),
        "require_poll": rollout_.terms.require_poll,
        "version": rollout_.version,
        "waves": [_wave(wave, when) for wave, when in zip(rollout_.waves, times, strict=True)],
        "waiting": [{"what": wait.what, "reason": wait.reason} for wait in waiting],
        "given_up": list(rollout_.abandoned),
        "notice": operator.notice_summary(
            notice.total(w.notice for w in rollout_.waves if w.notice is not None)
        ),
        "warnings": list(warnings),
        "by": rollout_.by,
        "reason": rollout_.reason or None,
        "why": rollout_.why or None,
        "created_at": operator.time(rollout_.created_at),
        "ended_at": operator.time_or_null(rollout_.ended_at),
        "ends_at": operator.time(expected[-1].end_at) if expected and not after else None,
    }


def _wave(wave: Wave, expected: Expected | None) -> dict[str, object]:
    return {
        "hosts": list(wave.hosts),
        "state": wave.state.value,
        "orders": list(wave.orders),
        "announced_at": operator.time_or_null(wave.announced_at),
        "started_at": operator.time_or_null(wave.started_at),
        "ended_at": operator.time_or_null(wave.ended_at),
        "announce_at": operator.time(expected.announce_at) if expected else None,
        "start_at": operator.time(expected.start_at) if expected else None,
        "end_at": operator.time_or_null(expected.end_at if expected else wave.ends_about),
        "stages": [_stage(stage) for stage in expected.stages] if expected else [],
    }


def _stage(stage: Expected) -> dict[str, object]:
    return {
        "announce_at": operator.time(stage.announce_at),
        "start_at": operator.time(stage.start_at),
        "end_at": operator.time(stage.end_at),
    }
