"""Replay a run of the model on core: apply each action to a real fleet, and compare each state.

The replay calls core as use cases and the engine do, each time with the saved state. A crash therefore loses
nothing here either, and nothing is called while the server is down.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from forewarn.core.admission import holds
from forewarn.core.basic_types import Action as Ordering
from forewarn.core.basic_types import (
    EventStatus,
    HostName,
    HostTask,
    MachineId,
    MachineName,
    Mobility,
    StepState,
)
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Hold
from forewarn.core.model.event import Event
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import AttemptId, Order
from forewarn.core.orders import interventions, lifecycle, reports
from forewarn.core.policy import Policy
from tests.model.trace import Act, Action, HostIs, HostState, MachineState, Ordered, Share, State, name
from tests.unit.slices import Fleet, machine

TICK = timedelta(minutes=5)
PLACED = {"A0": 0, "A1": 0, "A2": 1, "B0": 0, "B1": 1, "B2": 2}
ACTIONS = {
    Ordered.MAINTENANCE: Ordering.MAINTENANCE,
    Ordered.DEGRADE: Ordering.DEGRADE,
    Ordered.FAIL: Ordering.FAIL,
    Ordered.SERVICE: Ordering.SERVICE,
}
STAYING = ("A1", "A2")
# A move with this much memory, in GiB, takes 20 minutes: four ticks of the model.
MEMORY = (20 * 60 - 30) / 3.5
HOLD = "HOLD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The constants of the model, in ticks."""

    reboot: int
    redeploy: int
    degrade: int
    stale: int
    deferral: int

    def policy(self) -> Policy:
        """Return the policy with these times; started events do not linger."""
        return Policy(
            reboot_notice=self.reboot * TICK,
            redeploy_notice=self.redeploy * TICK,
            degrade_notice=self.degrade * TICK,
            stale_after=self.stale * TICK,
            linger=timedelta(),
            return_by=timedelta(days=10_000),
        )


class Diverged(Exception):
    """Core behaved differently from the model."""


