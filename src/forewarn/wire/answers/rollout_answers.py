"""Rollouts and the plans of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.basic_types import SIMULATED, HostName, RolloutAction, ServiceMode
from forewarn.core.guests import notice
from forewarn.core.model.constraints import Waiting, earliest_end
from forewarn.core.model.rollout import Rollout, RolloutState, Wave, WaveState
from forewarn.core.rollouts.emptying import EvacuationCheck
from forewarn.core.rollouts.forecast import Expected
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.event_answers import NoticeAnswer
from forewarn.wire.answers.order_answers import WaitingAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStageAnswer(ApiAnswer):
    """When a stage of a wave is to be expected."""

    announce_at: datetime
    start_at: datetime
    end_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveAnswer(ApiAnswer):
    """Hosts that are done together: when that was and, of a plan or on demand, when it is to be expected."""

    hosts: tuple[str, ...]
    state: WaveState
    orders: tuple[str, ...]
    announced_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    announce_at: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    stages: tuple[ExpectedStageAnswer, ...]

    @classmethod
    def of(cls, wave: Wave, expected: Expected | None) -> Self:
        """Show a wave, and what is expected of it if that is known."""
        if expected is None:
            return cls.like(wave, announce_at=None, start_at=None, end_at=wave.ends_about, stages=())
        return cls.like(wave, expected, stages=tuple(map(ExpectedStageAnswer.like, expected.stages)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObstacleAnswer(ApiAnswer):
    """A machine that keeps its host from being emptied, and why."""

    machine: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyingAnswer(ApiAnswer):
    """Whether a host can be emptied before it is worked on."""

    host: str
    possible: bool
    machines: int  # that it carries
    obstacles: tuple[ObstacleAnswer, ...]

    @classmethod
    def of(cls, host: EvacuationCheck) -> Self:
        """Show what stands in the way."""
        return cls.like(host, obstacles=tuple(map(ObstacleAnswer.like, host.obstacles)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutAnswer(ApiAnswer):
    """Host orders in waves; a plan has no id."""

    NOUN: ClassVar = "rollout"

    id: str | None
    state: RolloutState
    aborting: bool
    action: RolloutAction
    mode: ServiceMode | None  # where hosts themselves are worked on
    returning: bool
    host_work: str | None  # who works on the hosts themselves, if that was said
    hosts: tuple[str, ...]
    hosts_done: tuple[str, ...]
    hosts_not_done: tuple[str, ...]
    hosts_at_once: int
    gap_seconds: float
    driver: str | None  # who does the work; null: not the same for all its hosts
    simulated_hosts: tuple[str, ...]  # where nothing is really done
    deadline: datetime | None
    expected_seconds: float | None
    health_seconds: float
    require_poll: bool
    whole: bool
    together: str | None
    canary: int
    soak_seconds: float
    max_failures: str  # a number of hosts, or a share of them as 2%
    version: int
    waves: tuple[WaveAnswer, ...]
    waiting: tuple[WaitingAnswer, ...]
    waiting_until: datetime | None  # when the first of these reasons ends, if that is known
    given_up: tuple[str, ...]
    notice: NoticeAnswer
    warnings: tuple[str, ...]
    emptying: tuple[EmptyingAnswer, ...]  # of a plan to work on hosts themselves; else nothing
    by: str
    reason: str | None
    why: str | None
    created_at: datetime
    ended_at: datetime | None
    ends_at: datetime | None

    @classmethod
    def of(
        cls,
        rollout: Rollout,
        *,
        waiting: Iterable[Waiting],
        drivers: Mapping[HostName, str],
        expected: tuple[Expected, ...] = (),
        warnings: Iterable[str] = (),
        emptying: Iterable[EvacuationCheck] = (),
    ) -> Self:
        """Show a rollout, why everything of it waits and, if that was asked for, what is expected of it."""
        # What is expected is so of the waves that have not begun; of the last ones perhaps nothing is.
        before = (None,) * len(rollout.begun)
        after = (None,) * (len(rollout.planned) - len(expected))
        times = (*before, *expected, *after)
        given = notice.total(wave.notice for wave in rollout.waves if wave.notice is not None)
        reasons = tuple(waiting)
        return cls.like(
            rollout,
            rollout.terms,
            host_work=rollout.terms.host_driver,
            driver=next(iter(drivers.values())) if len({*drivers.values()}) == 1 else None,
            simulated_hosts=tuple(host for host in rollout.hosts if drivers[host] == SIMULATED),
            given_up=rollout.abandoned,
            max_failures=f"{rollout.terms.max_failures}",
            waves=tuple(map(WaveAnswer.of, rollout.waves, times)),
            waiting=tuple(map(WaitingAnswer.like, reasons)),
            waiting_until=earliest_end(reasons),
            notice=NoticeAnswer.like(given),
            warnings=tuple(warnings),
            emptying=tuple(map(EmptyingAnswer.of, emptying)),
            ends_at=expected[-1].end_at if expected and not after else None,
        )
