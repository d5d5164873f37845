"""What there is in a cloud: its servers, hosts and server groups, as nova lists them.

Names are made such as forewarn allows. What nova has no word for stands in metadata, of servers or of the
aggregates of their hosts: `forewarn:group`, `forewarn:update-domain`, `forewarn:mobility`. A server's own
word comes first.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from forewarn.core.errors import Unavailable
from forewarn.core.model.inventory import Found, FoundGroup, FoundHost, FoundMachine
from forewarn.core.words import GroupKind, GroupName, HostName, MachineId, MachineName, Mobility, ProjectName
from forewarn.drivers.openstack.compute_api import ComputeApi, ComputeService, NoAnswerError, RefusedError

GROUP, UPDATE_DOMAIN, MOBILITY = "forewarn:group", "forewarn:update-domain", "forewarn:mobility"
# The label of a host that says its availability zone.
ZONE = "availability-zone"
# A name in forewarn has so many of these characters.
LONGEST, NOT_ALLOWED = 64, re.compile(r"[^A-Za-z0-9._-]+")
# nova keeps servers that are being built, or were deleted or put on a shelf: none of them is on a host.
_NOT_THERE = frozenset({"BUILD", "DELETED", "SOFT_DELETED", "SHELVED_OFFLOADED"})
_OFF = frozenset({"SHUTOFF", "SHELVED", "SUSPENDED", "ERROR"})
_MOVING = frozenset({"MIGRATING", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE"})


def found(api: ComputeApi) -> Found:
    """Ask nova, and keystone for the names of projects; Unavailable if the cloud does not answer."""
    try:
        servers = [each for each in api.all_servers() if each["status"] not in _NOT_THERE]
        groups, aggregates, services = api.server_groups(), api.aggregates(), api.services()
        projects = api.project_names()
    except (NoAnswerError, RefusedError) as error:
        raise Unavailable(f"{error}") from error
    return read(servers, groups=groups, aggregates=aggregates, services=services, projects=projects)


def read(
    servers: Sequence[Mapping[str, Any]],
    *,
    groups: Iterable[Mapping[str, Any]],
    aggregates: Iterable[Mapping[str, Any]],
    services: Iterable[ComputeService],
    projects: Mapping[str, str],
) -> Found:
    """Make what was found of what nova has written."""
    said_of_hosts = _of_hosts(aggregates)
    named = _Projects(projects)
    own = [each for each in groups if each["members"]]
    group_names = _unique({each["id"]: each["name"] for each in own})
    member_of = {member: group_names[each["id"]] for each in own for member in each["members"]}
    machines = [
        _machine(
            each,
            group=member_of.get(each["id"]),
            of_host=said_of_hosts.get(each.get("OS-EXT-SRV-ATTR:host") or "", {}),
            project=named.of(each["tenant_id"]),
        )
        for each in servers
    ]
    project_of = {each.group: each.project for each in machines if each.group is not None}
    # A server group is of its own project, whoever else names it in metadata.
    for each in own:
        if (name := GroupName(group_names[each["id"]])) in project_of:
            project_of[name] = named.of(each["project_id"])
    hosts = [
        FoundHost(name=HostName(each.host), labels={ZONE: each.zone} if each.zone else None)
        for each in services
    ]
    return Found(
        machines=tuple(sorted(machines, key=lambda each: each.name)),
        hosts=tuple(sorted(hosts, key=lambda each: each.name)),
        groups=tuple(
            FoundGroup(name=name, kind=GroupKind.AVAILABILITY_SET, project=project_of[name])
            for name in sorted(project_of)
        ),
    )


def _machine(
    said: Mapping[str, Any],
    *,
    group: str | None,
    of_host: Mapping[str, str],
    project: ProjectName | None,
) -> FoundMachine:
    metadata = {**of_host, **said.get("metadata", {})}
    ports = _ports(said.get("addresses", {}))
    wanted = _allowed(metadata[GROUP]) if metadata.get(GROUP) else group
    host = said.get("OS-EXT-SRV-ATTR:host")
    return FoundMachine(
        vm_id=MachineId(said["id"].lower()),
        name=MachineName(_allowed(said["name"])),
        host=HostName(host) if host else None,
        running=said["status"] not in _OFF,
        moving=said["status"] in _MOVING,
        macs=tuple(dict.fromkeys(mac for mac, _ in ports if mac)),
        addresses=tuple(dict.fromkeys(address for _, address in ports)),
        group=GroupName(wanted) if wanted else None,
        update_domain=_number(metadata.get(UPDATE_DOMAIN)),
        mobility=_mobility(metadata.get(MOBILITY)),
        project=project,
    )


def _ports(networks: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[tuple[str, str]]:
    """Return MAC and address of each port; a floating address is none that a guest has itself."""
    return [
        (each.get("OS-EXT-IPS-MAC:mac_addr", ""), each["addr"])
        for network in networks.values()
        for each in network
        if each.get("OS-EXT-IPS:type", "fixed") == "fixed"
    ]


def _of_hosts(aggregates: Iterable[Mapping[str, Any]]) -> Mapping[str, Mapping[str, str]]:
    """Return the metadata of hosts: that of all aggregates that they are in."""
    said: dict[str, dict[str, str]] = {}
    for aggregate in aggregates:
        for host in aggregate["hosts"]:
            said.setdefault(host, {}).update(aggregate["metadata"])
    return said


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
        return ProjectName(self._names.get(id_) or _allowed(id_))


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    """Return names by id, such as are allowed; those that several have with the beginning of their ids."""
    allowed = {id_: _allowed(name) for id_, name in names.items()}
    often = Counter(allowed.values())
    return {
        id_: name if often[name] == 1 else f"{name[: LONGEST - 9]}-{id_[:8]}" for id_, name in allowed.items()
    }


def _allowed(name: str) -> str:
    """Return a name with what forewarn does not allow in names replaced."""
    return NOT_ALLOWED.sub("-", name).strip("-")[:LONGEST] or "unnamed"
