"""Drivers with calls in lanes: each attempt begins once, and no answer is lost (rule 8)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.control.driver import Cancelled, Done, Failed, NotBegun, Running, TooLate, Unknown
from forewarn.control.engine.driver_calls import CallAnswer, Verb
from forewarn.control.engine.engine import Stuck
from forewarn.control.orders.order_use_cases import Placed
from forewarn.core.basic_types import (
    Action,
    HostName,
    Kind,
    OrderId,
    OrderState,
    Priority,
    ProjectName,
    StepState,
    Work,
)
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Uncertain
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, HostSpec
from forewarn.core.model.order import Order
from forewarn.core.orders import lifecycle
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.policy import Policy
from forewarn.core.redaction import driver_named
from forewarn.store.batch import Batch
from tests.helpers.database.statements import counted
from tests.helpers.service.harness import TEST, Service, fleet, machine
from tests.helpers.service.scripted_driver import SCRIPTED, ScriptedDriver, make_calls


@pytest.fixture
def driver() -> ScriptedDriver:
    return ScriptedDriver()


@pytest.fixture
def service(tmp_path: Path, driver: ScriptedDriver) -> Iterator[Service]:
    """Two machines on host-1, whose driver has calls in lanes."""
    service = Service(f"sqlite:///{tmp_path}/hands.db")
    service.more_drivers[SCRIPTED] = driver
    service.wire(service.store)
    service.apply(declared())
    for name in ("web-0", "db-0"):
        service.poll(name)
    service.advance(minutes=5)
    yield service
    service.close()


def declared() -> FleetSpec:
    spec = fleet(machine("web-0", "host-1"), machine("db-0", "host-1"))
    return replace(spec, defaults=FleetDefaults(driver=SCRIPTED))


def started(service: Service, name: str = "web-0", action: Action = Action.RESTART) -> Placed:
    placed = service.order(name, action)
    service.approve(name, *placed.events)
    return placed


def waiting(service: Service) -> list[str]:
    return [call.verb.value for call in service.calls.waiting]


def step_of(service: Service, placed: Placed) -> tuple[StepState, int, str]:
    (step,) = service.reload(placed).steps
    return step.state, step.attempt, step.why


def test_a_step_begins_once_it_is_saved_and_is_checked_when_its_driver_requests(
    service: Service, driver: ScriptedDriver
) -> None:
    later = service.real_now() + timedelta(seconds=30)
    driver.begins = [Running(later, mark="job-7", progress=0.25)]
    driver.checks = [Done(impact=3.0)]
    placed = started(service)
    assert (waiting(service), driver.asked) == (["begin"], [])  # no caller has waited for it
    make_calls(service, driver)
    assert [(call.verb, call.at, call.task.mark) for call in service.calls.waiting] == [
        (Verb.CHECK, later, "job-7")
    ]
    (step,) = service.reload(placed).steps
    assert (step.state, step.mark, step.progress) == (StepState.RUNNING, "job-7", 0.25)
    make_calls(service, driver, seconds=30)
    (step,) = service.reload(placed).steps
    assert (step.state, step.impact) == (StepState.DONE, 3.0)
    assert (driver.asked, waiting(service)) == ([("begin", "web-0", 1), ("check", "web-0", 1)], [])
    service.advance(minutes=5)
    assert service.reload(placed).state is OrderState.DONE


def test_advancing_the_clock_does_not_wait_for_slow_drivers(service: Service, driver: ScriptedDriver) -> None:
    placed = started(service)
    service.advance(hours=5)
    assert (driver.asked, waiting(service)) == ([], ["begin"])
    assert service.reload(placed).due_at is None


def test_after_a_crash_a_step_is_checked_first(service: Service, driver: ScriptedDriver) -> None:
    driver.checks = [NotBegun(), Done()]
    placed = started(service)
    service.restart()
    assert waiting(service) == ["check"]
    make_calls(service, driver)
    make_calls(service, driver)
    assert driver.asked == [("check", "web-0", 1), ("begin", "web-0", 1)]
    service.restart()
    make_calls(service, driver)
    assert step_of(service, placed)[0] is StepState.DONE


def test_a_step_of_an_uncertain_commit_is_found_and_begun(service: Service, driver: ScriptedDriver) -> None:
    """After a lost connection, no after-commit effect tells the engine about the step."""
    outbox = service.context.outbox
    placed = service.order("web-0", Action.RESTART)
    service.fleet.guests.approve(service.machine("web-0").id, [placed.events[0].id], address="")
    outbox.take()
    service.tick()
    assert waiting(service) == []
    outbox.mark_incomplete()
    service.tick()
    assert waiting(service) == ["begin"]
    outbox.mark_incomplete()
    service.tick()
    assert waiting(service) == ["begin"]  # still once


def test_tenants_see_that_a_driver_gave_a_reason_and_operators_see_the_reason(
    service: Service, driver: ScriptedDriver
) -> None:
    uri = "qemu+ssh://root@n7.example.org/system"
    driver.begins = [Unknown(f"cannot reach {uri}")]
    driver.checks = [Failed(f"{uri} says no")]
    tenant = service.within(ProjectName("default"))
    placed = started(service)
    for _ in range(2):
        make_calls(service, driver, seconds=10)
        order = tenant.views.order(placed.order.id).order
        events, _ = tenant.views.events(after=None, limit=9)
        told = map(str, (order, events, tenant.views.history(HistoryFilter(limit=99))))
        assert not any("n7" in each for each in told)
        assert order.steps[0].why == "its driver has told the operators why"
        assert uri in service.reload(placed).steps[0].why


def test_an_exception_of_a_driver_leaves_the_step_unknown_and_is_followed_by_a_check(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.begins = [OSError("no route to host-1")]
    driver.checks = [Unknown("no answer"), Unknown("no answer"), Failed("it is gone")]
    placed = started(service)
    make_calls(service, driver)
    why = f"{driver_named('scripted')} broke: no route to host-1"
    assert step_of(service, placed) == (StepState.RUNNING, 1, why)
    assert [str(each) for each in service.reload(placed).waiting] == [f"web-0: its state is unknown: {why}"]
    for _ in range(3):
        make_calls(service, driver, seconds=10)
    assert step_of(service, placed) == (StepState.FAILED, 1, "its driver says: it is gone")
    assert [each[0] for each in driver.asked] == ["begin", "check", "check", "check"]
    unknown = [record.reason for record in service.history() if record.kind == Kind.STEP_UNKNOWN]
    assert unknown == [f"reboot: {why}"]


def test_a_hanging_begin_is_not_repeated_and_counts_when_it_returns(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.checks = [NotBegun()]
    placed = started(service)
    (begin,) = service.calls.waiting
    service.calls.waiting = []
    service.engine.take_answers([CallAnswer(call=begin, answer=Unknown("no answer"), hangs=True)])
    make_calls(service, driver, seconds=10)
    make_calls(service, driver, seconds=10)
    assert {each[0] for each in driver.asked} == {"check"}
    assert step_of(service, placed)[2] == "it was begun, and its driver has not answered yet"
    service.engine.take_answers([CallAnswer(call=begin, answer=Done())])
    assert step_of(service, placed)[0] is StepState.DONE


def test_the_answer_of_an_older_attempt_is_dropped(service: Service, driver: ScriptedDriver) -> None:
    driver.begins = [Failed("it burns"), Running(None)]
    placed = started(service)
    (first,) = service.calls.waiting
    make_calls(service, driver)
    service.orders.retry_order(placed.order.id, by="ops")
    service.tick()
    make_calls(service, driver)
    service.engine.take_answers([CallAnswer(call=first, answer=Done())])
    assert step_of(service, placed) == (StepState.RUNNING, 2, "")
    assert [each for each in driver.asked if each[0] == "begin"] == [
        ("begin", "web-0", 1),
        ("begin", "web-0", 2),
    ]


# Where machines go


def test_a_host_that_refuses_a_machine_is_skipped(service: Service, driver: ScriptedDriver) -> None:
    driver.refusing = {"host-2": "too little memory"}
    placed = started(service, action=Action.REDEPLOY)
    make_calls(service, driver)
    assert driver.asked == []
    make_calls(service, driver)
    assert driver.asked == [("begin", "web-0", 1)]
    assert driver.tasks[0].target == service.everything().hosts[HostName("host-3")]
    assert service.machine("web-0").bound_for == "host-3"
    driver.refusing["host-3"] = "another CPU"
    other = started(service, "db-0", Action.REDEPLOY)
    make_calls(service, driver)
    make_calls(service, driver)
    assert "host-2 cannot take it, its driver says: too little memory" in step_of(service, other)[2]
    assert step_of(service, placed)[0] is StepState.RUNNING


def test_the_host_in_the_answer_of_a_driver_counts(service: Service, driver: ScriptedDriver) -> None:
    driver.begins = [Done(host=HostName("host-3"))]
    started(service, action=Action.REDEPLOY)
    make_calls(service, driver)
    assert service.machine("web-0").host == "host-3"


# Abandoning


def test_an_abandoned_step_is_cancelled_and_its_order_closed(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.checks = [Running(None)]
    placed = started(service)
    make_calls(service, driver)
    shown = service.orders.abandon_order(placed.order.id, by="ops")
    assert "being abandoned by ops" in shown.order.waiting[0].reason
    service.restart()  # and its driver is called again
    make_calls(service, driver)
    order = service.reload(placed)
    assert (order.state, order.why) == (OrderState.FAILED, "abandoned by ops")
    assert step_of(service, placed)[0] is StepState.MOOT
    assert [each[0] for each in driver.asked] == ["begin", "cancel"]


def test_a_step_that_cannot_be_cancelled_continues(service: Service, driver: ScriptedDriver) -> None:
    driver.cancels = [OSError("no route"), TooLate()]
    driver.checks = [Running(None), Done()]
    placed = started(service)
    make_calls(service, driver)
    service.orders.abandon_order(placed.order.id, by="ops")
    service.tick()
    make_calls(service, driver)
    make_calls(service, driver, seconds=10)
    assert [each[0] for each in driver.asked] == ["begin", "cancel", "cancel"]
    assert step_of(service, placed) == (StepState.RUNNING, 1, "")
    make_calls(service, driver, seconds=60)
    make_calls(service, driver, seconds=60)
    assert step_of(service, placed)[0] is StepState.DONE
    assert service.reload(placed).why == "abandoned by ops"


def test_a_hold_with_abort_cancels_running_steps_and_names_the_others(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.cancels, driver.checks = [Cancelled(), TooLate()], [Running(None), Done()]
    called_off, too_late = started(service), started(service, "db-0")
    make_calls(service, driver)
    hosts, views = service.fleet.hosts, service.fleet.views
    hold = hosts.hold(OrderRequest(by="ops", reason="wrong image"), project=None, host=None, abort=True)
    assert {order.id for order in views.still_running(hold)} == {called_off.order.id, too_late.order.id}
    service.restart()  # the request is not forgotten
    make_calls(service, driver)
    (order,) = service.fleet.views.still_running(hold)
    assert (order.id, [step.too_late for step in order.running]) == (too_late.order.id, [True])
    assert service.reload(called_off).why == "stopped by ops: wrong image"
    make_calls(service, driver, seconds=60)
    make_calls(service, driver, seconds=60)
    assert step_of(service, too_late)[0] is StepState.DONE
    assert service.fleet.views.still_running(hold) == []


def test_a_hold_without_abort_stops_nothing(service: Service, driver: ScriptedDriver) -> None:
    placed = started(service)
    make_calls(service, driver)
    hold = service.fleet.hosts.hold(OrderRequest(by="ops", reason="lunch"), project=None, host=None)
    assert service.fleet.views.still_running(hold) == ()
    assert service.reload(placed).terms.abandoned_by == ""


def test_a_step_abandoned_before_its_begin_never_begins(service: Service, driver: ScriptedDriver) -> None:
    placed = service.order("web-0", Action.RESTART)
    service.fleet.guests.approve(service.machine("web-0").id, [placed.events[0].id], address="")
    service.orders.abandon_order(placed.order.id, by="ops")
    service.tick()
    assert (waiting(service), driver.asked) == ([], [])
    assert step_of(service, placed)[0] is StepState.MOOT


def test_an_answer_that_could_not_be_saved_is_requested_again(
    service: Service, driver: ScriptedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = started(service)
    driver.begins, driver.checks = [Done()], [Done()]

    def broken(*_: object, **__: object) -> None:
        raise ArithmeticError("told to break")

    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "advance", broken)
        make_calls(service, driver)
    assert step_of(service, placed)[0] is StepState.RUNNING
    make_calls(service, driver, seconds=10)
    assert step_of(service, placed)[0] is StepState.DONE
    assert [each[0] for each in driver.asked] == ["begin", "check"]


def test_a_repeated_answer_begins_nothing_twice(service: Service, driver: ScriptedDriver) -> None:
    driver.refusing = {"host-2": "too little memory"}
    started(service, action=Action.REDEPLOY)
    (call,) = service.calls.waiting
    service.calls.waiting = []
    for _ in range(2):
        service.engine.take_answers([driver.made(call)])
    assert [(each.verb, each.task.target and each.task.target.name) for each in service.calls.waiting] == [
        (Verb.BEGIN, "host-3")
    ]


# Transactions


def test_an_approval_that_starts_a_stage_takes_two_transactions(service: Service) -> None:
    service.apply(fleet(machine("web-0", "host-1"), machine("db-0", "host-1")))  # simulated
    placed = service.order("web-0", Action.RESTART)
    with counted(service.store) as asked:
        service.approve("web-0", *placed.events)
        assert asked.writes == 2, asked.listed()
    assert service.driver.begun == [(placed.order.id, "web-0", 1)]


def test_orders_due_together_share_a_transaction_and_a_faulty_one_fails_alone(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.apply(fleet(machine("web-0", "host-1"), machine("db-0", "host-2")))
    placed = [service.order(name, Action.RESTART) for name in ("web-0", "db-0")]
    due = max(each.events[0].not_before for each in placed)
    service.clock.set(due)
    broken, real = placed[0].order.id, lifecycle.advance

    def advance(draft: Draft, order: OrderId, *, policy: Policy) -> Order:
        if order == broken:
            raise ArithmeticError("told to break")
        return real(draft, order, policy=policy)

    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "advance", advance)
        with pytest.raises(Stuck, match=f"order {broken} cannot go on"):
            service.engine.tick(due)
    assert [service.reload(each).state for each in placed] == [OrderState.ANNOUNCED, OrderState.STARTED]
    service.tick()
    assert service.reload(placed[0]).state is OrderState.STARTED


def test_a_late_answer_of_begin_outweighs_an_earlier_check(service: Service, driver: ScriptedDriver) -> None:
    driver.checks = [NotBegun(), Done()]
    placed = started(service)
    (begin,) = service.calls.waiting
    service.calls.waiting.clear()
    service.engine.take_answers([CallAnswer(call=begin, answer=Unknown("no answer"), hangs=True)])
    (check,) = service.calls.waiting
    service.calls.waiting.clear()
    service.engine.take_answers(
        [driver.made(check), CallAnswer(call=begin, answer=Running(None, mark="job-7"))]
    )
    assert set(waiting(service)) == {"check"}
    make_calls(service, driver, seconds=60)
    assert step_of(service, placed)[0] is StepState.DONE


def test_the_answer_of_a_check_does_not_begin_an_abandoned_order(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.checks = [Unknown("no answer"), NotBegun()]
    driver.cancels = [Unknown("no answer")]
    placed = started(service)
    service.restart()
    make_calls(service, driver)
    service.orders.abandon_order(placed.order.id, by="ops")
    service.tick()
    make_calls(service, driver, seconds=10)
    assert "begin" not in waiting(service)
    assert service.reload(placed).state is OrderState.FAILED


def test_a_step_whose_end_is_uncertain_is_looked_up_and_not_checked_again(
    service: Service, driver: ScriptedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection was lost during the commit of its end, which succeeded."""
    commit = Batch.commit

    def lose(batch: Batch) -> None:
        commit(batch)
        raise Uncertain("the answer is lost")

    placed = started(service)
    make_calls(service, driver)
    (check,) = service.calls.waiting
    service.calls.waiting.clear()
    answer = driver.made(check)
    with monkeypatch.context() as patched:
        patched.setattr(Batch, "commit", lose)
        with pytest.raises(Uncertain, match="the answer is lost"):
            service.engine.take_answers([answer])
    service.engine.take_answers([answer])
    assert step_of(service, placed)[0] is StepState.DONE
    assert waiting(service) == []


