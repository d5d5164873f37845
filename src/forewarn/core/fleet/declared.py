"""How hosts and groups would be declared now."""

from dataclasses import fields

from forewarn.core.model.declaration import GroupSpec, HostSpec
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host


def host_spec(host: Host) -> HostSpec:
    """Return how a host would be declared."""
    return HostSpec(**{each.name: getattr(host, each.name) for each in fields(HostSpec)})


def group_spec(group: Group) -> GroupSpec:
    """Return how a group would be declared."""
    return GroupSpec(**{each.name: getattr(group, each.name) for each in fields(GroupSpec)})
