"""Decide which hosts of a rollout may be announced now, and plan the stages of each host."""

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
from forewarn.core.policy import Policy, event_type
from forewarn.core.rollouts import machine_health
from forewarn.core.time_formats import format_time

# For each group: the notice that it asks for, and whether a guest of it has ever polled.
_Notices: TypeAlias = frozenset[tuple[timedelta | None, bool]]
# The projects on a host, how many stages its order has, and its notices. Hosts with an equal key have equal
# stages.
_StagesKey: TypeAlias = tuple[frozenset[ProjectName], int, _Notices]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStage:
    """A stage of the future order on a host. Hosts with the same key share equal stages."""

    projects: frozenset[ProjectName]
    notice: timedelta
    least: timedelta  # the minimum notice of its event types
    work: timedelta  # how much time it needs inside a window
    lasting: timedelta  # from its start until the next stage may be announced


def planned_stages(
    rollout: Rollout, host: HostName, survey: HostSurvey, policy: Policy
) -> tuple[PlannedStage, ...]:
    """Return the stages of the future order on a host; none if it disturbs no machine."""
    footprint = survey.footprint(host)
    work = machine_health.expected_work(rollout, policy)
    if rollout.work is not Work.HOST:
        stage = _stage(footprint, (rollout.work,), survey, policy, work=work)
        return (stage,) * footprint.stages
    left = _staying(rollout, footprint, survey.hosts[host])
    leaving = footprint.only(share for share in footprint.shares if share not in left.shares)
    moving = _moves(rollout, leaving, survey.hosts[host], survey, policy)
    if left.counts:
        restart = _stage(left, (Work.REBOOT,), survey, policy, work=work)
    else:  # no guest is notified, and no window applies
        nothing = timedelta()
        restart = PlannedStage(
            projects=frozenset(), notice=nothing, least=nothing, work=nothing, lasting=work
        )
    return (*moving, restart, *(moving if rollout.terms.returning else ()))


def _staying(rollout: Rollout, footprint: Footprint, host: Host) -> Footprint:
    """Return the machines that restart together with a host during work on it."""
    if not rollout.empties or host.bare_metal:
        return footprint
    return footprint.only(share for share in footprint.shares if share.mobility is Mobility.NONE)


def _moves(
    rollout: Rollout, leaving: Footprint, host: Host, survey: HostSurvey, policy: Policy
) -> tuple[PlannedStage, ...]:
    """Return the stages in which machines leave: the update domains of a group go one after another."""
    shares = leaving.shares
    if not shares:
        return ()
    outside = EXTERNAL in (rollout.terms.driver, host.driver if rollout.terms.driver is None else None)
    at_once = work_durations.at_once(host.at_once, outside=outside)
    works = {work_durations.MOVES[share.mobility] for share in shares}
    work = max(work_durations.shares_time((share,), at_once, survey.pace) for share in shares)
    lasting = work_durations.shares_time(shares, at_once, survey.pace) / leaving.stages
    return (_stage(leaving, works, survey, policy, work=work, lasting=lasting),) * leaving.stages


def _stage(
    footprint: Footprint,
    works: Iterable[Work],
    survey: HostSurvey,
    policy: Policy,
    *,
    work: timedelta,
    lasting: timedelta | None = None,
) -> PlannedStage:
    types = [event_type(each) for each in works]
    notices = (
        policy.shortened(policy.notice(type_, notice), heard=heard)
        for notice, heard in _notices(footprint, survey)
        for type_ in types
    )
    return PlannedStage(
        projects=footprint.projects,
        notice=max(notices, default=timedelta()),
        least=max(policy.notice(type_) for type_ in types),
        work=work,
        # Even after short work, events stay listed for the linger time.
        lasting=max(policy.linger, work if lasting is None else lasting),
    )


def _notices(footprint: Footprint, survey: HostSurvey) -> _Notices:
    return frozenset([(survey.notices.get(group), group in survey.heard) for group in footprint.counts])


ANY_TIME = Timing()
_NO_WORK = Proposal(host=HostName(""), footprint=Footprint(), armed={}, budgets={}, timing=ANY_TIME)

# The stages of the future order on a host, each with the times at which it may be announced.
PlannedStages: TypeAlias = tuple[tuple[PlannedStage, Timing], ...]


