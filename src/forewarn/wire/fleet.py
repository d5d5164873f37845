"""The fleet as a declaration: read it from TOML or JSON, write it back, and its JSON Schema.

An error names the field and what was expected there.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from forewarn.core.basic_types import DEFAULT_PROJECT, ApprovalRule, GroupKind, Mobility, Priority
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
from forewarn.wire import fields
from forewarn.wire.fields import Field, Fields, Schema
from forewarn.wire.projects import PROJECT, make_project, write_project
from forewarn.wire.texts import either, shown

# Azure allows five to fifteen minutes.
_TERMINATE_NOTICE = (timedelta(minutes=5), timedelta(minutes=15))
_LONGEST = timedelta(days=30)

POLICY: Fields = {
    "approval": fields.choice(tuple(ApprovalRule)).about(
        "Machines that must approve an event: `any` one, `all` that it names, or its first one, the `leader`."
    ),
    "auto_approve": fields.flag.about("Approve restarts, redeploys and terminations by users at once."),
    "budget": fields.whole_number(0, fields.MOST_DOMAINS * 100).about(
        "Minimum number of healthy machines during maintenance."
    ),
    "defer": fields.span(timedelta(), _LONGEST).about(
        "Maximum time by which a guest may defer an event. Each event can be deferred once."
    ),
    "notice": fields.span(timedelta(), _LONGEST).about("Minimum notice of every event."),
    "terminate_notice": fields.span(*_TERMINATE_NOTICE).about(
        "Notice before a machine is terminated: `5m` to `15m`."
    ),
    "degrade_notice": fields.span(timedelta(), _LONGEST).about(
        "Notice before machines leave a degraded host."
    ),
    "freezes_at_once": fields.whole_number(0, fields.MOST_DOMAINS * 100).about(
        "Maximum number of machines frozen together, whatever their update domains. "
        "0: the machines of one update domain."
    ),
    "gang": fields.flag.about("Disturb all update domains together instead of one after another."),
}

# The group of a standalone machine is not declared.
_GROUP_KINDS = tuple(kind for kind in GroupKind if kind is not GroupKind.STANDALONE)
GROUP_REQUIRED = {"kind": either(_GROUP_KINDS)}

GROUP: Fields = {
    "kind": fields.choice(_GROUP_KINDS).about("Kind of group, as in Azure."),
    "update_domains": fields.domains.about("Number of update domains."),
    "project": fields.name.about("Project of the group. Default: `default`."),
    "policy": fields.part(POLICY, GroupPolicy).about("Rules for the events of the group."),
}

# A name, because only the server knows the installed drivers.
_DRIVER = fields.name

DEFAULTS: Fields = {
    "driver": _DRIVER.about(
        "Driver for hosts that do not name one: `simulated` (only takes the time of the work), `external` "
        "(another program does the work and reports it), or an installed driver. Default: `external`."
    ),
}

# Bounds that no real host reaches. They catch typos.
_MOST_AT_ONCE = 100
_HIGHEST_RATIO = 1000
_AMOUNTS = "{ vcpus = 8, memory = 32 }"


def _ratio(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _HIGHEST_RATIO:
        raise Invalid(f"expected a number above 0, up to {_HIGHEST_RATIO}, got {shown(value)}")
    return float(value)


_HOST_RESOURCE = fields.part(
    {
        "amount": fields.amount.about("Physical amount."),
        "ratio": Field(
            read=_ratio,
            schema={"type": "number", "exclusiveMinimum": 0, "maximum": _HIGHEST_RATIO},
        ).about("Overcommit ratio. Default: 1."),
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
    "driver": _DRIVER.about("Driver for its machines. Default: the driver of the fleet."),
    "uri": fields.uri.about(
        "Where the driver connects to the host, such as `qemu+ssh://host-1/system`. It must not contain a "
        "password."
    ),
    "at_once": fields.whole_number(1, _MOST_AT_ONCE).about(
        "Maximum number of concurrent driver calls for the host. Default: the driver's default."
    ),
    "resources": fields.named_values(
        Field(
            read=_read_resource,
            schema={"anyOf": [fields.amount.schema, _HOST_RESOURCE.schema]},
            write=_write_resource,
        ),
        example=_AMOUNTS,
    ).about(
        "Capacity for machines, by names that you choose. `{ amount = 64, ratio = 4 }` overcommits four "
        "times. A resource without an entry is unlimited."
    ),
    "labels": fields.tags.about(
        "Labels that machines can require. If hosts have a label `rack`, machines prefer to move within it."
    ),
    "bare_metal": fields.flag.about("The host is itself its only machine, with the same name."),
}

MACHINE: Fields = {
    "name": fields.name.about("Name, unique in its project. Case does not matter."),
    "group": fields.optional(fields.name).about("Group of the machine. Default: none, it is standalone."),
    "project": fields.name.about("Project of the machine. Default: that of its group, or `default`."),
    "host": fields.optional(fields.name).about("Host of the machine (in a fleet file: the first)."),
    "update_domain": fields.domain.about("Update domain, from 0. Maintenance disturbs one at a time."),
    "fault_domain": fields.domain.about("Fault domain, from 0. Guests see it in instance metadata."),
    "vm_id": fields.optional(fields.guid).about(
        "Permanent id of the machine: the UUID of its hypervisor. Default: a generated one."
    ),
    "priority": fields.choice(tuple(Priority)).about("`regular`, or `spot` if it may be evicted."),
    "network": fields.text.about("Name of its network. Addresses are unique within a network."),
    "address": fields.optional(fields.address).about("Source address of its requests: IPv4 or IPv6."),
    "mac": fields.optional(fields.mac).about(
        "MAC address, in any usual spelling. Requests from another MAC are refused. Guests see it in "
        "instance metadata."
    ),
    "port": fields.optional(fields.whole_number(1, 65535)).about(
        "Loopback port with a guest endpoint only for this machine, for tests on one computer."
    ),
    "tags": fields.tags.about("Tags for instance metadata."),
    "location": fields.text.about("Location for instance metadata."),
    "zone": fields.text.about("Availability zone for instance metadata."),
    "size": fields.text.about("Machine size for instance metadata."),
    "os": fields.text.about("Operating system for instance metadata."),
    "mobility": fields.choice(tuple(Mobility)).about(
        "How the machine can leave its host. `live`: by live migration, or by a redeploy if that fails. "
        "`live-only`: only by live migration. `cold`: by a redeploy. `none`: it cannot leave."
    ),
    "resources": fields.named_values(fields.amount, example=_AMOUNTS).about(
        "Resources that the machine uses, by names that you choose. It moves only to a host with enough room."
    ),
    "labels": fields.tags.about("Labels that a host must have before the machine moves to it."),
}
_HOST_REQUIRED = {"host": "a name"}  # not for bare metal, which is its own host
_MACHINE_REQUIRED = {"name": "a name"}


def _machine_table(value: object) -> dict[str, Any]:
    table = fields.table(value, written='[[machines]] with name = "web-0" below it')
    given = fields.read(table, MACHINE, ": ")
    fields.require(given, _MACHINE_REQUIRED, ": ")
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
    "projects": fields.by_name("projects", PROJECT, make_project, example="default").about(
        "Projects, by name."
    ),
    "groups": fields.by_name("groups", GROUP, GroupSpec, example="web", required=GROUP_REQUIRED).about(
        "Groups, by name."
    ),
    "defaults": fields.part(DEFAULTS, FleetDefaults).about("Defaults for hosts."),
    "hosts": fields.by_name("hosts", HOST, HostSpec, example="host-1").about("Hosts, by name."),
    "machines": Field(
        read=_machine_tables,
        schema={"type": "array", "items": fields.object_schema(MACHINE, _MACHINE_REQUIRED)},
    ).about("Machines."),
}


def unreadable_fleet_file(name: str, error: OSError | UnicodeDecodeError) -> Invalid:
    """Return the error for a fleet file that cannot be read."""
    why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
    return Invalid(f"fleet file {name} cannot be read: {why}")


def read_fleet(declared: object) -> FleetSpec:
    """Read a whole fleet; Invalid names the first error."""
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


def _machine(
    given: dict[str, Any], where: str, *, groups: Mapping[str, GroupSpec], bare_metal: Collection[str]
) -> MachineSpec:
    if given["name"] in bare_metal:
        given = {"host": given["name"], "mobility": Mobility.NONE, **given}
    fields.require(given, _HOST_REQUIRED, f"{where}: ")
    group = groups.get(given.get("group") or "")
    if group is None:
        return MachineSpec(**given)
    if given.get("project", group.project) != group.project:
        expected = f'expected "{group.project}", the project of its group'
        raise Invalid(f'{where}: project: {expected}, got "{given["project"]}"')
    return MachineSpec(**{**given, "project": group.project})


def write_fleet(spec: FleetSpec) -> dict[str, object]:
    """Return the declaration of a fleet."""
    return {
        "projects": {project.name: write_project(project) for project in spec.projects},
        "groups": {group.name: write_group(group) for group in spec.groups},
        "defaults": fields.write(spec.defaults, DEFAULTS),
        "hosts": {host.name: write_host(host) for host in spec.hosts},
        "machines": [write_machine(machine) for machine in spec.machines],
    }


def write_machine(spec: MachineSpec) -> dict[str, object]:
    """Return the declaration of a machine."""
    return fields.write(spec, MACHINE)


def write_host(spec: HostSpec) -> dict[str, object]:
    """Return the declaration of a host."""
    return fields.write(spec, HOST)


def write_group(spec: GroupSpec) -> dict[str, object]:
    """Return the declaration of a group."""
    return fields.write(spec, GROUP)


def write_policy(policy: GroupPolicy) -> dict[str, object]:
    """Return the declaration of a policy. Rules with their default are left out."""
    return fields.write(policy, POLICY)


def file_schema() -> Schema:
    """Return the JSON Schema of the fleet file, for editors. Its keys have hyphens."""
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
