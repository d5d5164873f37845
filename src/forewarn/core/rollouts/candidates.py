"""Which hosts of a rollout may be announced now, and why others may not."""

from datetime import datetime, timedelta
from typing import TypeAlias

from forewarn.core.admission import announcing, holds
from forewarn.core.admission.announcing import Proposal
from forewarn.core.admission.joint_calendar import FOR_EVER
from forewarn.core.admission.timing import Timing, calendars
from forewarn.core.copies import replace
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.survey import HostSurvey
from forewarn.core.model.waiting import Waiting
from forewarn.core.moments import format_time
from forewarn.core.policy import Policy, event_type
from forewarn.core.rollouts import machine_health
from forewarn.core.words import HostName, HostState, ProjectName

# Whom work on a host disturbs, and how much notice they get.
Key: TypeAlias = tuple[frozenset[ProjectName], timedelta]


class Candidates:
    """The hosts of a rollout, each as work that is to be announced."""

    def __init__(self, rollout: Rollout, survey: HostSurvey, policy: Policy) -> None:
        self._rollout = rollout
        self._survey = survey
        self._policy = policy
        self.work = machine_health.expected_work(rollout, policy)
        # However short the work of a stage is, events stay listed for so long after their start.
        self.stage = max(policy.linger, self.work)
        self._timings: dict[Key, Timing] = {}
        self._by_host: dict[HostName, Timing] = {}
        # When hosts of one timing and as many stages may be announced, as seen from one moment.
        self._asked_at: datetime | None = None
        self._moments: dict[tuple[Timing, int], datetime | None] = {}

    def why_not(self, host: HostName, *, now: datetime) -> tuple[Waiting, ...]:
        """Return all that keeps a host from being announced at this moment."""
        projects = self._survey.footprint(host).projects
        return (
            *_unfit(host, self._survey),
            *holds.reaching(self._survey.holds, hosts={host}, projects=projects),
            *announcing.why_not(self._announced(host), now=now),
            *self._cut(host, now),
        )

    def announce_at(self, host: HostName, now: datetime) -> datetime | None:
        """Find the first moment from now on at which a host may be announced; None if there is none.

        One that a window's end would cut is rather done whole, if that begins no later than its rest would.
        """
        if now != self._asked_at:
            self._asked_at, self._moments = now, {}
        shape = self.timing(host), self._survey.footprint(host).stages
        if shape not in self._moments:
            self._moments[shape] = self._announcing(host, now)
        return self._moments[shape]

    def _announcing(self, host: HostName, now: datetime) -> datetime | None:
        first = self.timing(host).announce_at(now)
        rest = None if first is None else self.rest_at(host, first)
        if first is None or rest is None:
            return first
        stages = self._survey.footprint(host).stages
        whole = self._timing(self._key(host), stages=stages).announce_at(first)
        return whole if whole is not None and whole <= rest else first

    def rest_at(self, host: HostName, at: datetime) -> datetime | None:
        """Return when the rest of a host is announced that is announced at a moment, if a window cuts it."""
        timing = self.timing(host)
        for _ in range(self._survey.footprint(host).stages - 1):
            over = timing.not_before(at) + self.stage
            following = timing.announce_at(over)
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
        for proposal in proposals:
            announcing.check(proposal, what=proposal.host, now=now)

    def timing(self, host: HostName) -> Timing:
        """Return what binds the start of work on a host; hosts that carry alike have one timing."""
        if host not in self._by_host:
            key = self._key(host)
            if key not in self._timings:
                self._timings[key] = self._timing(key)
            self._by_host[host] = self._timings[key]
        return self._by_host[host]

    def _key(self, host: HostName) -> Key:
        footprint = self._survey.footprint(host)
        type_ = event_type(self._rollout.work)
        notices = (
            self._policy.shortened(
                self._policy.notice(type_, self._survey.notices.get(group)), heard=group in self._survey.heard
            )
            for group in footprint.counts
        )
        return footprint.projects, max(notices, default=self._policy.notice(type_))

    def _timing(self, key: Key, *, stages: int = 1) -> Timing:
        """Return what binds a stage, or several: each is announced when the one before is over."""
        projects, notice = key
        known = self._survey.projects
        return Timing(
            notice=notice,
            work=self.work if stages == 1 else stages * self.stage + (stages - 1) * notice,
            calendars=calendars(known[name] for name in projects if name in known),
            deadline=self._rollout.terms.deadline,
        )

    def _announced(self, host: HostName) -> Proposal:
        """Return the same, without what is asked when it is armed if that is later."""
        proposal = self._proposal(host)
        _, ahead = self._key(host)
        if ahead > self._policy.notice(event_type(self._rollout.work)):
            return replace(proposal, armed={}, budgets={})
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


def _unfit(host: HostName, survey: HostSurvey) -> tuple[Waiting, ...]:
    known, other = survey.hosts[host], survey.orders.get(host)
    if known.state is HostState.FAILED:
        return (Waiting(what=host, reason="is failed: restore it first"),)
    if other is not None:
        return (Waiting(what=host, reason=f"has order {other.id} ({other.action}), which is {other.state}"),)
    return ()
