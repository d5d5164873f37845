"""Hosts, groups and machines as rows, and back.

A `…_COLUMNS` tuple is the order in which its `…_of` takes a row apart: by position, because a whole fleet
is read at every start.
"""

from collections.abc import Sequence
from sys import intern
from typing import Any

from forewarn.core.model.group import Group
from forewarn.core.model.hold import Hold
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.words import GroupKind, GroupName, HostName, HostState, MachineState, Priority, ProjectName
from forewarn.store import tables
from forewarn.store.rows.asked import policy_json, policy_of
from forewarn.store.rows.times import (
    micros,
    micros_or_none,
    moment,
    moment_or_none,
)
from forewarn.wire.projects import read_project, write_project

Kept = Sequence[Any]
Columns = dict[str, Any]

PROJECT_COLUMNS = (tables.projects.c.name, tables.projects.c.settings)

HOST_COLUMNS = (tables.hosts.c.name, tables.hosts.c.state)

_L = tables.holds.c
HOLD_COLUMNS = (_L.id, _L.reason, _L.by, _L.at, _L.project, _L.host)

_G = tables.groups.c
GROUP_COLUMNS = (
    *(_G.name, _G.project, _G.kind, _G.update_domains, _G.born, _G.policy, _G.incarnation),
    *(_G.enabled_at, _G.ready_at, _G.last_active),
)

_M = tables.machines.c
MACHINE_COLUMNS = (
    *(_M.id, _M.name, _M.project, _M.group_name, _M.host, _M.update_domain, _M.fault_domain),
    *(_M.priority, _M.state, _M.network, _M.address, _M.port),
    *(_M.tags, _M.location, _M.zone, _M.size, _M.os, _M.bound_for),
)


def name_key(name: str) -> str:
    """Give the form in which names are compared: case does not count."""
    return name.casefold()


def project_of(row: Kept) -> Project:
    """Read a project."""
    name, settings = row
    return read_project(name, settings, f"projects.{name}: ")


def project_row(project: Project) -> Columns:
    """Write a project."""
    return {"name": project.name, "settings": write_project(project)}


def host_of(row: Kept) -> Host:
    """Read a host."""
    name, state = row
    return Host(name=name, state=HostState(state))


def host_row(host: Host) -> Columns:
    """Write a host."""
    return {"name": host.name, "state": host.state.value}


def hold_of(row: Kept) -> Hold:
    """Read a hold."""
    id_, reason, by, at, project, host = row
    return Hold(id=id_, reason=reason, by=by, at=moment(at), project=project, host=host)


def hold_row(hold: Hold) -> Columns:
    """Write a hold."""
    return {
        "id": hold.id.upper(),
        "reason": hold.reason,
        "by": hold.by,
        "at": micros(hold.at),
        "project": hold.project,
        "host": hold.host,
    }


def group_of(row: Kept) -> Group:
    """Read a group."""
    name, project, kind, update_domains, born, policy, incarnation, *times = row
    enabled_at, ready_at, last_active = times
    return Group(
        name=name,
        project=project,
        kind=GroupKind(kind),
        update_domains=update_domains,
        born=born,
        policy=policy_of(policy),
        incarnation=incarnation,
        enabled_at=moment_or_none(enabled_at),
        ready_at=moment_or_none(ready_at),
        last_active=moment_or_none(last_active),
    )


def group_row(group: Group) -> Columns:
    """Write a group, all but its version and the number of its change."""
    return {
        "name": group.name,
        "project": group.project,
        "kind": group.kind.value,
        "update_domains": group.update_domains,
        "born": group.born,
        "policy": policy_json(group.policy),
        "incarnation": group.incarnation,
        "enabled_at": micros_or_none(group.enabled_at),
        "ready_at": micros_or_none(group.ready_at),
        "last_active": micros_or_none(group.last_active),
        "silent_since": micros_or_none((group.last_active or group.enabled_at) if group.enabled else None),
    }


def machine_of(row: Kept) -> Machine:
    """Read a machine.

    What many machines have in common is interned: a large fleet is held in memory.
    """
    id_, name, project, group, host, domain, fault, priority, state, network, address, port, *rest = row
    tags, location, zone, size, os, bound_for = rest
    return Machine(
        id=id_,
        name=name,
        project=ProjectName(intern(project)),
        group=GroupName(intern(group)),
        host=None if host is None else HostName(intern(host)),
        update_domain=domain,
        fault_domain=fault,
        priority=Priority(priority),
        state=MachineState(state),
        network=intern(network),
        address=address,
        port=port,
        tags=tags,
        location=intern(location),
        zone=intern(zone),
        size=intern(size),
        os=intern(os),
        bound_for=None if bound_for is None else HostName(intern(bound_for)),
    )


def machine_row(machine: Machine) -> Columns:
    """Write a machine, all but when it was last seen and the number of its change."""
    return {
        "id": machine.id.lower(),
        "name": machine.name,
        "key": name_key(machine.name),
        "project": machine.project,
        "group_name": machine.group,
        "host": machine.host,
        "bound_for": machine.bound_for,
        "place": machine.destination,
        "update_domain": machine.update_domain,
        "fault_domain": machine.fault_domain,
        "priority": machine.priority.value,
        "state": machine.state.value,
        "network": machine.network,
        "address": machine.address,
        "port": machine.port,
        "tags": dict(machine.tags),
        "location": machine.location,
        "zone": machine.zone,
        "size": machine.size,
        "os": machine.os,
    }
