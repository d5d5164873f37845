"""List the servers, hosts and server groups of a cloud.

Names are converted to valid names in forewarn. Metadata of servers, or of the aggregates of their hosts, may
declare what nova lacks: `forewarn:group`, `forewarn:update-domain`, `forewarn:mobility`. A server's own
metadata has priority.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forewarn.core.basic_types import (
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    Mobility,
    ProjectName,
)
from forewarn.core.errors import Unavailable
from forewarn.core.model.found_fleet import FoundFleet, FoundGroup, FoundHost, FoundMachine, unknown_metadata
from forewarn.drivers.openstack.compute_api import ComputeApi, ComputeService, NoNovaAnswer, NovaRefused
from forewarn.drivers.openstack.server_view import MARK_KEY

# The longest name in forewarn, and the characters that a name cannot contain.
LONGEST, INVALID = 64, re.compile(r"[^A-Za-z0-9._-]+")
ID_LENGTH = 8  # this many characters of an id distinguish equal names
GROUP, UPDATE_DOMAIN, MOBILITY = "forewarn:group", "forewarn:update-domain", "forewarn:mobility"
_PREFIX, _KNOWN = "forewarn:", (GROUP, MOBILITY, UPDATE_DOMAIN)
MIB_IN_GIB = 2**10
# The label for a host's availability zone.
ZONE = "availability-zone"
# Servers with these statuses are on no host.
_NOT_ON_A_HOST = frozenset({"BUILD", "DELETED", "SOFT_DELETED", "SHELVED_OFFLOADED"})
_OFF = frozenset({"SHUTOFF", "SHELVED", "SUSPENDED", "ERROR"})
_MOVING = frozenset({"MIGRATING", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE"})


def valid_name(name: str) -> str:
    """Replace the characters that names in forewarn cannot contain."""
    return INVALID.sub("-", name).strip("-")[:LONGEST] or "unnamed"


def unique_name(name: str, id_: str) -> str:
    """Return a valid name that is unique because of the id."""
    return f"{valid_name(name)[: LONGEST - ID_LENGTH - 1]}-{id_[:ID_LENGTH]}"


class ServerGroups:
    """The server groups that have members, with unique names."""

    def __init__(self, groups: Iterable[Mapping[str, Any]]) -> None:
        own = {GroupName(unique_name(each["name"], each["id"])): each for each in groups if each["members"]}
        # The names in nova and the project ids, by unique name, and the groups of servers.
        self.called = {name: GroupName(valid_name(each["name"])) for name, each in own.items()}
        self.projects: dict[GroupName, str] = {name: each["project_id"] for name, each in own.items()}
        self.by_server = {member: name for name, each in own.items() for member in each["members"]}

    def named(self, text: str, *, project: str) -> GroupName:
        """Return the group that a project's metadata names: its own server group of that name, if any."""
        name = GroupName(valid_name(text))
        own = [
            each for each, called in self.called.items() if called == name and self.projects[each] == project
        ]
        return own[0] if len(own) == 1 else name


def list_cloud(api: ComputeApi, networks: Sequence[str]) -> FoundFleet:
    """List the cloud; raise Unavailable if it does not answer.

    Only addresses in the given networks count, in that order; without networks, all addresses count.
    """
    try:
        servers = [each for each in api.all_servers() if each["status"] not in _NOT_ON_A_HOST]
        groups, aggregates, services = api.server_groups(), api.aggregates(), api.services()
        projects = api.project_names()
    except (NoNovaAnswer, NovaRefused) as error:
        raise Unavailable(f"{error}") from error
    return read(
        servers,
        groups=groups,
        aggregates=aggregates,
        services=services,
        projects=projects,
        networks=networks,
    )


def read(
    servers: Sequence[Mapping[str, Any]],
    *,
    groups: Iterable[Mapping[str, Any]],
    aggregates: Iterable[Mapping[str, Any]],
    services: Iterable[ComputeService],
    projects: Mapping[str, str],
    networks: Sequence[str] = (),
) -> FoundFleet:
    """Convert nova's answers."""
    host_metadata = _host_metadata(aggregates)
    project_names = _unique(projects)

    def project_of(id_: str) -> ProjectName:
        return ProjectName(project_names.get(id_) or valid_name(id_))

    server_groups = ServerGroups(groups)
    machines = [
        _machine(
            each,
            groups=server_groups,
            metadata=_metadata(each, host_metadata),
            project=project_of(each["tenant_id"]),
            networks=networks,
        )
        for each in servers
    ]
    by_machines = {each.group: each.project for each in machines if each.group is not None}
    hosts = [
        FoundHost(name=HostName(each.host), labels={ZONE: each.zone} if each.zone else None)
        for each in services
    ]
    return FoundFleet(
        machines=tuple(sorted(machines, key=lambda each: each.name)),
        hosts=tuple(sorted(hosts, key=lambda each: each.name)),
        groups=tuple(
            FoundGroup(
                name=name,
                called=server_groups.called.get(name),
                kind=GroupKind.AVAILABILITY_SET,
                # A server group belongs to its own project, even if metadata of another project names it.
                project=by_machines[name]
                if (owner := server_groups.projects.get(name)) is None
                else project_of(owner),
            )
            for name in sorted(by_machines)
        ),
        notes=tuple(
            f"machine {valid_name(each['name'])}: {fault}"
            for each in servers
            for fault in _faults(_metadata(each, host_metadata))
        ),
    )