class Replay:
    """A fleet like the model's, with the same actions."""

    def __init__(self, constants: Constants) -> None:
        self._deferral = constants.deferral * TICK
        asked = GroupPolicy(defer=self._deferral)
        self._fleet = Fleet(
            *(
                machine(each, f"host-{host}", group=each[0], domain=int(each[1]), **_traits(each))
                for each, host in PLACED.items()
            ),
            policies={"A": asked, "B": asked},
            policy=constants.policy(),
        )
        for host in self._draft.hosts.values():
            self._draft.put_host(replace(host, at_once=1))

    def do(self, action: Action) -> None:
        """Apply an action of the model; Diverged if the result differs."""
        try:
            self._do(action)
            self._fleet.turn()
            refused = False
        except Conflict:
            self._fleet.undo()
            refused = True
        if refused != action.refused:
            raise Diverged(f"{action}: core has {'refused' if refused else 'taken'} it")
        if (found := self.state()) != action.after:
            raise Diverged(f"{action}: {_difference(action.after, found)}")

    def _do(self, action: Action) -> None:
        about, more = action.about, action.more
        does: Mapping[Act, Callable[[], object]] = {
            Act.ORDER: lambda: self._place(f"host-{about}", Ordered(more)),
            Act.CANCEL: lambda: interventions.cancel(self._draft, self._order_on(about).id, by="test"),
            Act.RESTORE: lambda: self._fleet.maintain(f"host-{about}", Ordering.RESTORE),
            Act.APPROVE: lambda: self._fleet.approve(self._event_of(about), by=name(about)),
            Act.DEFER: lambda: self._defer(about),
            Act.DONE: lambda: self._end_step(about, more),
            Act.WORKED: lambda: self._end_work(about),
            Act.HOLD: lambda: holds.put(
                self._draft, Hold(id=HOLD, at=self._draft.now, by="test", reason="model")
            ),
            Act.RELEASE: lambda: holds.release(self._draft, HOLD, by="test"),
            Act.LOOK: lambda: self._look([about]),
            Act.TICK: lambda: self._pass_time(TICK, action),
            Act.WAIT: lambda: self._pass_time(about * TICK, action),
            Act.CRASH: lambda: None,
            Act.RECOVER: lambda: self._look(_hosts_from(more)),
        }
        does[action.act]()

    @property
    def _draft(self) -> Draft:
        return self._fleet.draft

    def _place(self, host: str, ordered: Ordered) -> None:
        # The model names the target of a move when it ends, like a driver that chooses hosts.
        terms = {"driver_chooses": True, "fenced": "model" if ordered is Ordered.FAIL else ""}
        self._fleet.maintain(host, ACTIONS[ordered], **terms)

    def _defer(self, machine: int) -> None:
        by, event = MachineName(name(machine)), self._event_of(machine)
        lifecycle.defer(self._draft, event, by=by, wanted=self._deferral, policy=self._fleet.policy)

    def _pass_time(self, span: timedelta, action: Action) -> None:
        self._fleet.turn(span)
        self._look(() if action.down else _hosts_from(action.more))

    def _look(self, hosts: Iterable[int]) -> None:
        for host in hosts:
            if (order := self._found_on(host)) is not None:
                self._fleet.advance(order.id)
            self._fleet.turn()

    def _end_step(self, machine: int, host: int) -> None:
        """Report that a machine's work is done, and its host."""
        id_ = MachineId(name(machine))
        order = next(each for each in self._orders() if id_ in {step.machine for step in each.running})
        step = next(step for step in order.running if step.machine == id_)
        arrived = HostName(f"host-{host}")
        reports.step_done(self._draft, AttemptId(order.id, id_, step.attempt), host=arrived)
        self._fleet.advance(order.id)

    def _end_work(self, host: int) -> None:
        """Report that the work on the host itself is done."""
        order = self._order_on(host)
        step = next(step for step in order.running_host_steps if step.task is HostTask.WORK)
        reports.step_done(self._draft, AttemptId(order.id, step.subject, step.attempt))
        self._fleet.advance(order.id)

    def _orders(self) -> list[Order]:
        return [order for order in self._draft.orders.values() if order.open]

    def _found_on(self, host: int) -> Order | None:
        return next((order for order in self._orders() if order.host == f"host-{host}"), None)

    def _order_on(self, host: int) -> Order:
        order = self._found_on(host)
        if order is None:
            raise Diverged(f"host {host} has no order")
        return order

    def _event_of(self, machine: int) -> Event:
        found = self._events().get(name(machine))
        if found is None:
            raise Diverged(f"{name(machine)} has no event")
        return found

    def _events(self) -> Mapping[str, Event]:
        return {named.name: event for event in self._fleet.events() for named in event.resources}

    # Comparison

    def state(self) -> State:
        """Return the fleet as a state of the model."""
        events = self._events()
        untold = {
            step.name
            for order in self._orders()
            for step in order.steps
            if step.state is StepState.WAITING and step.name not in events
        }
        return State(
            machines=tuple(self._machine(each, events.get(each), each in untold) for each in PLACED),
            hosts=tuple(self._host(each) for each in range(3)),
        )

    def _machine(self, each: str, event: Event | None, untold: bool) -> MachineState:
        host = int(f"{self._fleet.machine(each).host}".removeprefix("host-"))
        if event is None:
            return MachineState(host=host, share=Share.QUEUED if untold else Share.FREE)
        if event.status is EventStatus.STARTED:
            return MachineState(host=host, share=Share.STARTED)
        return MachineState(
            host=host,
            share=Share.SCHEDULED,
            armed=event.armed_at is not None,
            approved=event.approved,
            deferred=event.deferred is not None,
            not_before=max((event.not_before - self._fleet.now) // TICK, -self._stale_ticks),
        )

    @property
    def _stale_ticks(self) -> int:
        return self._fleet.policy.stale_after // TICK

    def _host(self, host: int) -> HostState:
        order = self._found_on(host)
        steps = () if order is None else order.running_host_steps
        state = self._draft.hosts[HostName(f"host-{host}")].state
        return HostState(
            order=Ordered.NONE if order is None else Ordered[order.action.name],
            state=HostIs[state.name],
            working=any(step.task is HostTask.WORK for step in steps),
        )


def _traits(machine: str) -> Mapping[str, object]:
    mobility = Mobility.NONE if machine in STAYING else Mobility.COLD
    return {"mobility": mobility, "resources": {"memory": MEMORY}}


def _hosts_from(first: int) -> tuple[int, ...]:
    return tuple((first + each) % 3 for each in range(3))


def _difference(expected: State, found: State) -> str:
    both = (
        *zip(PLACED, expected.machines, found.machines, strict=True),
        *zip(("host 0", "host 1", "host 2"), expected.hosts, found.hosts, strict=True),
    )
    return "; ".join(f"{what} is {mine}, in core {its}" for what, mine, its in both if mine != its)
