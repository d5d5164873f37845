"""Rollouts under way as values, with their waves and the orders of their hosts."""

from dataclasses import replace
from typing import Any

from forewarn.core.basic_types import (
    Action,
    GroupName,
    MachineId,
    MachineName,
    OrderId,
    OrderState,
    Source,
    StageState,
    StepState,
    Work,
)
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.model.rollout import Rollout, Wave, WaveState
from tests.unit.core.model.test_rollout import NOW, carries, host, over, survey


def step(name: str, state: StepState = StepState.DONE, **more: Any) -> Step:
    """Return a step of a machine of web."""
    return Step(
        machine=MachineId(name),
        name=MachineName(name),
        group=GroupName("web"),
        update_domain=0,
        work=Work.REBOOT,
        state=state,
        **more,
    )


def order(number: int, state: OrderState, *stages: Stage, **more: Any) -> Order:
    """Return a closed order on the host with this number."""
    facts: dict[str, Any] = {"ended_at": NOW, **more}
    return Order(
        id=OrderId(f"{number}"),
        number=number,
        action=Action.MAINTENANCE,
        work=Work.REBOOT,
        source=Source.PLATFORM,
        project=None,
        machine=None,
        machine_name=None,
        host=host(number),
        by="test",
        state=state,
        stages=stages,
        created_at=NOW,
        **facts,
    )


def announced(number: int, **more: Any) -> Order:
    """Return an announced order that has not started."""
    stage = Stage(state=StageState.ANNOUNCED, steps=(step(f"web-{number}", StepState.WAITING),))
    return order(number, OrderState.ANNOUNCED, stage, ended_at=None, **more)


def started(number: int, **more: Any) -> Order:
    """Return an order that starts now."""
    steps = (step(f"web-{number}", StepState.RUNNING, begun_at=NOW),)
    stage = Stage(state=StageState.STARTED, steps=steps, started_at=NOW)
    return order(number, OrderState.STARTED, stage, ended_at=None, **more)


def failed(number: int, **more: Any) -> Order:
    """Return a failed order, which waits for a person."""
    stage = Stage(state=StageState.STARTED, steps=(step(f"web-{number}", StepState.FAILED),), started_at=NOW)
    return order(number, OrderState.FAILED, stage, ended_at=None, **more)


def done(number: int, **more: Any) -> Order:
    """Return an order that is done now."""
    steps = (step(f"web-{number}", begun_at=NOW, ended_at=NOW),)
    stage = Stage(state=StageState.DONE, steps=steps, started_at=NOW)
    return order(number, OrderState.DONE, stage, **more)


def cancelled(number: int, **more: Any) -> Order:
    """Return an order that was cancelled before it started."""
    return order(number, OrderState.CANCELLED, why="paused", **more)


def by_id(*orders: Order) -> dict[OrderId, Order]:
    return {each.id: each for each in orders}


def begun(*orders: Order, planned: int = 0, **more: Any) -> Rollout:
    """Return a rollout whose first wave has these orders, followed by planned waves of one host each."""
    rollout = over(survey(*(carries(web={0: 1}) for _ in range(len(orders) + planned))), at_once=1)
    hosts, ids = tuple(host(each.number) for each in orders), tuple(each.id for each in orders)
    wave = Wave(hosts=hosts, orders=ids, state=WaveState.STARTED, announced_at=NOW)
    return replace(rollout, waves=(wave, *rollout.waves[len(orders) :]), **more)
