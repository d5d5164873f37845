"""What there is in a cloud: its servers, hosts and server groups, as nova lists them.

Names are made such as forewarn allows. What nova has no word for stands in metadata, of servers or of the
aggregates of their hosts: `forewarn:group`, `forewarn:update-domain`, `forewarn:mobility`. A server's own
word comes first.
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
from forewarn.drivers.openstack.compute_api import ComputeApi, ComputeService, NoAnswerError, RefusedError
from forewarn.drivers.openstack.sights import MARK_KEY

# A name in forewarn has so many of these characters.
LONGEST, NOT_ALLOWED = 64, re.compile(r"[^A-Za-z0-9._-]+")
OF_ID = 8  # so many letters of an id tell apart what has the same name
GROUP, UPDATE_DOMAIN, MOBILITY = "forewarn:group", "forewarn:update-domain", "forewarn:mobility"
_PREFIX, _KNOWN = "forewarn:", (GROUP, MOBILITY, UPDATE_DOMAIN)
MIB_IN_GIB = 2**10
# The label of a host that says its availability zone.
ZONE = "availability-zone"
# nova keeps servers that are being built, or were deleted or put on a shelf: none of them is on a host.
_NOT_THERE = frozenset({"BUILD", "DELETED", "SOFT_DELETED", "SHELVED_OFFLOADED"})
_OFF = frozenset({"SHUTOFF", "SHELVED", "SUSPENDED", "ERROR"})
_MOVING = frozenset({"MIGRATING", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE"})


def allowed(name: str) -> str:
    """Return a name with what forewarn does not allow in names replaced."""
    return NOT_ALLOWED.sub("-", name).strip("-")[:LONGEST] or "unnamed"


def told_apart(name: str, id_: str) -> str:
    """Return a name that nothing else has."""
    return f"{allowed(name)[: LONGEST - OF_ID - 1]}-{id_[:OF_ID]}"


class ServerGroups:
    """The server groups that have members, each by a name that no other has."""

    def __init__(self, groups: Iterable[Mapping[str, Any]]) -> None:
        own = {GroupName(told_apart(each["name"], each["id"])): each for each in groups if each["members"]}
        self._called = {name: GroupName(allowed(each["name"])) for name, each in own.items()}
        self._projects: dict[GroupName, str] = {name: each["project_id"] for name, each in own.items()}
        self._of = {member: name for name, each in own.items() for member in each["members"]}

    def of(self, server: str) -> GroupName | None:
        """Return the group that a server is in."""
        return self._of.get(server)

    def named(self, text: str, *, project: str) -> GroupName:
        """Return the group that somebody of a project means: their own server group, if it is called so."""
        name = GroupName(allowed(text))
        mine = [
            each
            for each, called in self._called.items()
            if called == name and self._projects[each] == project
        ]
        return mine[0] if len(mine) == 1 else name

    def called(self, name: GroupName) -> GroupName | None:
        """Return what nova calls a group; None if it is no server group."""
        return self._called.get(name)

    def project_of(self, name: GroupName) -> str | None:
        """Return the id of the project that a server group is of; None if it is none."""
        return self._projects.get(name)


def found(api: ComputeApi, networks: Sequence[str]) -> FoundFleet:
    """Ask nova, and keystone for the names of projects; Unavailable if the cloud does not answer.

    Of the addresses those in some networks count, if any are named, in that order.
    """
    try:
        servers = [each for each in api.all_servers() if each["status"] not in _NOT_THERE]
        groups, aggregates, services = api.server_groups(), api.aggregates(), api.services()
        projects = api.project_names()
    except (NoAnswerError, RefusedError) as error:
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
    """Make what was found of what nova has written."""
    said_of_hosts = _of_hosts(aggregates)
    named = _Projects(projects)
    own = ServerGroups(groups)
    machines = [
        _machine(
            each,
            groups=own,
            metadata=_metadata(each, said_of_hosts),
            project=named.of(each["tenant_id"]),
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
                called=own.called(name),
                kind=GroupKind.AVAILABILITY_SET,
                # A server group is of its own project, whoever else names it in metadata.
                project=by_machines[name] if (owner := own.project_of(name)) is None else named.of(owner),
            )
            for name in sorted(by_machines)
        ),
        notes=tuple(
            f"machine {allowed(each['name'])}: {fault}"
            for each in servers
            for fault in _faults(_metadata(each, said_of_hosts))
        ),
    )


def _machine(
    said: Mapping[str, Any],
    *,
    groups: ServerGroups,
    metadata: Mapping[str, str],
    project: ProjectName,
    networks: Sequence[str],
) -> FoundMachine:
    ports = _ports(said.get("addresses", {}), networks)
    named = metadata.get(GROUP)
    host = said.get("OS-EXT-SRV-ATTR:host")
    return FoundMachine(
        vm_id=MachineId(said["id"].lower()),
        name=MachineName(allowed(said["name"])),
        host=HostName(host) if host else None,
        running=said["status"] not in _OFF,
        moving=said["status"] in _MOVING,
        macs=tuple(dict.fromkeys(each.mac for each in ports if each.mac)),
        addresses=tuple(dict.fromkeys(each.address for each in ports)),
        own_network=f"{project}.{allowed(ports[0].network)}" if ports else None,
        group=groups.named(named, project=said["tenant_id"]) if named else groups.of(said["id"]),
        update_domain=_number(metadata.get(UPDATE_DOMAIN)),
        mobility=_mobility(metadata.get(MOBILITY)),
        resources=_sizes(said.get("flavor", {})),
        project=project,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Port:
    network: str
    mac: str
    address: str


def _ports(said: Mapping[str, Iterable[Mapping[str, Any]]], networks: Sequence[str]) -> list[_Port]:
    """Return the ports that count, in the order of their networks.

    A floating address is none that a guest has itself.
    """
    return [
        _Port(network=network, mac=each.get("OS-EXT-IPS-MAC:mac_addr", ""), address=each["addr"])
        for network in networks or said
        for each in said.get(network, ())
        if each.get("OS-EXT-IPS:type", "fixed") == "fixed"
    ]


def _of_hosts(aggregates: Iterable[Mapping[str, Any]]) -> Mapping[str, Mapping[str, str]]:
    """Return the metadata of hosts: that of all aggregates that they are in."""
    said: dict[str, dict[str, str]] = {}
    for aggregate in aggregates:
        for host in aggregate["hosts"]:
            said.setdefault(host, {}).update(aggregate["metadata"])
    return said


def _metadata(server: Mapping[str, Any], of_hosts: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return what is said of a server; its own word comes before that of its host's aggregates."""
    of_host = of_hosts.get(server.get("OS-EXT-SRV-ATTR:host") or "", {})
    return {**of_host, **server.get("metadata", {})}


def _sizes(flavor: Mapping[str, Any]) -> Mapping[str, float] | None:
    """Return what a server takes of its host; nova says its memory in MiB."""
    if "ram" not in flavor or "vcpus" not in flavor:
        return None
    return {"memory": round(flavor["ram"] / MIB_IN_GIB, 3), "vcpus": float(flavor["vcpus"])}


def _faults(metadata: Mapping[str, str]) -> Iterator[str]:
    """Say what of the metadata cannot be understood; forewarn itself writes the key of its steps."""
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


class _Projects:
    """Projects as forewarn calls them: by their names, or by their ids where keystone says no name."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = _unique(names)

    def of(self, id_: str) -> ProjectName:
        """Return the project of an id."""
        return ProjectName(self._names.get(id_) or allowed(id_))


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    """Return names by id, such as are allowed; those that several have with the beginning of their ids."""
    often = Counter(map(allowed, names.values()))
    return {
        id_: allowed(name) if often[allowed(name)] == 1 else told_apart(name, id_)
        for id_, name in names.items()
    }
