"""Histories with an unreliable driver, in lanes without threads; the order of answers is random too."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random

from forewarn.control.engine.driver_calls import Answer, CallAnswer, DriverCall, Verb, perform
from forewarn.core.basic_types import (
    SIMULATED,
    Action,
    EventStatus,
    HostState,
    HostTask,
    OrderState,
    ServiceMode,
    StageKind,
    StageState,
    Work,
)
from forewarn.core.model.order import AttemptId, HostStep, Order, OrderTerms, Step
from forewarn.core.model.rollout import RolloutTerms
from forewarn.core.model.slice import Slice
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.server.threads.lane_queues import LaneBounds, LaneQueues, PlacedCall
from tests.helpers.service.harness import Service
from tests.helpers.service.unruly_driver import UNRULY, UnrulyDriver, World
from tests.histories.histories import HOSTS, NAMES, act
from tests.histories.rollout_histories import ROLLOUT_SITUATIONS, RollingHistories
from tests.histories.service_histories import in_stage
from tests.histories.situations import Look, Reached, Situation

# From a moment to longer than every timeout, in real seconds.
WAITS = (0.1, 1.0, 5.0, 12.0, 31.0, 70.0)
# Enough for every chain of calls to end once the driver answers.
TURNS_TO_END = 400


class VirtualLanes:
    """Lanes without threads: a seed decides which call begins, returns or hangs next."""

    def __init__(self, service: Service, driver: UnrulyDriver, seed: int) -> None:
        self.service = service
        self.driver = driver
        self.random = Random(seed)
        self.forget()

    def forget(self) -> None:
        """Lose everything, as if the process died; work that had begun may still be done."""
        for placed in [] if not hasattr(self, "made") else [one for one, said in self.made if said is None]:
            if self.random.random() < 0.5:
                self._perform(placed)
        self.driver.world.unreturned.clear()
        self.queues = LaneQueues(
            lambda task: self.driver.limits, bounds=LaneBounds(calls=4, hung=3, hung_in_lane=2)
        )
        self.made: list[tuple[PlacedCall, Answer | None]] = []  # None: its effect happens when it returns
        self.answers: list[CallAnswer] = []

    def turn(self) -> None:
        """Run one random event."""
        self._take_over()
        happens = self.random.choice(
            [self._begin, self._begin, self._return, self._return, self._deliver, self._deliver, self._wait]
        )
        happens()
        self._take_over()

    def settle(self) -> None:
        """Finish all calls."""
        for _ in range(TURNS_TO_END):
            if not self.known():
                return
            for happens in (self._take_over, self._begin, self._return, self._deliver, self._deliver_all):
                happens()
            self._wait()

    def known(self) -> set[AttemptId]:
        """Return the attempts with unfinished calls or answers."""
        self._take_over()
        told = [each.call.task.id for each in self.answers]
        queued = [each.attempt for lane in self.queues.lanes for each in self.queues.waiting.of(lane)]
        later = [each.attempt for mine in self.queues.later.by_subject.values() for each in mine.values()]
        return {*told, *queued, *later, *(placed.attempt for placed, _ in self.made)}

    def _now(self) -> float:
        return self.service.real

    def _take_over(self) -> None:
        calls, self.service.calls.waiting = self.service.calls.waiting, []
        withdrawn, self.service.calls.withdrawn = self.service.calls.withdrawn, []
        for attempt in withdrawn:
            self.queues.withdraw(attempt)
        for call in calls:
            wait = None if call.at is None else (call.at - self.service.real_now()).total_seconds()
            self.queues.add(call, now=self._now(), wait=wait)
        self.queues.pass_time(self._now())
        self.answers += self.queues.take_answers()

    def _begin(self) -> None:
        placed = self.queues.next(self._now())
        if placed is not None:
            at_once = self.random.random() < 0.6
            if placed.call.verb is Verb.BEGIN:
                self.driver.world.unreturned.add(placed.attempt)
            self.made.append((placed, self._perform(placed) if at_once else None))

    def _return(self) -> None:
        if self.made:
            placed, said = self.made.pop(self.random.randrange(len(self.made)))
            self.queues.returned(placed, self._perform(placed) if said is None else said)
            if placed.call.verb is Verb.BEGIN:
                self.driver.world.unreturned.discard(placed.attempt)

    def _perform(self, placed: PlacedCall) -> Answer:
        call: DriverCall = placed.call
        return perform(self.driver, replace(call, task=replace(call.task, now=self.service.real_now())))

    def _wait(self) -> None:
        self.service.real += self.random.choice(WAITS)
        if self.random.random() < 0.2:
            known = sorted(self.service.everything().machines)
            for machine in known and [self.random.choice(known)]:
                self.queues.wake(machine)

    def _deliver(self) -> None:
        many = self.random.randint(1, 4)
        some, self.answers = self.answers[:many], self.answers[many:]
        if some:
            self.service.engine.take_answers(some)
            self.service.tick()

    def _deliver_all(self) -> None:
        while self.answers:
            self._deliver()


class UnrulyHistories(RollingHistories):
    """Histories with a driver that is slow, hangs, lies, dies and answers late."""

    DRIVER = UNRULY

    def __init__(self, seed: int, reached: Reached) -> None:
        super().__init__(seed, reached)
        self.world = World()
        self.unruly = UnrulyDriver(seed, self.world, hosts=HOSTS)
        able = frozenset({SIMULATED, UNRULY})
        policy = replace(
            self.service.policy,
            fencing=able,
            working_on_hosts=able,
            verifying_restarts=frozenset({UNRULY}),
            prechecking=frozenset({UNRULY}),
        )
        # Machines leave after the cordon only; with an unreliable driver for it, few would ever leave.
        self.service.policy = replace(policy, cordoning=frozenset({UNRULY}) if seed % 3 == 0 else frozenset())
        self.service.more_drivers[UNRULY] = self.unruly
        self._checked()
        self.lanes = VirtualLanes(self.service, self.unruly, seed)

    def do(self, what: object, *args: object, **more: object) -> None:
        """Check that no driver is called while a use case runs."""
        called = self.world.calls
        super().do(what, *args, **more)
        assert self.world.calls == called, "a use case called a driver that takes its time"
        for _ in range(self.random.randint(0, 3)):
            self.lanes.turn()

    @act(20)
    def drivers_are_at_work(self) -> None:
        for _ in range(self.random.randint(1, 30)):
            self.lanes.turn()

    @act(4)
    def work_begins(self) -> None:
        """Approve events and let time pass, so that steps begin."""
        self.maintain(self.pick(HOSTS))
        self.approve_all()

    @act(8)
    def works_on_a_host(self) -> None:
        """Work on a host: machines leave it or restart with it, and some come back."""
        if self.random.random() < 0.5:
            self.tidies_up()
        host = self.idle_host()
        terms = OrderTerms(
            mode=self.pick([*[ServiceMode.EVACUATE] * 4, ServiceMode.IN_PLACE]),
            together=self.pick(["", "", "its board is swapped"]),
            returning=self.random.random() < 0.5,
            # Otherwise most orders wait for other update domains, budgets and windows.
            emergency=self.pick(["", "fire"]),
        )
        request = OrderRequest(by="test", driver=self.DRIVER, terms=terms)
        self.do(self.service.fleet.hosts.order_host, host, Action.SERVICE, request)
        for _ in range(self.pick([1, 6, 10])):
            if not self.is_worked_on(host):
                return
            self.approve_all()
            self.drivers_are_at_work()
            self.advance(self.pick([1, 90, 300]))
            self.look(self.service.everything())

    def idle_host(self) -> str:
        """Choose a host; prefer one where work can begin: usable, with machines, without an order."""
        whole = self.service.everything()
        busy = {order.host for order in whole.orders.values()}
        carrying = {member.host for member in whole.machines.values()}
        sound = {name for name, host in whole.hosts.items() if host.state is HostState.OK}
        return self.pick(sorted((sound & carrying) - busy) or HOSTS)

    def is_worked_on(self, host: str) -> bool:
        orders = self.service.everything().orders.values()
        return any(order.host == host and order.action is Action.SERVICE for order in orders)

    @act(3)
    def abandons_what_is_under_way(self) -> None:
        orders = [each for each in self.service.everything().orders.values() if _running(each)]
        for order in self.one(sorted(each.id for each in orders)):
            self.do(self.service.orders.abandon_order, order, by="test")

    @act(5)
    def aborts_a_rollout_one_of_whose_moves_is_refused(self) -> None:
        """Add a machine to a host that others leave; no host takes it, and a person retries later."""
        self.tidies_up()
        host, late = self.idle_host(), self.pick(NAMES)
        self.unruly.refusing = {late}
        terms = RolloutTerms(deadline=self.service.clock.now() + timedelta(seconds=1))  # no windows
        self.do(self.service.roll, host, work=Work.HOST, overlap=True, terms=terms)
        self.advance(1)
        self.lanes.settle()
        self.approve_all()
        self.put(late, host, None, 0)
        self.lanes.settle()
        for mine in self.rollouts():
            self.do(self.service.rollouts.abort, mine.id, by="test")
        self.unruly.refusing = set()
        for id_, order in sorted(self.service.everything().orders.items()):
            if order.state is OrderState.FAILED:
                self.do(self.service.orders.retry_order, id_, by="test")
        self.lanes.settle()
        self.look(self.service.everything())

    @act(3)
    def restarts(self) -> None:
        self.service.restart()
        self._checked()
        self.lanes.forget()
        self.service.tick()

    @act(2)
    def restarts_a_machine(self) -> None:
        self.do(self.service.order, self.pick(NAMES), Action.RESTART)
        self.approve_all()

    def check(self) -> None:
        super().check()
        assert self.world.faults == []
        self.check_that_nothing_is_forgotten(self.service.everything())

    def check_that_nothing_is_forgotten(self, whole: Slice) -> None:
        known = self.lanes.known()
        running = {
            AttemptId(order.id, step.subject, step.attempt)
            for order in whole.orders.values()
            for step in _running(order)
        }
        assert running - known == set(), "no call will ask about these again"

    def end(self) -> None:
        """Make the driver reliable, and check that all running steps end."""
        self.unruly.is_sane = True
        self.steps.append("end")
        self.lanes.settle()
        self.check()
        whole = self.service.everything()
        left = [order.id for order in whole.orders.values() if _running(order)]
        assert left == [], "work that never ends"
        started = [event for event in whole.events.values() if event.status is EventStatus.STARTED]
        for event in started:
            assert whole.orders[event.order].state in ("started", "failed")


def _running(order: Order) -> list[Step | HostStep]:
    """Return the calls of the unreliable driver."""
    return [step for step in order.driven if order.driver_of(step) == UNRULY]


def _is_done_to_a_host(task: HostTask) -> Situation:
    def found(look: Look) -> bool:
        steps = (step for order in look.fleet.orders.values() for step in order.running_host_steps)
        return any(step.task is task and step.driver == UNRULY for step in steps)

    return found


UNRULY_SITUATIONS: Mapping[str, Situation] = {
    "a rollout begins": ROLLOUT_SITUATIONS["a rollout begins"],
    "machines leave a host": in_stage(StageKind.EVACUATE, StageState.STARTED),
    "machines restart with their host": in_stage(StageKind.HOST, StageState.STARTED),
    "a host is cordoned": _is_done_to_a_host(HostTask.CORDON),
    "a host is worked on": _is_done_to_a_host(HostTask.WORK),
    "a host is fenced": _is_done_to_a_host(HostTask.FENCE),
}