def _machine(
    server: Mapping[str, Any],
    *,
    groups: ServerGroups,
    metadata: Mapping[str, str],
    project: ProjectName,
    networks: Sequence[str],
) -> FoundMachine:
    ports = _ports(server.get("addresses", {}), networks)
    group = groups.by_server.get(server["id"])
    if named := metadata.get(GROUP):
        group = groups.named(named, project=server["tenant_id"])
    host = server.get("OS-EXT-SRV-ATTR:host")
    return FoundMachine(
        vm_id=MachineId(server["id"].lower()),
        name=MachineName(valid_name(server["name"])),
        host=HostName(host) if host else None,
        running=server["status"] not in _OFF,
        moving=server["status"] in _MOVING,
        macs=tuple(dict.fromkeys(each.mac for each in ports if each.mac)),
        addresses=tuple(dict.fromkeys(each.address for each in ports)),
        own_network=f"{project}.{valid_name(ports[0].network)}" if ports else None,
        group=group,
        update_domain=_number(metadata.get(UPDATE_DOMAIN)),
        mobility=_mobility(metadata.get(MOBILITY)),
        resources=_sizes(server.get("flavor", {})),
        project=project,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Port:
    network: str
    mac: str
    address: str


def _ports(addresses: Mapping[str, Iterable[Mapping[str, Any]]], networks: Sequence[str]) -> list[_Port]:
    """Return the ports in the order of their networks, without floating addresses."""
    return [
        _Port(network=network, mac=each.get("OS-EXT-IPS-MAC:mac_addr", ""), address=each["addr"])
        for network in networks or addresses
        for each in addresses.get(network, ())
        if each.get("OS-EXT-IPS:type", "fixed") == "fixed"
    ]


def _host_metadata(aggregates: Iterable[Mapping[str, Any]]) -> Mapping[str, Mapping[str, str]]:
    """Return the metadata of hosts, merged from their aggregates."""
    metadata: dict[str, dict[str, str]] = {}
    for aggregate in aggregates:
        for host in aggregate["hosts"]:
            metadata.setdefault(host, {}).update(aggregate["metadata"])
    return metadata


def _metadata(server: Mapping[str, Any], of_hosts: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return the metadata of a server over that of its host."""
    of_host = of_hosts.get(server.get("OS-EXT-SRV-ATTR:host") or "", {})
    return {**of_host, **server.get("metadata", {})}


def _sizes(flavor: Mapping[str, Any]) -> Mapping[str, float] | None:
    """Return the resources of a server; nova's memory is in MiB."""
    if "ram" not in flavor or "vcpus" not in flavor:
        return None
    return {"memory": round(flavor["ram"] / MIB_IN_GIB, 3), "vcpus": float(flavor["vcpus"])}


def _faults(metadata: Mapping[str, str]) -> Iterator[str]:
    """Report invalid metadata; forewarn itself writes MARK_KEY."""
    domain, mobility = metadata.get(UPDATE_DOMAIN), metadata.get(MOBILITY)
    if domain is not None and _number(domain) is None:
        yield f'its metadata has {UPDATE_DOMAIN}="{domain}": expected a whole number'
    if mobility is not None and _mobility(mobility) is None:
        yield f'its metadata has {MOBILITY}="{mobility}": expected live, live-only, cold or none'
    ours = (key for key in sorted(metadata) if key.startswith(_PREFIX) and key != MARK_KEY)
    yield from unknown_metadata(ours, known=_KNOWN)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _mobility(text: str | None) -> Mobility | None:
    return Mobility(text) if text is not None and text in {*Mobility} else None


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    """Return valid names by id; equal names get a part of their ids."""
    often = Counter(map(valid_name, names.values()))
    return {
        id_: valid_name(name) if often[valid_name(name)] == 1 else unique_name(name, id_)
        for id_, name in names.items()
    }
