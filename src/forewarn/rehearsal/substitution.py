"""A scenario written for one fleet, played on the machines of another."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from forewarn.core.catalogue import ACTIONS, WORKS
from forewarn.core.policy import Policy
from forewarn.core.words import Action, HostName, MachineName
from forewarn.rehearsal.scenario import FaultStep, OrderStep, Scenario, ScenarioStep


def machines_on(scenario: Scenario, host: str) -> tuple[str, ...]:
    """Return the machines that a scenario's fleet has on a host."""
    return tuple(machine.name for machine in scenario.fleet.machines if machine.host == host)


def hosts_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the hosts that a scenario orders something to be done to."""
    return tuple(sorted({order.host for order in scenario.orders if order.host}))


def required_machines(scenario: Scenario) -> tuple[str, ...]:
    """Return the machines that a scenario cannot do without: others of its fleet need not exist elsewhere."""
    spoiled = {name for _, step in scenario.fault_steps for name in step.fault.machines}
    needed = {*scenario.expect.machines, *spoiled, *(order.machine for order in scenario.orders)}
    hosts = {order.host for order in scenario.orders}
    return tuple(each.name for each in scenario.fleet.machines if each.name in needed or each.host in hosts)


def evicted(scenario: Scenario) -> tuple[str, ...]:
    """Return the machines that a scenario evicts."""
    return tuple(
        order.machine for order in scenario.orders if ACTIONS[order.action].spot_only and order.machine
    )


def substitute(scenario: Scenario, *, machines: Mapping[str, str], hosts: Mapping[str, str]) -> Scenario:
    """Rename machines and hosts; only the machines named here remain."""
    fleet = replace(
        scenario.fleet,
        hosts=tuple(
            replace(host, name=HostName(hosts.get(host.name, host.name))) for host in scenario.fleet.hosts
        ),
        machines=tuple(
            replace(each, name=MachineName(machines[each.name]))
            for each in scenario.fleet.machines
            if each.name in machines
        ),
    )
    expect = replace(scenario.expect, machines=tuple(machines[name] for name in scenario.expect.machines))
    steps = tuple(_step(step, machines, hosts) for step in scenario.steps)
    return replace(scenario, fleet=fleet, expect=expect, steps=steps, guests=())


def unanswered(scenario: Scenario) -> timedelta:
    """Estimate how long a scenario takes without approvals; a server may give more notice than it must."""
    policy = Policy()
    ends = [step.at for step in scenario.steps]
    ends += [
        step.at + _notice(step.does, policy) + policy.linger
        for step in scenario.steps
        if isinstance(step.does, OrderStep)
    ]
    return min(max(ends, default=timedelta()), scenario.limit)


def _notice(order: OrderStep, policy: Policy) -> timedelta:
    work = order.work or ACTIONS[order.action].work
    if order.action is Action.DEGRADE:
        return policy.degrade_notice
    type_ = WORKS[work].event if work and order.action is not Action.FAIL else None
    return policy.notice(type_) if type_ else timedelta()


def _step(step: ScenarioStep, machines: Mapping[str, str], hosts: Mapping[str, str]) -> ScenarioStep:
    if isinstance(step.does, FaultStep):
        fault = step.does.fault
        renamed = replace(fault, machines=tuple(machines[name] for name in fault.machines))
        return replace(step, does=replace(step.does, fault=renamed))
    order = step.does
    if not isinstance(order, OrderStep):
        return step
    machine = None if order.machine is None else machines[order.machine]
    host = None if order.host is None else hosts[order.host]
    return replace(step, does=replace(order, machine=machine, host=host))
