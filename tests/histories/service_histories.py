"""Histories with work on hosts: machines leave, restart with their host, come back or arrive late."""

from collections.abc import Mapping
from random import Random
from typing import Any

from forewarn.core.basic_types import EXTERNAL, Action, HostState, Kind, ServiceMode, StageKind, StageState
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders.order_requests import OrderRequest
from tests.histories.histories import NAMES, Histories, act
from tests.histories.situations import Look, Reached, Situation

# How often a move fails, and when the driver works again: by then every retry was used.
OFTEN, MENDED = 0.3, 4


class ServiceHistories(Histories):
    """A history that is shorter than others, because its actions take long."""

    STEPS = 10

    def __init__(self, seed: int, reached: Reached) -> None:
        super().__init__(seed, reached)
        self._failing = Random(seed)

    def serve(self, host: str, **terms: Any) -> None:
        request = OrderRequest(by="test", driver=self.DRIVER, terms=OrderTerms(**terms))
        self.do(self.service.fleet.hosts.order_host, host, Action.SERVICE, request)

    @act(250)
    def works_on_a_host(self) -> None:
        """Work on a host: its machines leave it or restart with it."""
        if self.random.random() < 0.8:
            self.tidies_up()
            self.service.driver.failing.clear()
        host = self.crowded_host()
        self.service.driver.failing |= self.moves_that_fail(host)
        self.serve(
            host,
            mode=self.pick([ServiceMode.EVACUATE, ServiceMode.EVACUATE, ServiceMode.IN_PLACE]),
            together=self.pick(["", "", "its board is swapped"]),
            returning=self.random.random() < 0.7,
            host_driver=self.pick([None, None, EXTERNAL]),
        )
        approved = self.random.random() < 0.5
        for turn in range(self.pick([1, 6, 10])):
            if turn == MENDED:
                self.service.driver.failing.clear()
            if approved:
                self.approve_all()
            self.advance(self.pick([90, 300, 960]))
            self.look(self.service.everything())
            self.reports_what_is_done_outside()

    def moves_that_fail(self, host: str) -> set[str]:
        """Choose a machine of the host in some histories, with a separate random generator."""
        there = [name for name, on in self.on_hosts() if on == host]
        return {self._failing.choice(there)} if there and self._failing.random() < OFTEN else set()

    def reports_what_is_done_outside(self) -> None:
        for order in self.begun_outside():
            self.do(self.service.orders.complete_order, order, by="test")

    @act(60)
    def comes_to_a_host_that_is_worked_on(self) -> None:
        """Add machines before, during and after the evacuation of a host."""
        host, owner, domain = self.place()
        self.serve(host, mode=self.pick(list(ServiceMode)))
        self.approve_all()
        for _ in range(2):
            self.advance(self.pick([1, 300, 960]))
            for name in self.one(sorted(set(NAMES) - set(self.named()))):
                self.put(name, host, owner, self.pick([domain, (domain + 1) % 3]))
            self.look(self.service.everything())

    @act(45)
    def fails_while_it_is_worked_on(self) -> None:
        host = self.crowded_host()
        self.serve(host)
        self.approve_all()
        self.do(self.service.host_order, host, Action.FAIL)


def in_stage(kind: StageKind, state: StageState) -> Situation:
    """Whether an order has a stage of some kind and state with machines."""
    return lambda look: any(
        stage.kind is kind and stage.state is state and stage.steps
        for order in look.fleet.orders.values()
        for stage in order.stages
    )


def _arrives_late(look: Look) -> bool:
    """Whether an evacuation announced an event after it had started."""
    for order in look.fleet.orders.values():
        for index, stage in enumerate(order.stages):
            begun = stage.started_at if stage.kind is StageKind.EVACUATE else None
            mine = (
                each for each in look.fleet.events.values() if (each.order, each.stage) == (order.id, index)
            )
            if begun is not None and any(event.announced_at > begun for event in mine):
                return True
    return False


def _is_cordoned_for_an_order(look: Look) -> bool:
    hosts = look.fleet.hosts.values()
    return any(host.cordoned_for is not None and host.state is HostState.CORDONED for host in hosts)


SERVICE_SITUATIONS: Mapping[str, Situation] = {
    "machines leave a host": in_stage(StageKind.EVACUATE, StageState.STARTED),
    "all machines that could leave have left": in_stage(StageKind.EVACUATE, StageState.DONE),
    "machines are announced to restart with their host": in_stage(StageKind.HOST, StageState.ANNOUNCED),
    "machines restart with their host": in_stage(StageKind.HOST, StageState.STARTED),
    "machines come back": in_stage(StageKind.RETURN, StageState.STARTED),
    "a machine arrives during an evacuation": _arrives_late,
    "a host is cordoned for an order": _is_cordoned_for_an_order,
    "a failed move is retried": lambda look: look.recorded(Kind.ORDER_RETRIED, "is moved again"),
    "a live move becomes a redeploy": lambda look: look.recorded(Kind.ORDER_RETRIED, "cannot be moved live"),
    "a host fails while it is worked on": lambda look: look.recorded(Kind.ORDER_CANCELLED, " failed (order"),
}
