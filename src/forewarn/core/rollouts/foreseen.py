"""The stages that work on a host will have: what notice guests get of each, and how long it takes."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from forewarn.core.admission import durations
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.host import Host
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.policy import Policy, event_type
from forewarn.core.rollouts import machine_health
from forewarn.core.words import EXTERNAL, HostName, Mobility, ProjectName, Work

# What notice groups ask for, and whether they have ever listened: most the same.
_Asked: TypeAlias = frozenset[tuple[timedelta | None, bool]]
# Projects, how many stages, and what is asked for: hosts that carry alike have the same.
Alike: TypeAlias = tuple[frozenset[ProjectName], int, _Asked]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeseenStage:
    """A stage of work on a host that is not announced yet; hosts that carry alike have equal ones."""

    projects: frozenset[ProjectName]
    notice: timedelta
    least: timedelta  # the minimum of its types
    work: timedelta  # so much must fit into a window
    lasting: timedelta  # from its start until the next stage may be announced

    @property
    def armed_later(self) -> bool:
        """Whether guests hear of it before it keeps other update domains away."""
        return self.notice > self.least


def foreseen(
    rollout: Rollout, host: HostName, survey: HostSurvey, policy: Policy
) -> tuple[ForeseenStage, ...]:
    """Return the stages that an order on a host will have; none if nobody is disturbed by it."""
    footprint = survey.footprint(host)
    if rollout.work is Work.HOST:
        return _Service(rollout, survey, policy).stages(host)
    work = machine_health.expected_work(rollout, policy)
    stage = _stage(footprint, (rollout.work,), survey, policy, work=work)
    return (stage,) * footprint.stages


def carrying(rollout: Rollout, host: HostName, survey: HostSurvey) -> Alike | None:
    """Return by what hosts have the same stages; None if there is more to it than whom they carry."""
    if rollout.work is Work.HOST:
        return None
    footprint = survey.footprint(host)
    return footprint.projects, footprint.stages, _asked(footprint, survey)


def staying(rollout: Rollout, footprint: Footprint, host: Host) -> Footprint:
    """Return who restarts together with a host that is worked on."""
    if not rollout.empties or host.bare_metal:
        return footprint
    return footprint.only(share for share in footprint.shares if share.mobility is Mobility.NONE)


class _Service:
    """Work on hosts themselves: machines that can leave do, the others restart with it."""

    def __init__(self, rollout: Rollout, survey: HostSurvey, policy: Policy) -> None:
        self._rollout = rollout
        self._survey = survey
        self._policy = policy

    def stages(self, name: HostName) -> tuple[ForeseenStage, ...]:
        footprint, host = self._survey.footprint(name), self._survey.hosts[name]
        left = staying(self._rollout, footprint, host)
        shares = tuple(share for share in footprint.shares if share not in left.shares)
        moving = self._moves(footprint.only(shares), host)
        back = moving if self._rollout.terms.returning else ()
        return (*moving, self._work(left), *back)

    def _moves(self, leaving: Footprint, host: Host) -> tuple[ForeseenStage, ...]:
        """Return how machines leave: the update domains of a group go one after another."""
        shares = leaving.shares
        if not shares:
            return ()
        at_once = _moves_at_once(self._rollout, host)
        works = {durations.MOVES[share.mobility] for share in shares}
        stage = _stage(
            leaving,
            works,
            self._survey,
            self._policy,
            work=max(durations.shares_time((share,), at_once, self._survey.pace) for share in shares),
            lasting=durations.shares_time(shares, at_once, self._survey.pace) / leaving.stages,
        )
        return (stage,) * leaving.stages

    def _work(self, left: Footprint) -> ForeseenStage:
        """Return the work itself; where nobody is left, nobody is told of it, and no window is waited for."""
        work = machine_health.expected_work(self._rollout, self._policy)
        if left.counts:
            return _stage(left, (Work.REBOOT,), self._survey, self._policy, work=work)
        nothing = timedelta()
        return ForeseenStage(projects=frozenset(), notice=nothing, least=nothing, work=nothing, lasting=work)


def _moves_at_once(rollout: Rollout, host: Host) -> int | None:
    outside = EXTERNAL in (rollout.terms.driver, host.driver if rollout.terms.driver is None else None)
    return durations.at_once(host.at_once, outside=outside)


def _stage(
    footprint: Footprint,
    works: Iterable[Work],
    survey: HostSurvey,
    policy: Policy,
    *,
    work: timedelta,
    lasting: timedelta | None = None,
) -> ForeseenStage:
    types = [event_type(each) for each in works]
    notices = (
        policy.shortened(policy.notice(type_, notice), heard=heard)
        for notice, heard in _asked(footprint, survey)
        for type_ in types
    )
    return ForeseenStage(
        projects=footprint.projects,
        notice=max(notices, default=timedelta()),
        least=max(policy.notice(type_) for type_ in types),
        work=work,
        # However short the work of a stage is, events stay listed for so long after their start.
        lasting=max(policy.linger, work if lasting is None else lasting),
    )


def _asked(footprint: Footprint, survey: HostSurvey) -> _Asked:
    return frozenset([(survey.notices.get(group), group in survey.heard) for group in footprint.counts])
