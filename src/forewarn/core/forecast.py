"""When the waves of a rollout are to be expected if nobody approves early and nothing is in the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.policy import EVENT_TYPES, Policy
from forewarn.core.scene import Scene
from forewarn.core.waves import NOBODY, Rollout, Wave
from forewarn.core.words import GroupName, HostName, Work

# The published median of host maintenance; a driver may be faster, and nobody knows before.
TYPICAL_WORK = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """When a wave is announced, started and over."""

    announce_at: datetime
    start_at: datetime
    end_at: datetime


def forecast(rollout: Rollout, scene: Scene, *, now: datetime, policy: Policy) -> tuple[Expected, ...]:
    """Say when each planned wave is to be expected."""
    found, at = [], now
    for wave in rollout.planned:
        start, end = _spans(wave, rollout.work, scene, policy)
        found.append(Expected(announce_at=at, start_at=at + start, end_at=at + end))
        at = at + end + rollout.gap
    return tuple(found)


def _spans(wave: Wave, work: Work, scene: Scene, policy: Policy) -> tuple[timedelta, timedelta]:
    """How long after its announcement a wave starts, and ends: the slowest host decides."""
    starts, ends = [timedelta()], [timedelta()]
    for host in wave.hosts:
        stages = scene.footprints.get(host, NOBODY).stages
        notice = _notice(host, work, scene, policy)
        if stages:
            starts.append(notice)
            # However short the work is, events stay listed for so long after their start.
            ends.append(stages * (notice + max(policy.linger, TYPICAL_WORK)))
    return max(starts), max(ends)


def _notice(host: HostName, work: Work, scene: Scene, policy: Policy) -> timedelta:
    least = policy.notice(EVENT_TYPES[work])
    asked = (scene.notices.get(group, least) for group in scene.footprints.get(host, NOBODY).domains)
    return max([least, *asked])


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
