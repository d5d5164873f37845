"""Matching of a scenario with the machines and hosts of a running server.

Only projects for rehearsals qualify.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from forewarn.core.basic_types import Priority, Source
from forewarn.core.catalogue import ACTIONS
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.rehearsal_rules import how_to_allow_rehearsals
from forewarn.rehearsal.scenario import (
    Scenario,
    evicted,
    hosts_of,
    machines_on,
    required_machines,
    substitute,
)
from forewarn.rehearsal.target import OperatorApi
from forewarn.sdk.transport.endpoint_urls import EVENTS_PATH
from forewarn.wire.answers.access_answers import TokenAnswer
from forewarn.wire.answers.fleet_answers import HostWithMachinesAnswer, MachineAnswer, ProjectAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedScenario:
    """A scenario with the machines and hosts of a project."""

    scenario: Scenario
    project: str
    places: Mapping[str, str]  # where the guest of each machine polls, as text


async def match_machines(
    api: OperatorApi, scenario: Scenario, *, project: str | None, substitutes: Mapping[str, str]
) -> MatchedScenario:
    """Find a machine for each one in the scenario. Conflict unless all are for rehearsals."""
    for role in substitutes:
        if role not in scenario.machines:
            raise NotFound(f"{scenario.name} has no machine {role}, only {', '.join(scenario.machines)}")
    await _check_rights(api, scenario)
    chosen = await _project(api, project)
    found = {
        role: await _machine(api, substitutes.get(role, role), role=role, project=chosen)
        for role in required_machines(scenario)
    }
    names = {role: machine.name for role, machine in found.items()}
    for role, name in names.items():
        twice = [other for other in names if names[other] == name and other != role]
        if twice:
            raise Conflict(f"machine {name} cannot play both {role} and {twice[0]}")
    _check_evicted(scenario, found)
    hosts = {host: _carrier(scenario, host, found) for host in hosts_of(scenario)}
    await _check_hosts(api, hosts.values())
    return MatchedScenario(
        scenario=substitute(scenario, machines=names, hosts=hosts),
        project=chosen,
        places={machine.name: _where_it_polls(machine) for machine in found.values()},
    )


async def _check_rights(api: OperatorApi, scenario: Scenario) -> None:
    """Fail fast if the server would refuse an order later."""
    for order in scenario.orders:
        if ACTIONS[order.action].source is not Source.USER:  # a project's own token is enough for the others
            try:
                await api.all(TokenAnswer)  # only operators may list tokens
            except Conflict:
                raise Conflict(f"{scenario.name} orders {order}, which needs an operator's token") from None
            return


def _check_evicted(scenario: Scenario, found: Mapping[str, MachineAnswer]) -> None:
    """Fail fast if the server would refuse an eviction later."""
    for role in evicted(scenario):
        machine = found[role]
        if machine.priority is not Priority.SPOT:
            raise Conflict(
                f"{scenario.name} evicts {role}, but machine {machine.name} is {machine.priority}: "
                f"only spot machines are evicted; --machine {role}=NAME says which machine plays {role}"
            )


async def _project(api: OperatorApi, name: str | None) -> str:
    """Return the named project, or the only one that the caller sees."""
    if name is None:
        known = await api.all(ProjectAnswer)
        if len(known) != 1:
            ready = ", ".join(each.name for each in known if each.rehearsal) or "none yet"
            raise Conflict(f"name a project with --project; projects for rehearsals: {ready}")
        name = known[0].name
    if not (await api.call("GET", f"/v1/projects/{quote(name, safe='')}", ProjectAnswer)).rehearsal:
        raise Conflict(f"project {name} is not for rehearsals: {how_to_allow_rehearsals(name)}")
    return name


async def _machine(api: OperatorApi, name: str, *, role: str, project: str) -> MachineAnswer:
    try:
        path = f"/v1/machines/{quote(name, safe='')}"
        return await api.call("GET", path, MachineAnswer, project=project)
    except NotFound:
        who = f"--machine {role}=NAME says which machine plays {role}"
        raise NotFound(f'project {project} has no machine "{name}": {who}') from None


def _where_it_polls(machine: MachineAnswer) -> str:
    if machine.port is not None:
        return f"http://127.0.0.1:{machine.port}{EVENTS_PATH}, on the server's machine"
    if machine.address is not None:
        return f"{EVENTS_PATH} of the server's guest endpoint, from {machine.address}"
    return "nowhere: it has neither an address nor a port in the fleet"


def _carrier(scenario: Scenario, host: str, found: Mapping[str, MachineAnswer]) -> str:
    """Return the host of the machines that match those of a scenario's host."""
    substitutes = [found[role] for role in machines_on(scenario, host)]
    hosts = sorted({machine.host for machine in substitutes if machine.host})
    if len(hosts) != 1:
        where = ", ".join(f"{machine.name} on {machine.host or 'no host'}" for machine in substitutes)
        raise Conflict(
            f"{scenario.name} acts on {host}, but its machines are not on one host here: "
            f"{where or 'there are none'}"
        )
    return hosts[0]


async def _check_hosts(api: OperatorApi, hosts: Collection[str]) -> None:
    """Fail fast if the server would refuse an order on a host later."""
    agreed = {each.name for each in await api.all(ProjectAnswer) if each.rehearsal} if hosts else set()
    for host in hosts:
        carries = await api.call("GET", f"/v1/hosts/{quote(host, safe='')}", HostWithMachinesAnswer)
        others = [name for name in carries.projects if name not in agreed]
        if others:
            raise Conflict(
                f"host {host} also carries machines of {', '.join(others)}, and an order on a host affects "
                "all its machines: use a host that carries only machines of projects for rehearsals"
            )