def test_a_running_step_uses_the_current_connection_of_its_host(
    service: Service, driver: ScriptedDriver
) -> None:
    driver.checks = [Unknown("no route to host-1"), Unknown("no route to host-1"), Done()]
    placed = started(service)
    make_calls(service, driver)
    make_calls(service, driver, seconds=60)
    spec = declared()
    moved = replace(spec.hosts[0], uri="qemu+tls://host-1/")
    service.apply(replace(spec, hosts=(moved, *spec.hosts[1:])))
    make_calls(service, driver, seconds=60)
    make_calls(service, driver, seconds=60)
    assert [task.source and task.source.uri for task in driver.tasks][-1] == "qemu+tls://host-1/"
    assert step_of(service, placed)[0] is StepState.DONE


def test_the_driver_of_the_last_host_terminates_a_stopped_machine(
    service: Service, driver: ScriptedDriver
) -> None:
    spec = declared()
    first, *others = spec.hosts
    real = replace(first, driver=SCRIPTED, uri="qemu+tls://host-1/")
    spot = tuple(replace(each, priority=Priority.SPOT) for each in spec.machines)
    service.apply(replace(spec, defaults=FleetDefaults(), hosts=(real, *others), machines=spot))
    driver.begins = [Done(), Done()]
    for action in (Action.EVICT, Action.TERMINATE):
        placed = started(service, action=action)
        make_calls(service, driver)
        service.advance(minutes=30)
        assert service.reload(placed).state is OrderState.DONE
    assert [(task.work, task.source and task.source.uri) for task in driver.tasks] == [
        (Work.EVICT, "qemu+tls://host-1/"),
        (Work.TERMINATE, "qemu+tls://host-1/"),
    ]


