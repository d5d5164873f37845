"""The fleet as people write it: a mapping read from TOML or JSON to a declaration, and the way back.

What is wrong is refused with the name of the field and what was expected there, so that the line is found.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    ApprovalRule,
    GroupKind,
    GroupName,
    HostName,
    MachineName,
    Mobility,
    Priority,
)
from forewarn.core.errors import Invalid
from forewarn.core.fleet import applying
from forewarn.core.model.declaration import (
    NO_DEFAULTS,
    FleetDefaults,
    FleetSpec,
    GroupSpec,
    HostSpec,
    MachineSpec,
)
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import HostResource
from forewarn.core.model.project import Project
from forewarn.wire import fields
from forewarn.wire.fields import Field, Fields, Schema
from forewarn.wire.projects import PROJECT, make_project, read_project, write_project
from forewarn.wire.texts import either, shown

# Azure lets a group choose between five and fifteen minutes.
_TERMINATE_NOTICE = (timedelta(minutes=5), timedelta(minutes=15))
_LONGEST = timedelta(days=30)

POLICY: Fields = {
    "approval": fields.choice(tuple(ApprovalRule)).about(
        "Who must approve: any machine, all that are named, or the first."
    ),
    "auto_approve": fields.flag.about("Its users' own restarts, redeploys and terminations start at once."),
    "budget": fields.whole_number(0, fields.MOST_DOMAINS * 100).about(
        "Healthy machines it needs during maintenance."
    ),
    "defer": fields.span(timedelta(), _LONGEST).about("How far a guest may defer an event, once."),
    "notice": fields.span(timedelta(), _LONGEST).about("At least so much notice of every event."),
    "terminate_notice": fields.span(*_TERMINATE_NOTICE).about(
        "Notice before a machine is terminated: 5m to 15m."
    ),
    "degrade_notice": fields.span(timedelta(), _LONGEST).about("Notice of a degraded host."),
    "freezes_at_once": fields.whole_number(0, fields.MOST_DOMAINS * 100).about(
        "So many machines may be frozen together, whatever their update domains; 0: those of one domain."
    ),
    "gang": fields.flag.about("All its update domains may be disturbed together, and none in turn."),
}

# A standalone machine is its own group, which is not declared.
_GROUP_KINDS = tuple(kind for kind in GroupKind if kind is not GroupKind.STANDALONE)

GROUP: Fields = {
    "kind": fields.choice(_GROUP_KINDS),
    "update_domains": fields.domains,
    "project": fields.name,
    "policy": fields.part(POLICY, GroupPolicy),
}

# Which drivers there are is known to the server that is told.
_DRIVER = fields.name

DEFAULTS: Fields = {
    "driver": _DRIVER.about(
        "Who does the work on hosts that do not say: simulated (nobody, it only takes its time), external "
        "(somebody outside, who reports it), or another driver that is installed. Left out: external."
    ),
}

# No more than any hypervisor would bear; a slip of the finger should be caught.
_MOST_AT_ONCE = 100

# More than that nobody gives out of anything; a slip of the finger should be caught.
_MOST_OFTEN = 1000


_AMOUNTS = "{ vcpus = 8, memory = 32 }"


def _ratio(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST_OFTEN:
        raise Invalid(f"expected a number above 0, up to {_MOST_OFTEN}, got {shown(value)}")
    return float(value)


_HOST_RESOURCE = fields.part(
    {
        "amount": fields.amount,
        "ratio": Field(
            read=_ratio,
            schema={"type": "number", "exclusiveMinimum": 0, "maximum": _MOST_OFTEN},
        ),
    },
    HostResource,
    required={"amount": "a number"},
)


def _read_resource(value: object) -> HostResource:
    if isinstance(value, Mapping):
        return _HOST_RESOURCE(value)
    return HostResource(amount=fields.amount(value))


def _write_resource(resource: HostResource) -> object:
    return resource.amount if resource.ratio == 1 else _HOST_RESOURCE.write(resource)


HOST: Fields = {
    "driver": _DRIVER.about("Who does the work on it; left out: the default of the fleet."),
    "uri": fields.uri.about("Where its driver reaches it, as qemu+ssh://host-1/system; never a password."),
    "at_once": fields.whole_number(1, _MOST_AT_ONCE).about(
        "How many calls its driver may make there together; left out: as the driver says."
    ),
    "resources": fields.named_values(
        Field(
            read=_read_resource,
            schema={"anyOf": [fields.amount.schema, _HOST_RESOURCE.schema]},
            write=_write_resource,
        ),
        example=_AMOUNTS,
    ).about(
        "How much it has of what machines take, by names of your own; { amount = 64, ratio = 4 } gives it "
        "out four times. Of what is not named here there is enough."
    ),
    "labels": fields.tags.about(
        "What machines may ask of it. Machines that move rather stay in the same rack, where hosts have a "
        "label of that name."
    ),
    "bare_metal": fields.flag.about("It is itself the one machine that it carries, of the same name."),
}

MACHINE: Fields = {
    "name": fields.name.about("Unique in its project, whatever the case."),
    "group": fields.optional(fields.name).about("Left out: standalone."),
    "project": fields.name.about("Its group's, where it has one."),
    "host": fields.optional(fields.name).about("The host that carries it, or its first."),
    "update_domain": fields.domain,
    "fault_domain": fields.domain,
    "vm_id": fields.optional(fields.guid).about(
        "What it is known by for good: the UUID that its hypervisor gave it. Left out: one is made."
    ),
    "priority": fields.choice(tuple(Priority)).about("regular, or spot: may be evicted."),
    "network": fields.text.about("Addresses are unique within a network."),
    "address": fields.optional(fields.address).about("Where its requests come from, IPv4 or IPv6."),
    "mac": fields.optional(fields.mac).about(
        "It is answered from this MAC alone, in any usual spelling. Shown in instance metadata."
    ),
    "port": fields.optional(fields.whole_number(1, 65535)).about("A guest listener of its own on loopback."),
    "tags": fields.tags.about("Shown in instance metadata."),
    "location": fields.text,
    "zone": fields.text,
    "size": fields.text,
    "os": fields.text,
    "mobility": fields.choice(tuple(Mobility)).about(
        "How it leaves its host: live (paused for a moment; redeployed if that fails), live-only (never "
        "redeployed instead), cold (it is down meanwhile), none (it stays)."
    ),
    "resources": fields.named_values(fields.amount, example=_AMOUNTS).about(
        "What it takes of its host, by names of your own; it moves only where there is as much."
    ),
    "labels": fields.tags.about("What it asks of its host: it moves only to one that has the same."),
}
_HOST_REQUIRED = {"host": "a name"}  # but of bare metal, which is its own
_REQUIRED_OF_MACHINE = {"name": "a name"}

# What null does not clear: it would say too little, or too much.
_OF_GROUPS, _OF_MACHINES = ("kind", "project"), ("name", "project")

# What a body takes that changes one thing.
PROJECT_CHANGES = fields.changes_schema(PROJECT)
HOST_CHANGES = fields.changes_schema(HOST)
MACHINE_CHANGES = fields.changes_schema(MACHINE, but=_OF_MACHINES)
GROUP_CHANGES = fields.changes_schema(
    {**GROUP, "policy": replace(GROUP["policy"], schema=fields.changes_schema(POLICY))}, but=_OF_GROUPS
)

# What an answer shows of a machine besides its declaration.
_SHOWN = frozenset({"state", "enabled", "last_seen"})


def _machine_table(value: object) -> dict[str, Any]:
    table = fields.table(value, written='[[machines]] with name = "web-0" below it')
    given = fields.read(table, MACHINE, ": ")
    fields.require(given, _REQUIRED_OF_MACHINE, ": ")
    return given


def _machine_tables(value: object) -> list[dict[str, Any]]:
    tables = fields.sequence(value, written="[[machines]] before each machine")
    return [
        fields.numbered(_machine_table, index, each, called=_called(each))
        for index, each in enumerate(tables)
    ]


def _called(table: object) -> str:
    name = table.get("name") if isinstance(table, Mapping) else None
    return f' "{name}"' if isinstance(name, str) else ""


FLEET: Fields = {
    "projects": fields.by_name("projects", PROJECT, make_project, example="default"),
    "groups": fields.by_name(
        "groups",
        GROUP,
        lambda name, **given: GroupSpec(name=name, **given),
        example="web",
        required={"kind": either(_GROUP_KINDS)},
    ),
    "defaults": fields.part(DEFAULTS, FleetDefaults),
    "hosts": fields.by_name(
        "hosts", HOST, lambda name, **given: HostSpec(name=name, **given), example="host-1"
    ),
    "machines": Field(
        read=_machine_tables,
        schema={"type": "array", "items": fields.object_schema(MACHINE, _REQUIRED_OF_MACHINE)},
    ),
}


def unreadable_fleet_file(name: str, error: OSError | UnicodeDecodeError) -> Invalid:
    """Return the error for a fleet file that cannot be read."""
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return Invalid(f"fleet file {name} cannot be read: {why}")


def read_fleet(declared: object) -> FleetSpec:
    """Read a whole fleet; Invalid names the first thing that is wrong."""
    given = fields.read(fields.table(declared), FLEET, "")
    projects, groups, hosts = (given.get(key, {}) for key in ("projects", "groups", "hosts"))
    bare_metal = {name for name, host in hosts.items() if host.bare_metal}
    tables = [*given.get("machines", ())]
    tables += ({"name": name} for name in sorted(bare_metal - {table["name"] for table in tables}))
    spec = FleetSpec(
        projects=tuple({DEFAULT_PROJECT: make_project(DEFAULT_PROJECT), **projects}.values()),
        groups=tuple(groups.values()),
        defaults=given.get("defaults", NO_DEFAULTS),
        hosts=tuple(hosts.values()),
        machines=tuple(
            _machine(table, f'machines[{index}] "{table["name"]}"', groups=groups, bare_metal=bare_metal)
            for index, table in enumerate(tables)
        ),
    )
    applying.validate(spec)
    return spec


def read_machine(declared: object, *, name: str, present: MachineSpec | None) -> MachineSpec:
    """Read the declaration of one machine; what it leaves out stays as it is, what is null goes."""
    body = fields.table(declared)
    for key in body:
        if key in _SHOWN:
            raise Invalid(f"{key}: this is shown, not declared: leave it out")
    plain = MachineSpec(name=MachineName(fields.name(name)))
    asked, cleared = _cleared(body, MACHINE, plain, but=_OF_MACHINES)
    return replace(present or plain, **cleared, **fields.read(asked, MACHINE, ""))


def read_host(declared: object, *, name: str, present: HostSpec | None) -> HostSpec:
    """Read the declaration of one host; what it leaves out stays as it is, what is null goes."""
    plain = HostSpec(name=HostName(fields.name(name)))
    given, cleared = _cleared(declared, HOST, plain)
    return replace(present or plain, **cleared, **fields.read(given, HOST, ""))


def read_group(declared: object, *, name: str, present: GroupSpec | None) -> GroupSpec:
    """Read the declaration of one group; what it leaves out stays as it is, also of its policy.

    What is null goes, be it the whole policy or a key of it.
    """
    plain = GroupSpec(name=GroupName(fields.name(name)), kind=GroupKind.AVAILABILITY_SET)
    body, cleared = _cleared(declared, GROUP, plain, but=_OF_GROUPS)
    policy = body.get("policy")
    if isinstance(policy, Mapping):
        known = {} if present is None else write_policy(present.policy)
        asked = _with_underscores(policy)
        body["policy"] = {
            key: value for key, value in {**known, **asked}.items() if value is not None or key not in POLICY
        }
    given = {**cleared, **fields.read(body, GROUP, "")}
    if present is not None:
        return replace(present, **given)
    fields.require(given, {"kind": either(_GROUP_KINDS)}, "")
    return replace(plain, **given)


def read_one_project(declared: object, *, name: str, present: Project | None) -> Project:
    """Read the declaration of one project; what it leaves out stays as it is, what is null goes."""
    known = {} if present is None else write_project(present)
    asked = {**known, **_with_underscores(fields.table(declared))}
    kept = {key: value for key, value in asked.items() if value is not None or key not in PROJECT}
    made = read_project(fields.name(name), kept, "")
    return made if present is None else replace(made, source=present.source)


def _cleared(
    declared: object, known: Fields, plain: object, *, but: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide a declaration: what is given, and what is null and so gets its default."""
    given, cleared = dict[str, Any](), dict[str, Any]()
    for key, value in fields.table(declared).items():
        name = key.replace("-", "_")
        if value is None and name in known and name not in but and not known[name].nullable:
            cleared[name] = getattr(plain, name)
        else:
            given[key] = value
    return given, cleared


