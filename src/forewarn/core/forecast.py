"""When the waves of a rollout are to be expected if nobody approves early and nothing is in the way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from forewarn.core import waves
from forewarn.core.policy import Policy
from forewarn.core.scene import Scene, Timings
from forewarn.core.waves import NOBODY, Rollout, Wave
from forewarn.core.words import GroupName, HostName


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """When a wave is announced, started and over."""

    announce_at: datetime
    start_at: datetime
    end_at: datetime


def forecast(
    rollout: Rollout, scene: Scene, *, now: datetime, policy: Policy
) -> tuple[Rollout, tuple[Expected, ...]]:
    """Say when each planned wave is to be expected; windows decide which hosts go first."""
    timings = Timings(rollout, scene, policy)
    spare = {group: budget.at_best for group, budget in scene.budgets.items()}
    left, found, planned, at = list(rollout.left), [], [], now
    while left:
        moments = {host: timings.tell_at(host, at) for host in left}
        # A host that no window ever has room for is refused before; here it would go last.
        at = min((moment for moment in moments.values() if moment is not None), default=at)
        free = [host for host in left if moments[host] is None or moments[host] == at]
        chosen = waves.pick(free, scene.footprints, at_once=rollout.hosts_at_once, spare=spare)
        expected = _expected(chosen, scene, timings, at=at, policy=policy)
        planned.append(Wave(hosts=chosen))
        found.append(expected)
        at = expected.end_at + rollout.gap
        taken = set(chosen)
        left = [host for host in left if host not in taken]
    return replace(rollout, waves=(*rollout.begun, *planned)), tuple(found)


def _expected(
    hosts: Iterable[HostName], scene: Scene, timings: Timings, *, at: datetime, policy: Policy
) -> Expected:
    """Say when a wave that is announced at a moment starts and ends: the slowest host decides."""
    starts, ends = [at], [at]
    for host in hosts:
        timing, told = timings.of(host), at
        for stage in range(scene.footprints.get(host, NOBODY).stages):
            told = timing.tell_at(told) or told
            start = timing.not_before(told)
            starts += [start] if stage == 0 else []
            # However short the work is, events stay listed for so long after their start.
            told = start + max(policy.linger, timings.work)
            ends.append(told)
    return Expected(announce_at=at, start_at=max(starts), end_at=max(ends))


def on_one_host(scene: Scene) -> Sequence[str]:
    """Say which groups have every member on one host: no wave can spare them."""
    places: dict[GroupName, dict[HostName, int]] = {}
    for host, footprint in scene.footprints.items():
        for group, counts in footprint.domains.items():
            places.setdefault(group, {})[host] = sum(counts.values())
    return [
        f"group {group}: all {members} members are on {host}"
        for group, members in sorted(scene.sizes.items())
        for host, carried in places.get(group, {}).items()
        if carried == members and members > 1
    ]
