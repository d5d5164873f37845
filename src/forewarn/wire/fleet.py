"""The fleet as people write it: a mapping read from TOML or JSON to a declaration, and the way back.

What is wrong is refused with the name of the field and what was expected there, so that whoever wrote it
can find the line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from forewarn.core.errors import Invalid
from forewarn.core.fleet import declaring
from forewarn.core.model.declaration import FleetSpec, GroupSpec, MachineSpec
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.project import Project
from forewarn.core.words import DEFAULT_PROJECT, ApprovalRule, GroupKind, GroupName, HostName, Priority
from forewarn.wire import fields
from forewarn.wire.fields import Readers
from forewarn.wire.projects import read_project, write_project

# A standalone machine is its own group; nobody declares that one.
_GROUP_KINDS = tuple(kind for kind in GroupKind if kind is not GroupKind.STANDALONE)

_FLEET: Readers = {
    "projects": partial(fields.table, written="[projects.default]"),
    "groups": partial(fields.table, written="[groups.web]"),
    "hosts": partial(fields.table, written="[hosts.host-1]"),
    "machines": partial(fields.sequence, written="[[machines]] before each machine"),
}

_GROUP: Readers = {
    "kind": fields.choice(_GROUP_KINDS),
    "update_domains": fields.whole_number(1, fields.MOST_DOMAINS),
    "project": fields.name,
    "policy": fields.table,
}

# Azure lets a group choose between five and fifteen minutes.
_TERMINATE_NOTICE = (timedelta(minutes=5), timedelta(minutes=15))
_LONGEST = timedelta(days=30)

_POLICY: Readers = {
    "approval": fields.choice(tuple(ApprovalRule)),
    "auto_approve": fields.flag,
    "notice": fields.span(timedelta(), _LONGEST),
    "terminate_notice": fields.span(*_TERMINATE_NOTICE),
    "degrade_notice": fields.span(timedelta(), _LONGEST),
    "budget": fields.whole_number(0, fields.MOST_DOMAINS * 100),
    "defer": fields.span(timedelta(), _LONGEST),
}

_HOST: Readers = {}

_MACHINE: Readers = {
    "name": fields.name,
    "host": fields.optional(fields.name),
    "group": fields.optional(fields.name),
    "project": fields.name,
    "update_domain": fields.whole_number(0, fields.MOST_DOMAINS - 1),
    "fault_domain": fields.whole_number(0, fields.MOST_DOMAINS - 1),
    "priority": fields.choice(tuple(Priority)),
    "network": fields.text,
    "address": fields.optional(fields.address),
    "port": fields.optional(fields.whole_number(1, 65535)),
    "tags": fields.tags,
    "location": fields.text,
    "zone": fields.text,
    "size": fields.text,
    "os": fields.text,
}

# What an answer shows of a machine besides its declaration.
_SHOWN = frozenset({"vm_id", "state", "enabled", "last_seen"})


def read_fleet(declared: object) -> FleetSpec:
    """Read a whole fleet; Invalid names the first thing that is wrong."""
    tables = fields.read(fields.table(declared), _FLEET, "")
    groups = _groups(tables.get("groups", {}))
    spec = FleetSpec(
        projects=_projects(tables.get("projects", {})),
        groups=tuple(groups.values()),
        hosts=_hosts(tables.get("hosts", {})),
        machines=_machines(tables.get("machines", ()), groups),
    )
    declaring.validate(spec)
    return spec


def read_machine(declared: object, *, name: str, present: MachineSpec | None) -> MachineSpec:
    """Read the declaration of one machine; what it leaves out stays as it is."""
    body = fields.table(declared)
    for key in body:
        if key in _SHOWN:
            raise Invalid(f"{key}: this is shown, not declared: leave it out")
    given = fields.read(body, _MACHINE, "")
    if present is not None:
        return replace(present, **given)
    fields.named(name, "name")
    return MachineSpec(**{"name": name, **given})


def write_fleet(spec: FleetSpec) -> dict[str, object]:
    """Write a fleet the way it is read."""
    return {
        "projects": {project.name: write_project(project) for project in spec.projects},
        "groups": {group.name: _write_group(group) for group in spec.groups},
        "hosts": {host: {} for host in spec.hosts},
        "machines": [write_machine(machine) for machine in spec.machines],
    }


def write_machine(spec: MachineSpec) -> dict[str, object]:
    """Write a machine's declaration the way it is read."""
    return {
        "name": spec.name,
        "group": spec.group,
        "project": spec.project,
        "host": spec.host,
        "update_domain": spec.update_domain,
        "fault_domain": spec.fault_domain,
        "priority": spec.priority.value,
        "network": spec.network,
        "address": spec.address,
        "port": spec.port,
        "tags": dict(spec.tags),
        "location": spec.location,
        "zone": spec.zone,
        "size": spec.size,
        "os": spec.os,
    }


