"""What a source of inventory, such as a hypervisor, says there is.

None always means that the source says nothing of it, so that what is known stays.
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
    """A machine, as one host or the whole source has it."""

    vm_id: MachineId  # lower case
    name: MachineName
    host: HostName | None  # that has it, running or not; None: none
    running: bool  # also if it is paused for a moment; else it is off
    # Whether it is being moved from or to this host now: then it may be found twice, and is neither a
    # duplicate nor somewhere else yet.
    moving: bool = False
    macs: tuple[str, ...] = ()  # first the one that its requests come from, if that is known
    addresses: tuple[str, ...] = ()  # as above; none: they are not known now, and what is known stays
    network: str | None = None
    # The network that it gets where another machine has its address already; None: then it gets no address.
    own_network: str | None = None
    group: GroupName | None = None
    update_domain: int | None = None
    mobility: Mobility | None = None
    tags: Mapping[str, str] | None = None
    resources: Mapping[str, float] | None = None  # what it takes of its host; other names stay as they are
    project: ProjectName | None = None
    manager: str | None = None  # who else manages it, as nova: it is shown, and taken only if asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHost:
    """A host that carries machines."""

    name: HostName
    uri: str | None = None  # where its driver reaches it, if that needs to be told
    labels: Mapping[str, str] | None = None
    resources: Mapping[str, HostResource] | None = None  # what it has; a ratio that is known stays


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    """A group that the source knows of: an aggregate, a server group, or what machines name."""

    name: GroupName  # that no other group of the source has
    called: GroupName | None = None  # what the source calls it, and perhaps others; None: the same
    kind: GroupKind = GroupKind.AVAILABILITY_SET
    update_domains: int | None = None  # None: as many as its machines need
    project: ProjectName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFleet:
    """All that a source, or some hosts of it, have now."""

    machines: tuple[FoundMachine, ...] = ()
    hosts: tuple[FoundHost, ...] = ()  # those that answered
    groups: tuple[FoundGroup, ...] = ()
    unreachable: Mapping[HostName, str] = field(default_factory=dict)  # why; nothing on them is removed
    notes: tuple[str, ...] = ()  # what of it could not be understood


# Of what is unknown in metadata, which its owner may write at length.
_MOST_NAMED, _LONGEST_NAMED = 5, 40


def unknown_metadata(names: Iterable[str], *, known: Collection[str]) -> tuple[str, ...]:
    """Return a line that names what forewarn does not know, if there is anything."""
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
    """Put the answers of hosts together; groups that several name are one."""
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
    """Return what was found, with what a second look has found besides: that was on its way meanwhile."""
    known = {each.vm_id for each in first.machines}
    late = (replace(each, moving=True) for each in second.machines if each.vm_id not in known)
    return replace(
        first, machines=(*first.machines, *late), unreachable={**first.unreachable, **second.unreachable}
    )