def _with_underscores(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("-", "_"): value for key, value in table.items()}


def write_fleet(spec: FleetSpec) -> dict[str, object]:
    """Write a fleet the way it is read."""
    return {
        "projects": {project.name: write_project(project) for project in spec.projects},
        "groups": {group.name: write_group(group) for group in spec.groups},
        "defaults": fields.write(spec.defaults, DEFAULTS),
        "hosts": {host.name: write_host(host) for host in spec.hosts},
        "machines": [write_machine(machine) for machine in spec.machines],
    }


def write_machine(spec: MachineSpec) -> dict[str, object]:
    """Write a machine's declaration the way it is read."""
    return fields.write(spec, MACHINE)


def write_host(spec: HostSpec) -> dict[str, object]:
    """Write a host's declaration the way it is read."""
    return fields.write(spec, HOST)


def write_group(spec: GroupSpec) -> dict[str, object]:
    """Write a group's declaration the way it is read."""
    return fields.write(spec, GROUP)


def write_policy(policy: GroupPolicy) -> dict[str, object]:
    """Write what a group asks for, and leave out what it does not."""
    return fields.write(policy, POLICY)


def file_schema() -> Schema:
    """Write the JSON Schema of the fleet file, for editors: keys have hyphens in it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The fleet file of forewarn",
        **_with_hyphens(fields.object_schema(FLEET)),
    }


def _with_hyphens(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_hyphens(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name.replace("_", "-"): _with_hyphens(each) for name, each in value.items()}
        if key == "properties"
        else _with_hyphens(value)
        for key, value in schema.items()
    }


def _machine(
    given: dict[str, Any], where: str, *, groups: Mapping[str, GroupSpec], bare_metal: Collection[str]
) -> MachineSpec:
    if given["name"] in bare_metal:
        given = {"host": given["name"], "mobility": Mobility.NONE, **given}
    fields.require(given, _HOST_REQUIRED, f"{where}: ")
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