def _write_group(group: GroupSpec) -> dict[str, object]:
    return {
        "kind": group.kind.value,
        "update_domains": group.update_domains,
        "project": group.project,
        "policy": write_policy(group.policy),
    }


def write_policy(policy: GroupPolicy) -> dict[str, object]:
    """Write what a group asks for, and leave out what it does not."""
    return {
        "approval": policy.approval.value,
        "auto_approve": policy.auto_approve,
        "budget": policy.budget,
        "defer": policy.defer.total_seconds(),
        **{
            name: span.total_seconds()
            for name in ("notice", "terminate_notice", "degrade_notice")
            if (span := getattr(policy, name)) is not None
        },
    }


def _projects(declared: Mapping[str, object]) -> tuple[Project, ...]:
    return tuple(_project(name, value) for name, value in {DEFAULT_PROJECT: {}, **declared}.items())


def _project(name: str, value: object) -> Project:
    where = f"projects.{fields.named(name, f'projects.{name}')}"
    return read_project(name, fields.table(value, where), f"{where}: ")


def _groups(declared: Mapping[str, object]) -> dict[str, GroupSpec]:
    return {name: _group(name, value) for name, value in declared.items()}


def _group(name: str, value: object) -> GroupSpec:
    where = f"groups.{fields.named(name, f'groups.{name}')}"
    given = fields.read(fields.table(value, where, written=f"[{where}]"), _GROUP, f"{where}: ")
    if "policy" in given:
        given["policy"] = GroupPolicy(**fields.read(given["policy"], _POLICY, f"{where}: policy."))
    if "kind" not in given:
        raise Invalid(f"{where}: kind: expected {fields.either(_GROUP_KINDS)}, but it is missing")
    return GroupSpec(name=GroupName(name), **given)


def _hosts(declared: Mapping[str, object]) -> tuple[HostName, ...]:
    for name, value in declared.items():
        where = f"hosts.{fields.named(name, f'hosts.{name}')}"
        fields.read(fields.table(value, where, written=f"[{where}]"), _HOST, f"{where}: ")
    return tuple(HostName(name) for name in declared)


def _machines(declared: Sequence[object], groups: Mapping[str, GroupSpec]) -> tuple[MachineSpec, ...]:
    return tuple(_machine(value, place, groups) for place, value in enumerate(declared))


def _machine(value: object, place: int, groups: Mapping[str, GroupSpec]) -> MachineSpec:
    body = fields.table(value, f"machines[{place}]", written='[[machines]] with name = "web-0" below it')
    name = body.get("name")
    where = f'machines[{place}] "{name}"' if isinstance(name, str) else f"machines[{place}]"
    given = fields.read(body, _MACHINE, f"{where}: ")
    for key in ("name", "host"):
        if key not in given:
            raise Invalid(f"{where}: {key}: expected a name, but it is missing")
    return MachineSpec(**_in_project_of_group(given, where, groups))


def _in_project_of_group(
    given: dict[str, Any], where: str, groups: Mapping[str, GroupSpec]
) -> dict[str, Any]:
    group = groups.get(given.get("group") or "")
    if group is None:
        return given
    if given.get("project", group.project) != group.project:
        expected = f'expected "{group.project}", the project of its group'
        raise Invalid(f'{where}: project: {expected}, got "{given["project"]}"')
    return {**given, "project": group.project}
