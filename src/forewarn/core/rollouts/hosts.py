"""Why a host of a rollout cannot be announced at this moment."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TypeAlias

from forewarn.core.admission import holds
from forewarn.core.admission.timing import Timing
from forewarn.core.model.calendar import Opening
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.survey import NOBODY, Footprint, Scene
from forewarn.core.model.waiting import Waiting
from forewarn.core.policy import EVENT_TYPES, Policy
from forewarn.core.rollouts import health, waves
from forewarn.core.words import HostName, HostState, ProjectName

# Whom work on a host disturbs, and how much notice they get.
Key: TypeAlias = tuple[frozenset[ProjectName], timedelta]


def not_now(host: HostName, scene: Scene) -> tuple[Waiting, ...]:
    """Say what keeps a host from being announced at this moment."""
    footprint = scene.footprints.get(host, NOBODY)
    return (
        *_unfit(host, scene),
        *holds.reaching(scene.holds, hosts={host}, projects=footprint.projects),
        *_other_domains(footprint, scene),
        *_over_budget(host, footprint, scene),
    )


def _unfit(host: HostName, scene: Scene) -> tuple[Waiting, ...]:
    known, other = scene.hosts[host], scene.orders.get(host)
    if known.state is HostState.FAILED:
        return (Waiting(what=host, reason="is failed: restore it first"),)
    if other is not None:
        return (Waiting(what=host, reason=f"has order {other.id} ({other.action}), which is {other.state}"),)
    return ()


def _other_domains(footprint: Footprint, scene: Scene) -> tuple[Waiting, ...]:
    found = []
    for group, counts in footprint.domains.items():
        others = scene.listed.get(group, frozenset()) - {min(counts)}
        if others:
            reason = f"update domain {min(counts)} waits for domain {min(others)}"
            found.append(Waiting(what=group, reason=reason, group=group))
    return tuple(found)


def _over_budget(host: HostName, footprint: Footprint, scene: Scene) -> tuple[Waiting, ...]:
    found = []
    for group, counts in footprint.domains.items():
        together = waves.largest(counts)
        if (budget := scene.budgets.get(group)) and together > budget.spare:
            found.append(budget.lack(group, host, together))
    return tuple(found)


class Timings:
    """What binds the start of work on hosts; those that carry alike are reckoned once."""

    def __init__(self, rollout: Rollout, scene: Scene, policy: Policy) -> None:
        self._rollout = rollout
        self._scene = scene
        self._policy = policy
        self.work = health.expected_work(rollout, policy)
        self._timings: dict[Key, Timing] = {}
        self._by_host: dict[HostName, Timing] = {}
        self._told: dict[Timing, Opening | None] = {}

    def of(self, host: HostName) -> Timing:
        """Say what binds the start of work on a host."""
        if host not in self._by_host:
            key = self._key(host)
            if key not in self._timings:
                self._timings[key] = self._timing(key)
            self._by_host[host] = self._timings[key]
        return self._by_host[host]

    def tell_at(self, host: HostName, now: datetime) -> datetime | None:
        """Say from when on a host may be announced; None: never. Asked of moments in their order."""
        timing = self.of(host)
        if timing not in self._told or not _holds(self._told[timing], now):
            self._told[timing] = timing.telling(now)
        stretch = self._told[timing]
        return None if stretch is None else max(stretch.opens, now)

    def check(self, hosts: Iterable[HostName], now: datetime) -> None:
        """Refuse hosts that no window will ever have room for."""
        for host in hosts:
            if self.tell_at(host, now) is None:
                self.of(host).check(host, now=now)

    def _key(self, host: HostName) -> Key:
        footprint = self._scene.footprints.get(host, NOBODY)
        least = self._policy.notice(EVENT_TYPES[self._rollout.work])
        asked = (self._scene.notices.get(group, least) for group in footprint.domains)
        return footprint.projects, max(least, *asked, least)

    def _timing(self, key: Key) -> Timing:
        projects, notice = key
        known = ((name, self._scene.projects[name]) for name in projects if name in self._scene.projects)
        return Timing(
            notice=notice,
            work=self.work,
            calendars={name: project.calendar for name, project in known if not project.calendar.always},
            deadline=self._rollout.conditions.deadline,
        )


def _holds(stretch: Opening | None, now: datetime) -> bool:
    """Say whether what was found of an earlier moment holds of this one too."""
    return stretch is None or now <= stretch.closes


def check_budgets(hosts: Iterable[HostName], scene: Scene) -> None:
    """Refuse a budget that no wave, however small, can meet."""
    for host in hosts:
        for group, counts in scene.footprints.get(host, NOBODY).domains.items():
            if budget := scene.budgets.get(group):
                budget.check(group, host, waves.largest(counts))