@pytest.mark.parametrize("host", ["host-1", "host-2"])
def test_a_host_keeps_its_driver_while_a_step_runs_there(
    service: Service, driver: ScriptedDriver, host: str
) -> None:
    later = service.real_now() + timedelta(seconds=30)
    spec = declared()
    service.apply(replace(spec, hosts=(*spec.hosts, HostSpec(name=HostName("host-2")))))
    driver.begins = [Running(later)]
    started(service, action=Action.REDEPLOY)
    make_calls(service, driver)

    def elsewhere(known: HostSpec | None) -> HostSpec:
        return replace(known or HostSpec(name=HostName(host)), uri="qemu+tls://elsewhere/")

    with pytest.raises(Conflict, match=f'hosts.{host}: uri: order .* is working there on "web-0"'):
        service.fleet.puts.put_host(HostName(host), elsewhere, by="test")


def remove(service: Service) -> None:
    service.delete("web-0")


def fail_host(service: Service) -> None:
    service.fleet.hosts.order_host("host-1", Action.FAIL, replace(TEST, driver=SCRIPTED))
    service.tick()


@pytest.mark.parametrize("leaves", [remove, fail_host])
def test_a_waiting_begin_is_withdrawn_when_its_step_has_ended_otherwise(
    service: Service, leaves: Callable[[Service], None]
) -> None:
    placed = started(service)
    (begin,) = service.calls.waiting
    leaves(service)
    assert service.reload(placed).steps[0].state is StepState.MOOT
    assert begin not in service.calls.waiting
    assert service.calls.withdrawn == [begin.task.id]
