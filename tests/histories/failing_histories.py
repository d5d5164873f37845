"""Histories in which hosts fail repeatedly, while machines recover, arrive or leave."""

from collections.abc import Mapping, Sequence

from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    HostState,
    Kind,
    MachineState,
    Priority,
    StepState,
    Work,
)
from forewarn.core.model.order import Order
from forewarn.core.orders.order_requests import OrderRequest
from tests.histories.histories import HOSTS, NAMES, Histories, act
from tests.histories.situations import Look, Situation

# Long enough for normal work, too short for steps that were made slow.
MOMENTS = [1, 10, 31, 61, 300]


class FailingHistories(Histories):
    """A history that prefers hosts that failed, or that machines move to."""

    STEPS = 24

    # Choosing

    def troubled(self) -> str:
        """Choose a host; prefer failed or restored ones, and targets of moves."""
        whole = self.service.everything()
        failures = {f"{order.host}" for order in whole.orders.values() if order.action is Action.FAIL}
        targets = {
            f"{step.target}" for order in whole.orders.values() for step in order.running if step.target
        }
        return self.pick([*sorted(failures), *sorted(targets), self.crowded_host(), self.pick(HOSTS)])

    def failed_hosts(self) -> Sequence[str]:
        hosts = self.service.everything().hosts.values()
        return sorted(f"{host.name}" for host in hosts if host.state is HostState.FAILED)

    def in_trouble(self) -> Sequence[str]:
        """Return the machines on failed hosts, and those that are down; if there are none, all."""
        failed = self.failed_hosts()
        members = self.service.everything().machines.values()
        found = (each for each in members if each.host in failed or each.state is MachineState.STOPPED)
        return sorted(f"{each.name}" for each in found) or NAMES

    def makes_slow(self) -> None:
        """Make some machines or fences slow, failing or unresponsive."""
        driver = self.service.driver
        for told in (driver.slow, driver.unknown, driver.failing):
            told.clear()
            told |= {*self.some(NAMES, most=3), *self.some([f"fence of {host}" for host in HOSTS], most=2)}

    # Doing

    def advance(self, seconds: float) -> None:
        """Let less time pass: the driver is asked about slow steps often, and a day of that takes long."""
        super().advance(min(seconds, 1800))

    @act(80)
    def a_host_fails(self) -> None:
        self.makes_slow()
        for _ in range(self.pick([1, 1, 2])):
            host = self.troubled()
            if self.random.random() < 0.3:
                self.vouch(host)
            else:
                driver = self.pick([self.DRIVER, self.DRIVER, self.DRIVER, EXTERNAL])
                request = OrderRequest(by="test", driver=driver)
                self.do(self.service.fleet.hosts.order_host, host, Action.FAIL, request)
            self.advance(self.pick(MOMENTS))

    @act(50)
    def a_host_fails_again(self) -> None:
        """Restore a host while its machines are being recovered; some may come back to it."""
        self.makes_slow()
        for host in self.one(self.failed_hosts()):
            self.do(self.service.host_order, host, Action.RESTORE)
            self.advance(self.pick([0, *MOMENTS]))
            if self.random.random() < 0.3:
                self.decides_about_a_failure()
            self.do(self.service.host_order, host, Action.FAIL)
            self.look(self.service.everything())

    @act(60)
    def a_host_fails_while_machines_come(self) -> None:
        """Let machines move, recover or start on a host that fails."""
        self.makes_slow()
        for name, host in self.one(self.on_hosts()):
            self.service.driver.slow.add(name)
            self.service.driver.failing.discard(name)
            match self.pick(["redeploy", "redeploy", "fail", "start"]):
                case "redeploy":
                    self.do(self.service.order, name, Action.REDEPLOY)
                    self.approve_all()
                case "fail":
                    self.vouch(host)
                case _:
                    self.goes_and_comes(name)
            for order in self.service.everything().orders.values():
                for step in order.running:
                    if step.name == name and step.target is not None:
                        self.do(self.service.host_order, f"{step.target}", Action.FAIL)
            self.look(self.service.everything())

    def goes_and_comes(self, name: str) -> None:
        self.service.driver.slow.discard(name)
        self.do(self.service.order, name, Action.EVICT)
        self.approve_all()
        self.advance(120)
        self.service.driver.slow.add(name)
        self.do(self.service.order, name, Action.START)

    @act(80)
    def a_host_fails_while_machines_leave(self) -> None:
        self.makes_slow()
        spot = {
            each.name
            for each in self.service.everything().machines.values()
            if each.priority is Priority.SPOT
        }
        for name, host in self.one(self.on_hosts()):
            self.service.driver.unknown.add(name)
            self.do(self.service.order, name, Action.EVICT if name in spot else Action.TERMINATE)
            self.approve_all()
            self.do(self.service.host_order, host, Action.FAIL)
            self.look(self.service.everything())

    @act(60)
    def somebody_does_something_about_a_machine(self) -> None:
        name = self.pick(self.in_trouble())
        self.do(
            self.service.order,
            name,
            self.pick([Action.TERMINATE, Action.TERMINATE, Action.START, Action.EVICT]),
        )
        if self.random.random() < 0.5:
            self.approve_all()
        self.look(self.service.everything())
        if self.random.random() < 0.6:
            for order in self.one(sorted(self.service.everything().orders)):
                self.do(self.service.orders.cancel_order, order, by="test")
            self.do(self.service.order, name, Action.START)

    @act(60)
    def decides_about_a_failure(self) -> None:
        orders = self.service.everything().orders.values()
        mine = [order for order in orders if order.action is Action.FAIL or _leaves(order)]
        for order in self.one(sorted(mine, key=lambda order: order.number)):
            match self.pick(["vouch", "vouch", "retry", "abandon", "complete", "cancel"]):
                case "vouch" if order.host is not None:
                    self.vouch(order.host)
                case "vouch":
                    self.do(self.service.orders.abandon_order, order.id, by="test")
                case verb:
                    self.do(getattr(self.service.orders, f"{verb}_order"), order.id, by="test")

    @act(40)
    def a_host_is_restored(self) -> None:
        for host in self.one(self.failed_hosts()):
            self.do(self.service.host_order, host, Action.RESTORE)

    @act(40)
    def a_moment_passes(self) -> None:
        if self.random.random() < 0.5:
            self.makes_slow()
        self.advance(self.pick(MOMENTS))

    @act(25)
    def all_is_well_again(self) -> None:
        """Make hosts usable, so that there are targets, and hosts that can fail."""
        driver = self.service.driver
        for told in (driver.slow, driver.unknown, driver.failing):
            told.clear()
        for host in self.failed_hosts():
            self.vouch(host)
        self.advance(300)
        self.tidies_up()
        for name in self.in_trouble():
            self.do(self.service.order, name, Action.START)
        self.advance(300)


