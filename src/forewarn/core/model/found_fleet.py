"""The fleet as a source of inventory, such as a hypervisor, reports it.

None always means that the source does not know, so the present value stays.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from forewarn.core.basic_types import (
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    Mobility,
    ProjectName,
)
from forewarn.core.model.host import HostResource


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMachine:
    """A machine, as one host or the whole source reports it."""

    vm_id: MachineId  # lower case
    name: MachineName
    host: HostName | None  # the host that defines it, running or not
    running: bool  # also if it is paused for a moment
    # Whether a migration from or to this host is under way. The machine may then be found twice, and is
    # neither a duplicate nor moved yet.
    moving: bool = False
    macs: tuple[str, ...] = ()  # the one that its requests come from first, if known
    addresses: tuple[str, ...] = ()  # in the same order; empty: unknown, so the present address stays
    network: str | None = None
    # The network to use if another machine has its address already; None: it then gets no address.
    own_network: str | None = None
    group: GroupName | None = None
    update_domain: int | None = None
    mobility: Mobility | None = None
    tags: Mapping[str, str] | None = None
    resources: Mapping[str, float] | None = None  # the resources that it uses; others are unchanged
    project: ProjectName | None = None
    manager: str | None = None  # another manager, such as nova; imported only with --managed


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHost:
    """A host that carries machines."""

    name: HostName
    uri: str | None = None  # the connection of its driver, if needed
    labels: Mapping[str, str] | None = None
    resources: Mapping[str, HostResource] | None = None  # amounts; a known ratio stays


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    """A group of the source: an aggregate, a server group, or a name that machines have in common."""

    name: GroupName  # unique in the source
    called: GroupName | None = None  # the name in the source, perhaps not unique; None: the same
    kind: GroupKind = GroupKind.AVAILABILITY_SET
    update_domains: int | None = None  # None: as many as its machines need
    project: ProjectName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFleet:
    """The inventory of a source, or of some of its hosts."""

    machines: tuple[FoundMachine, ...] = ()
    hosts: tuple[FoundHost, ...] = ()  # those that answered
    groups: tuple[FoundGroup, ...] = ()
    unreachable: Mapping[HostName, str] = field(default_factory=dict)  # reasons; their machines stay
    notes: tuple[str, ...] = ()  # what could not be parsed


# Limits for unknown names in metadata, because tenants write it.
_MOST_NAMED, _LONGEST_NAMED = 5, 40


def unknown_metadata(names: Iterable[str], *, known: Collection[str]) -> tuple[str, ...]:
    """Return a line that names unknown metadata, if there is any."""
    found = [_clipped(each) for each in names if each not in known]
    if not found:
        return ()
    more = len(found) - _MOST_NAMED
    *most, last = found if more <= 0 else [*found[:_MOST_NAMED], f"{more} more"]
    said = f"{', '.join(most)} and {last}" if most else last
    expected = ", ".join(sorted(known))
    return (f"its metadata has {said}, which forewarn does not know: expected some of {expected}",)


def _clipped(name: str) -> str:
    return name if len(name) <= _LONGEST_NAMED else f"{name[: _LONGEST_NAMED - 1]}…"


def together(answers: Iterable[FoundFleet]) -> FoundFleet:
    """Merge the inventories of hosts; groups of the same name are one."""
    found = list(answers)
    silent: dict[HostName, str] = {}
    for each in found:
        silent |= each.unreachable
    groups = {group.name: group for each in found for group in each.groups}
    return FoundFleet(
        machines=tuple(machine for each in found for machine in each.machines),
        hosts=tuple(host for each in found for host in each.hosts),
        groups=tuple(groups[name] for name in sorted(groups)),
        unreachable=silent,
        notes=tuple(note for each in found for note in each.notes),
    )


def confirmed(first: FoundFleet, second: FoundFleet) -> FoundFleet:
    """Add machines that a second look found: they were moving during the first."""
    known = {each.vm_id for each in first.machines}
    late = (replace(each, moving=True) for each in second.machines if each.vm_id not in known)
    return replace(
        first, machines=(*first.machines, *late), unreachable={**first.unreachable, **second.unreachable}
    )