class Candidates:
    """The hosts of a rollout as work to be announced. Results are cached."""

    def __init__(self, rollout: Rollout, survey: HostSurvey, policy: Policy) -> None:
        self._rollout = rollout
        self._survey = survey
        self._policy = policy
        self._timings: dict[PlannedStage, Timing] = {}
        self._by_host: dict[HostName, PlannedStages] = {}
        self._by_key: dict[_StagesKey, PlannedStages] = {}
        # The announcement times of hosts with the same stages, for one `now`.
        self._asked_at: datetime | None = None
        self._times: dict[PlannedStages, datetime | None] = {}

    def why_not(self, host: HostName, *, now: datetime) -> tuple[Waiting, ...]:
        """Return everything that prevents the announcement of a host now."""
        projects = self._survey.footprint(host).projects
        return (
            *_unfit(host, self._survey),
            *holds.reaching(self._survey.holds, hosts={host}, projects=projects),
            *announcing.divided(self._restarting(host)),
            *announcing.why_not(self._announced(host), now=now),
            *self._cut(host, now),
        )

    def announce_at(self, host: HostName, now: datetime) -> datetime | None:
        """Return the first time from now on at which a host may be announced; None if there is none.

        If a window would end between two stages, the host waits for a window with room for all of them. It
        does not wait if its remaining stages could begin earlier than that.
        """
        if now != self._asked_at:
            self._asked_at, self._times = now, {}
        stages = self.stages(host)
        if stages not in self._times:
            self._times[stages] = self._first_announcement(host, now)
        return self._times[stages]

    def _first_announcement(self, host: HostName, now: datetime) -> datetime | None:
        first = self.timing(host).announce_at(now)
        rest = None if first is None else self.rest_at(host, first)
        if first is None or rest is None:
            return first
        whole = self._timing(_in_one([stage for stage, _ in self.stages(host)])).announce_at(first)
        return whole if whole is not None and whole <= rest else first

    def rest_at(self, host: HostName, at: datetime) -> datetime | None:
        """Return when the other stages of a host are announced, if a window ends before them."""
        stages = self.stages(host)
        for (stage, timing), (_, after) in pairwise(stages):
            over = timing.not_before(at) + stage.lasting
            following = after.announce_at(over)
            if following != over:
                return FOR_EVER if following is None else following
            at = following
        return None

    def _cut(self, host: HostName, now: datetime) -> tuple[Waiting, ...]:
        """Return until when a host waits because a window would end between its stages."""
        if self.timing(host).announce_at(now) != now:
            return ()
        at = self.announce_at(host, now)
        if at is None or at == now:
            return ()
        reason = f"would be cut by the end of a window; to fit into one, it is announced at {format_time(at)}"
        return (Waiting(what=host, reason=reason, until=at),)

    def check(self, *, now: datetime) -> None:
        """Refuse hosts that could never be announced."""
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
        """Return the times at which the first stage of a host may be announced."""
        return next((timing for _, timing in self.stages(host)), ANY_TIME)

    def stages(self, host: HostName) -> PlannedStages:
        """Return the stages of the future order on a host, each with its timing."""
        if host not in self._by_host:
            self._by_host[host] = self._stages_of(host)
        return self._by_host[host]

    def _stages_of(self, host: HostName) -> PlannedStages:
        if self._rollout.work is Work.HOST:  # its stages depend on more than the key
            return self._plan_stages(host)
        footprint = self._survey.footprint(host)
        key = footprint.projects, footprint.stages, _notices(footprint, self._survey)
        if key not in self._by_key:
            self._by_key[key] = self._plan_stages(host)
        return self._by_key[key]

    def _plan_stages(self, host: HostName) -> PlannedStages:
        stages = planned_stages(self._rollout, host, self._survey, self._policy)
        return tuple((stage, self._timing(stage)) for stage in stages)

    def _timing(self, stage: PlannedStage) -> Timing:
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
        """Return a host as a proposal. If its events are armed later, armed domains do not count yet.

        A budget that can never be met does count: the order would be refused.
        """
        proposal = self._proposal(host)
        first = next((stage for stage, _ in self.stages(host)), None)
        if first is not None and first.notice > first.least:
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
        """Return the machines that restart together with a host, as a proposal; empty for other work."""
        known = self._survey.hosts.get(host)
        if self._rollout.work is not Work.HOST or known is None or self._rollout.terms.together:
            return _NO_WORK
        footprint = _staying(self._rollout, self._survey.footprint(host), known)
        return Proposal(host=host, footprint=footprint, armed={}, budgets={}, timing=ANY_TIME, whole=True)


def _in_one(stages: Sequence[PlannedStage]) -> PlannedStage:
    """Combine several stages, each announced after the one before, into one."""
    first, *later = stages
    work = sum((stage.notice + stage.lasting for stage in later), first.lasting)
    projects = frozenset[ProjectName]().union(*(stage.projects for stage in stages))
    return replace(first, projects=projects, work=work)


def _unfit(host: HostName, survey: HostSurvey) -> tuple[Waiting, ...]:
    known, other = survey.hosts[host], survey.orders.get(host)
    if known.state is HostState.FAILED:
        reason = "is failed: restore it first"
    elif known.state is HostState.LOST:
        reason = "is lost: fail it, or wait for it"
    elif known.unreachable_since is not None:
        reason = f"cannot be reached since {format_time(known.unreachable_since)}"
    elif other is not None:
        reason = f"has order {other.id} ({other.action}), which is {other.state}"
    else:
        return ()
    return (Waiting(what=host, reason=reason),)
