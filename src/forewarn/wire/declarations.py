"""Changes of one machine, host, group or project: the body of a PUT is merged into the present declaration.

An omitted field keeps its value. Null resets a field to its default.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from forewarn.core.basic_types import GroupKind, GroupName, HostName, MachineName
from forewarn.core.errors import Invalid
from forewarn.core.model.declaration import GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.project import Project
from forewarn.wire import fields
from forewarn.wire.fields import Fields
from forewarn.wire.fleet import GROUP, GROUP_REQUIRED, HOST, MACHINE, POLICY, write_policy
from forewarn.wire.projects import PROJECT, read_project, write_project

# Null cannot reset these fields: they have no useful default.
_OF_GROUPS, _OF_MACHINES = ("kind", "project"), ("name", "project")

PROJECT_CHANGES = fields.changes_schema(PROJECT)
HOST_CHANGES = fields.changes_schema(HOST)
MACHINE_CHANGES = fields.changes_schema(MACHINE, but=_OF_MACHINES)
_POLICY_CHANGES = replace(GROUP["policy"], schema=fields.changes_schema(POLICY)).about(
    "Rules for the events of the group. Omitted rules stay as they are."
)
GROUP_CHANGES = fields.changes_schema({**GROUP, "policy": _POLICY_CHANGES}, but=_OF_GROUPS)

# Fields of an answer that are not part of the declaration.
_SHOWN = frozenset({"state", "enabled", "last_seen"})


def read_machine(declared: object, *, name: str, present: MachineSpec | None) -> MachineSpec:
    """Read a change of a machine."""
    body = fields.table(declared)
    for key in body:
        if key in _SHOWN:
            raise Invalid(f"{key}: this field is read-only: leave it out")
    plain = MachineSpec(name=MachineName(fields.name(name)))
    given, reset = _split(body, MACHINE, plain, but=_OF_MACHINES)
    return replace(present or plain, **reset, **fields.read(given, MACHINE, ""))


def read_host(declared: object, *, name: str, present: HostSpec | None) -> HostSpec:
    """Read a change of a host."""
    plain = HostSpec(name=HostName(fields.name(name)))
    given, reset = _split(declared, HOST, plain)
    return replace(present or plain, **reset, **fields.read(given, HOST, ""))


def read_group(declared: object, *, name: str, present: GroupSpec | None) -> GroupSpec:
    """Read a change of a group. The keys of its policy are merged too."""
    plain = GroupSpec(name=GroupName(fields.name(name)), kind=GroupKind.AVAILABILITY_SET)
    body, reset = _split(declared, GROUP, plain, but=_OF_GROUPS)
    policy = body.get("policy")
    if isinstance(policy, Mapping):
        known = {} if present is None else write_policy(present.policy)
        body["policy"] = _merged(known, policy, POLICY)
    given = {**reset, **fields.read(body, GROUP, "")}
    if present is not None:
        return replace(present, **given)
    fields.require(given, GROUP_REQUIRED, "")
    return replace(plain, **given)


def read_one_project(declared: object, *, name: str, present: Project | None) -> Project:
    """Read a change of a project."""
    known = {} if present is None else write_project(present)
    made = read_project(fields.name(name), _merged(known, fields.table(declared), PROJECT), "")
    return made if present is None else replace(made, source=present.source)


def _split(
    declared: object, known: Fields, plain: object, *, but: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the given fields, and the defaults of the fields that are null."""
    given, reset = dict[str, Any](), dict[str, Any]()
    for key, value in fields.table(declared).items():
        name = key.replace("-", "_")
        if value is None and name in known and name not in but and not known[name].nullable:
            reset[name] = getattr(plain, name)
        else:
            given[key] = value
    return given, reset


def _merged(present: Mapping[str, Any], declared: Mapping[str, Any], known: Fields) -> dict[str, Any]:
    """Return a declaration without the known fields that are null."""
    merged = {**present, **{key.replace("-", "_"): value for key, value in declared.items()}}
    return {key: value for key, value in merged.items() if value is not None or key not in known}