def _leaves(order: Order) -> bool:
    return order.action in (Action.EVICT, Action.TERMINATE)


def _failures(look: Look) -> Sequence[Order]:
    return [order for order in look.fleet.orders.values() if order.action is Action.FAIL]


def _waits_for(*actions: Action) -> Situation:
    """Whether a failure waits for orders of some kinds on an arriving or leaving machine."""

    def found(look: Look) -> bool:
        reasons = [why.reason for order in _failures(look) for why in order.waiting]
        ends = [f"({action}) to finish with it" for action in actions]
        return any(reason.endswith(end) for reason in reasons for end in ends)

    return found


def _goes_on_though_it_failed_again(look: Look) -> bool:
    hosts = [order.host for order in _failures(look)]
    return any(hosts.count(order.host) > 1 and order.running for order in _failures(look))


def _fails_with_its_target(look: Look) -> bool:
    moot = (step for order in _failures(look) for step in order.steps if step.state is StepState.MOOT)
    return any(step.begun_at and " failed (order" in step.why for step in moot)


def _is_terminated_while_it_waits(look: Look) -> bool:
    waiting = {
        step.machine for order in _failures(look) for step in order.steps if step.state is StepState.WAITING
    }
    return any(
        order.work is Work.TERMINATE and order.machine in waiting for order in look.fleet.orders.values()
    )


FAILING_SITUATIONS: Mapping[str, Situation] = {
    "a failed host waits to be fenced": lambda look: look.waits("once it is fenced"),
    "a host cannot be fenced": lambda look: look.recorded(Kind.STEP_FAILED, "fence of the host"),
    "a person confirms that a host is isolated": lambda look: look.recorded(Kind.HOST_FENCED),
    "a recovery continues although its host failed again": _goes_on_though_it_failed_again,
    "a machine is recovered to a host that fails": _fails_with_its_target,
    "a failure waits for a leaving machine": _waits_for(Action.EVICT, Action.TERMINATE),
    "a failure waits for an arriving machine": _waits_for(
        Action.REDEPLOY, Action.MAINTENANCE, Action.DEGRADE
    ),
    "a machine that waits for its recovery is terminated": _is_terminated_while_it_waits,
}
