"""Which hosts of a rollout may be announced now, and why others may not."""

from datetime import datetime, timedelta
from typing import TypeAlias

from forewarn.core.admission import announcing, holds
from forewarn.core.admission.announcing import Proposal
from forewarn.core.admission.timing import Timing, calendars
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.survey import HostSurvey
from forewarn.core.model.waiting import Waiting
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
        self._timings: dict[Key, Timing] = {}
        self._by_host: dict[HostName, Timing] = {}

    def why_not(self, host: HostName, *, now: datetime) -> tuple[Waiting, ...]:
        """Return all that keeps a host from being announced at this moment."""
        projects = self._survey.footprint(host).projects
        return (
            *_unfit(host, self._survey),
            *holds.reaching(self._survey.holds, hosts={host}, projects=projects),
            *announcing.why_not(self._proposal(host), now=now),
        )

    def check(self, *, now: datetime) -> None:
        """Refuse hosts that could only wait for ever."""
        announcing.check_undivided(map(self._proposal, self._rollout.hosts))
        for host in self._rollout.hosts:
            announcing.check(self._proposal(host), what=host, now=now)

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
        asked = (self._survey.notices.get(group) for group in footprint.counts)
        return footprint.projects, self._policy.notice(event_type(self._rollout.work), *asked)

    def _timing(self, key: Key) -> Timing:
        projects, notice = key
        known = self._survey.projects
        return Timing(
            notice=notice,
            work=self.work,
            calendars=calendars(known[name] for name in projects if name in known),
            deadline=self._rollout.terms.deadline,
        )

    def _proposal(self, host: HostName) -> Proposal:
        return Proposal(
            host=host,
            footprint=self._survey.footprint(host),
            listed=self._survey.listed,
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
