"""Which hosts of a rollout may be announced now, why others may not, and the stages that each will have."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeAlias

from forewarn.core.admission import announcing, holds, work_durations
from forewarn.core.admission.announcing import Proposal
from forewarn.core.admission.timing import FOR_EVER, Timing, calendars
from forewarn.core.basic_types import EXTERNAL, HostName, HostState, Mobility, ProjectName, Work
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.host import Host
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.time_formats import format_time
from forewarn.core.policy import Policy, event_type
from forewarn.core.rollouts import machine_health

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
        works = {work_durations.MOVES[share.mobility] for share in shares}
        stage = _stage(
            leaving,
            works,
            self._survey,
            self._policy,
            work=max(work_durations.shares_time((share,), at_once, self._survey.pace) for share in shares),
            lasting=work_durations.shares_time(shares, at_once, self._survey.pace) / leaving.stages,
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
    return work_durations.at_once(host.at_once, outside=outside)


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


# Work that disturbs nobody may be done whenever one likes.
ANY_TIME = Timing()
_NOBODY = Proposal(host=HostName(""), footprint=Footprint(), armed={}, budgets={}, timing=ANY_TIME)

# The stages of work on a host, each with when it may be announced.
Stages: TypeAlias = tuple[tuple[ForeseenStage, Timing], ...]


class Candidates:
    """The hosts of a rollout, each as work that is to be announced."""

    def __init__(self, rollout: Rollout, survey: HostSurvey, policy: Policy) -> None:
        self._rollout = rollout
        self._survey = survey
        self._policy = policy
        self._timings: dict[ForeseenStage, Timing] = {}
        self._by_host: dict[HostName, Stages] = {}
        self._alike: dict[Alike, Stages] = {}
        # When hosts with the same stages may be announced, as seen from one moment.
        self._asked_at: datetime | None = None
        self._moments: dict[Stages, datetime | None] = {}

    def why_not(self, host: HostName, *, now: datetime) -> tuple[Waiting, ...]:
        """Return all that keeps a host from being announced at this moment."""
        projects = self._survey.footprint(host).projects
        return (
            *_unfit(host, self._survey),
            *holds.reaching(self._survey.holds, hosts={host}, projects=projects),
            *announcing.divided(self._restarting(host)),
            *announcing.why_not(self._announced(host), now=now),
            *self._cut(host, now),
        )

    def announce_at(self, host: HostName, now: datetime) -> datetime | None:
        """Find the first moment from now on at which a host may be announced; None if there is none.

        One that a window's end would cut is rather done whole, if that begins no later than its rest would.
        """
        if now != self._asked_at:
            self._asked_at, self._moments = now, {}
        stages = self.stages(host)
        if stages not in self._moments:
            self._moments[stages] = self._announcing(host, now)
        return self._moments[stages]

    def _announcing(self, host: HostName, now: datetime) -> datetime | None:
        first = self.timing(host).announce_at(now)
        rest = None if first is None else self.rest_at(host, first)
        if first is None or rest is None:
            return first
        whole = self._timing(_in_one([stage for stage, _ in self.stages(host)])).announce_at(first)
        return whole if whole is not None and whole <= rest else first

    def rest_at(self, host: HostName, at: datetime) -> datetime | None:
        """Return when the rest of a host is announced that is announced at a moment, if a window cuts it."""
        stages = self.stages(host)
        for (stage, timing), (_, after) in pairwise(stages):
            over = timing.not_before(at) + stage.lasting
            following = after.announce_at(over)
            if following != over:
                return FOR_EVER if following is None else following
            at = following
        return None

    def _cut(self, host: HostName, now: datetime) -> tuple[Waiting, ...]:
        """Return until when a host waits that could be announced now, but would be cut."""
        if self.timing(host).announce_at(now) != now:
            return ()
        at = self.announce_at(host, now)
        if at is None or at == now:
            return ()
        reason = f"would be cut by the end of a window; done whole, it is announced at {format_time(at)}"
        return (Waiting(what=host, reason=reason, until=at),)

    def check(self, *, now: datetime) -> None:
        """Refuse hosts that could only wait for ever."""
        proposals = [self._proposal(host) for host in self._rollout.hosts]
        announcing.check_undivided(proposals)
        can = "evacuate them (--evacuate), " if not self._rollout.empties else ""
        announcing.check_undivided(
            map(self._restarting, self._rollout.hosts),
            otherwise=f"they would restart together. Move machines away, {can}or say why that may be "
            '(--together REASON; "together")',
        )
        for proposal in proposals:
            announcing.check(proposal, what=proposal.host, now=now)

    def timing(self, host: HostName) -> Timing:
        """Return what binds the start of work on a host; hosts that carry alike have one timing."""
        return next((timing for _, timing in self.stages(host)), ANY_TIME)

    def stages(self, host: HostName) -> Stages:
        """Return the stages of work on a host, and what binds each."""
        known = self._by_host.get(host)
        if known is None:
            known = self._by_host[host] = self._foreseen(host)
        return known

    def _foreseen(self, host: HostName) -> Stages:
        alike = carrying(self._rollout, host, self._survey)
        known = None if alike is None else self._alike.get(alike)
        if known is None:
            stages = foreseen(self._rollout, host, self._survey, self._policy)
            known = tuple((stage, self._timing(stage)) for stage in stages)
            if alike is not None:
                self._alike[alike] = known
        return known

    def _timing(self, stage: ForeseenStage) -> Timing:
        if stage not in self._timings:
            known = self._survey.projects
            self._timings[stage] = Timing(
                notice=stage.notice,
                work=stage.work,
                calendars=calendars(known[name] for name in stage.projects if name in known),
                deadline=self._rollout.terms.deadline,
                slew=self._survey.slew,
            )
        return self._timings[stage]

    def _announced(self, host: HostName) -> Proposal:
        """Return the same, without what is asked when it is armed if that is later.

        An order is refused at once, though, for a budget that can never be met.
        """
        proposal = self._proposal(host)
        first = next((stage for stage, _ in self.stages(host)), None)
        if first is not None and first.armed_later:
            never_met = announcing.never_met(proposal.footprint, proposal.budgets)
            return replace(proposal, armed={}, budgets=never_met)
        return proposal

    def _proposal(self, host: HostName) -> Proposal:
        return Proposal(
            host=host,
            footprint=self._survey.footprint(host),
            armed=self._survey.armed,
            budgets=self._survey.budgets,
            timing=self.timing(host),
            whole=self._rollout.terms.whole,
        )

    def _restarting(self, host: HostName) -> Proposal:
        """Return those as work that restart together with a host that is worked on; others have no such."""
        known = self._survey.hosts.get(host)
        if self._rollout.work is not Work.HOST or known is None or self._rollout.terms.together:
            return _NOBODY
        footprint = staying(self._rollout, self._survey.footprint(host), known)
        return Proposal(host=host, footprint=footprint, armed={}, budgets={}, timing=ANY_TIME, whole=True)


def _in_one(stages: Sequence[ForeseenStage]) -> ForeseenStage:
    """Return several stages as one: each is announced when the one before is over."""
    first, *later = stages
    work = sum((stage.notice + stage.lasting for stage in later), first.lasting)
    projects = frozenset[ProjectName]().union(*(stage.projects for stage in stages))
    return replace(first, projects=projects, work=work)


def _unfit(host: HostName, survey: HostSurvey) -> tuple[Waiting, ...]:
    known, other = survey.hosts[host], survey.orders.get(host)
    if known.state is HostState.FAILED:
        return (Waiting(what=host, reason="is failed: restore it first"),)
    if known.state is HostState.LOST:
        return (Waiting(what=host, reason="is lost: fail it, or wait for it"),)
    if known.unreachable_since is not None:
        since = format_time(known.unreachable_since)
        return (Waiting(what=host, reason=f"cannot be reached since {since}"),)
    if other is not None:
        return (Waiting(what=host, reason=f"has order {other.id} ({other.action}), which is {other.state}"),)
    return ()
