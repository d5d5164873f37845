"""Answers about rollouts and their plans."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.basic_types import SIMULATED, HostName, RolloutAction, ServiceMode
from forewarn.core.guests import notice
from forewarn.core.model.constraints import Waiting, earliest_end
from forewarn.core.model.rollout import Rollout, RolloutState, Wave, WaveState
from forewarn.core.rollouts.forecast import Expected
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.event_answers import NoticeAnswer
from forewarn.wire.answers.order_answers import WaitingAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStageAnswer(ApiAnswer):
    """Expected times of a stage of a wave."""

    announce_at: datetime  #: Expected announcement, in service time.
    start_at: datetime  #: Expected start, in service time.
    end_at: datetime  #: Expected end, in service time.


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveAnswer(ApiAnswer):
    """Hosts that a rollout works on together."""

    hosts: tuple[str, ...]  #: Names of the hosts.
    state: WaveState  #: State of the wave.
    orders: tuple[str, ...]  #: Ids of the orders so far, in the order of `hosts`.
    announced_at: datetime | None  #: When the wave was announced, in service time. Null: not announced.
    started_at: datetime | None  #: When work on the first machine started. Null: not started.
    ended_at: datetime | None  #: When the wave ended. Null: not ended.
    announce_at: datetime | None  #: Expected announcement. Null: begun, or not requested.
    start_at: datetime | None  #: Expected start. Null: begun, or not requested.
    end_at: datetime | None  #: Expected end. Null: not known or not requested.
    stages: tuple[ExpectedStageAnswer, ...]  #: Expected times of its stages. Empty: not requested.

    @classmethod
    def of(cls, wave: Wave, expected: Expected | None) -> Self:
        """Show a wave, with its expected times if they are known."""
        if expected is None:
            return cls.like(wave, announce_at=None, start_at=None, end_at=wave.ends_about, stages=())
        return cls.like(wave, expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObstacleAnswer(ApiAnswer):
    """A machine that cannot leave its host."""

    machine: str  #: Name of the machine.
    reason: str  #: Why it cannot leave.


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyingAnswer(ApiAnswer):
    """Whether all machines can leave a host before the work on it."""

    host: str  #: Name of the host.
    possible: bool  #: Whether all machines can leave.
    machines: int  #: Number of machines on the host.
    obstacles: tuple[ObstacleAnswer, ...]  #: Machines that cannot leave.


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutAnswer(ApiAnswer):
    """Maintenance over hosts in waves, or the plan of a dry run."""

    NOUN: ClassVar = "rollout"

    id: str | None  #: GUID of the rollout, in upper case. Null: a plan.
    state: RolloutState  #: State of the rollout. `planned`: a plan.
    aborting: bool  #: Whether the rollout was aborted and its started work still runs.
    action: RolloutAction  #: Work on each host.
    mode: ServiceMode | None  #: Host service only: whether machines leave the host or restart with it.
    returning: bool  #: Host service only: whether machines that left come back afterwards.
    host_work: str | None  #: Host service only: driver for the work on the hosts themselves.
    hosts: tuple[str, ...]  #: All hosts of the rollout.
    hosts_done: tuple[str, ...]  #: Hosts whose work is done.
    hosts_not_done: tuple[str, ...]  #: Hosts that ended without the work.
    hosts_at_once: int  #: Maximum number of hosts in a wave.
    gap_seconds: float  #: Pause between the end of a wave and the next announcement.
    driver: str | None  #: Driver that does the work. Null: not the same for all hosts.
    simulated_hosts: tuple[str, ...]  #: Hosts on which the work is only simulated.
    deadline: datetime | None  #: When maintenance windows stop applying, in service time. Null: never.
    expected_seconds: float | None  #: Expected length of the work of a stage.
    health_seconds: float  #: Time that a machine has to become healthy after its work.
    require_poll: bool  #: Whether a machine that polled before counts as healthy only after a new poll.
    whole: bool  #: Whether all machines of a host start together.
    together: str | None  #: Why two update domains of a group may be disturbed together. Null: they may not.
    canary: int  #: Number of hosts that come first, before all others.
    soak_seconds: float  #: Pause after the canary hosts.
    max_failures: str  #: Hosts that may fail before the rollout pauses: a number, or a share such as `2%`.
    version: int  #: Number of the last change by a person or by forewarn.
    waves: tuple[WaveAnswer, ...]  #: Waves, begun ones first.
    waiting: tuple[WaitingAnswer, ...]  #: Everything that waits, each with its reason.
    waiting_until: datetime | None  #: When the first of these reasons ends by itself. Null: not known.
    given_up: tuple[str, ...]  #: Hosts whose orders failed and were abandoned.
    notice: NoticeAnswer  #: Notice that the machines got so far.
    warnings: tuple[str, ...]  #: Problems to solve before or during the rollout.
    emptying: tuple[EmptyingAnswer, ...]  #: Plans of host service only: whether each host can be emptied.
    by: str  #: Name of the caller that began the rollout.
    reason: str | None  #: Reason that the caller gave.
    why: str | None  #: Why the rollout is paused or was aborted.
    created_at: datetime  #: When the rollout began, in service time.
    ended_at: datetime | None  #: When the rollout ended. Null: open.
    ends_at: datetime | None  #: Expected end of the last wave. Null: not known or not requested.

    @classmethod
    def of(
        cls,
        rollout: Rollout,
        *views: object,
        waiting: tuple[Waiting, ...],
        drivers: Mapping[HostName, str],
        expected: tuple[Expected, ...],
    ) -> Self:
        """Show a rollout. Attributes of the views give its warnings, and whether hosts can be emptied.

        `expected` has the times of planned waves, except perhaps of the last ones.
        """
        begun = (None,) * len(rollout.begun)
        unknown = (None,) * (len(rollout.planned) - len(expected))
        return cls.like(
            rollout,
            rollout.terms,
            *views,
            host_work=rollout.terms.host_driver,
            driver=next(iter(drivers.values())) if len({*drivers.values()}) == 1 else None,
            simulated_hosts=tuple(host for host in rollout.hosts if drivers[host] == SIMULATED),
            given_up=rollout.abandoned,
            max_failures=f"{rollout.terms.max_failures}",
            waves=tuple(map(WaveAnswer.of, rollout.waves, (*begun, *expected, *unknown))),
            waiting=tuple(map(WaitingAnswer.like, waiting)),
            waiting_until=earliest_end(waiting),
            notice=NoticeAnswer.like(notice.total(wave.notice for wave in rollout.waves if wave.notice)),
            ends_at=expected[-1].end_at if expected and not unknown else None,
        )
