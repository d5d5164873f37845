"""Scenarios: what happens when, on which machines, and the expectations for their guests.

All times are service time since the start. A scenario for one fleet can be played on the machines of another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from forewarn.core.basic_types import Action, HostName, MachineName, Work
from forewarn.core.catalogue import ACTIONS, WORKS
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.policy import Policy
from forewarn.core.rehearsal_rules import Fault

# Real time for guests and workloads to recover after the end.
RECOVERY = timedelta(minutes=2)
# Longer than any notice and work, except the notice of degraded hardware.
LIMIT = timedelta(hours=2)


class Start(StrEnum):
    """When the clock of a scenario starts."""

    FIRST_POLL = "first-poll"  # when every machine with an expectation has polled
    NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStep:
    """An order for a machine or a host."""

    action: Action
    machine: str | None = None
    host: str | None = None
    work: Work | None = None  # of a maintenance

    def __str__(self) -> str:
        work = f" ({self.work})" if self.work else ""
        return f"{self.action} {self.machine or self.host}{work}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelStep:
    """Cancels the last order."""

    def __str__(self) -> str:
        return "the last order is cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultStep:
    """A fault of the metadata endpoint."""

    fault: Fault
    lasts: timedelta | None = None  # None: until the end

    def __str__(self) -> str:
        return str(self.fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioStep:
    """A step and its time."""

    at: timedelta
    does: OrderStep | CancelStep | FaultStep


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCommand:
    """A program to run as the guest of a machine."""

    machine: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A health check of the workload: a URL or a command. Times are real."""

    name: str
    url: str | None = None
    command: tuple[str, ...] = ()
    back_within: timedelta | None = None  # None: no outage is allowed
    every: timedelta = timedelta(seconds=1)
    timeout: timedelta = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Expectations for the guests of some machines. None: anything is allowed."""

    machines: tuple[str, ...]
    polled: bool | None = None
    saw: bool | None = None
    approved: bool | None = None
    within: timedelta | None = None  # from the announcement to the approval
    recovered: bool | None = None  # got a valid answer after the last fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A complete scenario."""

    name: str
    about: str
    fleet: FleetSpec
    steps: tuple[ScenarioStep, ...]
    expect: Expectation
    clock: str = "x60"
    start: Start = Start.FIRST_POLL
    limit: timedelta = LIMIT
    recovery: timedelta = RECOVERY  # real time
    guests: tuple[GuestCommand, ...] = ()
    probes: tuple[Probe, ...] = ()

    def faults(self, began: datetime | None) -> tuple[Fault, ...]:
        """Return the faults with their times. Before the begin: those that are on from the start."""
        found = enumerate(self.fault_steps)
        numbered = [(at, step.lasts, replace(step.fault, number=n)) for n, (at, step) in found]
        if began is None:
            return tuple(fault for at, _, fault in numbered if not at)
        return tuple(
            replace(fault, since=began + at, until=None if lasts is None else began + at + lasts)
            for at, lasts, fault in numbered
        )

    @property
    def orders(self) -> list[OrderStep]:
        """All orders."""
        return [step.does for step in self.steps if isinstance(step.does, OrderStep)]

    @property
    def fault_steps(self) -> list[tuple[timedelta, FaultStep]]:
        """All faults, with the time at which each begins."""
        return [(step.at, step.does) for step in self.steps if isinstance(step.does, FaultStep)]

    @property
    def machines(self) -> tuple[str, ...]:
        """The names of all machines."""
        return tuple(machine.name for machine in self.fleet.machines)


def machines_on(scenario: Scenario, host: str) -> tuple[str, ...]:
    """Return the machines on a host of the scenario's fleet."""
    return tuple(machine.name for machine in scenario.fleet.machines if machine.host == host)


def hosts_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the hosts in orders."""
    return tuple(sorted({order.host for order in scenario.orders if order.host}))


def required_machines(scenario: Scenario) -> tuple[str, ...]:
    """Return the machines that a scenario needs. The others need not exist elsewhere."""
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
    """Rename machines and hosts, and drop all other machines."""
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
    """Estimate how long a scenario takes without approvals.

    A server may give more notice than the minimum.
    """
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
