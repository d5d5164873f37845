"""What of the fleet a rollout is decided by, and why a host cannot be announced at this moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from forewarn.core import holds, waves
from forewarn.core.errors import Invalid
from forewarn.core.model import Hold, Host, Order, Waiting
from forewarn.core.waves import NOBODY, Budget, Footprint
from forewarn.core.words import GroupName, HostName, HostState


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What of the fleet a rollout is decided by."""

    hosts: Mapping[HostName, Host] = field(default_factory=dict)
    footprints: Mapping[HostName, Footprint] = field(default_factory=dict)
    orders: Mapping[HostName, Order] = field(default_factory=dict)  # what each host has open already
    listed: Mapping[GroupName, frozenset[int]] = field(default_factory=dict)  # domains with an event
    budgets: Mapping[GroupName, Budget] = field(default_factory=dict)
    notices: Mapping[GroupName, timedelta] = field(default_factory=dict)  # what groups ask for
    sizes: Mapping[GroupName, int] = field(default_factory=dict)  # how many members groups have
    holds: tuple[Hold, ...] = ()


def not_now(host: HostName, scene: Scene) -> tuple[Waiting, ...]:
    """Say what keeps a host from being announced at this moment."""
    footprint = scene.footprints.get(host, NOBODY)
    return (
        *_unfit(host, scene),
        *holds.reaching(scene.holds, hosts={host}, projects=footprint.projects),
        *_other_domains(footprint, scene),
        *_over_budget(footprint, scene),
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


def _over_budget(footprint: Footprint, scene: Scene) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(what=group, reason=_lack(budget), group=group)
        for group, counts in footprint.domains.items()
        if (budget := scene.budgets.get(group)) and waves.largest(counts) > budget.spare
    )


def _lack(budget: Budget) -> str:
    if not budget.down:
        return f"needs {budget.needs} healthy of {budget.members}"
    *most, last = budget.down
    named = f"{', '.join(most)} and {last} are" if most else f"{last} is"
    return f"needs {budget.needs} healthy, {named} down"


def check_budgets(hosts: Iterable[HostName], scene: Scene) -> None:
    """Refuse a budget that no wave, however small, can meet."""
    for host in hosts:
        for group, counts in scene.footprints.get(host, NOBODY).domains.items():
            budget = scene.budgets.get(group)
            most = waves.largest(counts)
            if budget is not None and budget.members - most < budget.needs:
                raise Invalid(
                    f"group {group}: needs {budget.needs} healthy of {budget.members}, but {host} carries "
                    f"{most} of one update domain: this can never be met"
                )
