"""Prechecks of plans: plans wait on their threads, and lanes bring the answers."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from forewarn.control.driver import DriverTask
from forewarn.control.plan_prechecks import KEPT_FOR, Move, PlanPrechecks, move_of
from forewarn.core.basic_types import HostName
from forewarn.core.model.host import Host
from forewarn.core.rollouts.evacuation import MoveAnswer
from tests.helpers.service.driver_calls import NOW, task
from tests.helpers.service.racing import PATIENCE, at_once

FULL = MoveAnswer(refused="full")


def moving(machine: str) -> DriverTask:
    return replace(task(machine), target=Host(name=HostName("host-2")))


def moves(*tasks: DriverTask) -> set[Move]:
    return {move for each in tasks if (move := move_of(each)) is not None}


def test_concurrent_plans_each_get_all_answers() -> None:
    plans = PlanPrechecks()
    lanes: list[threading.Thread] = []

    def submit(asked: DriverTask) -> None:
        lanes.append(threading.Thread(target=plans.heard, args=(asked, FULL)))
        lanes[-1].start()

    plans.submit = submit
    tasks = [moving(f"web-{number}") for number in range(8)]
    found = at_once([lambda: plans.ask(tasks, now=NOW, within=PATIENCE)] * 4)
    assert found == [dict.fromkeys(moves(*tasks), FULL)] * 4
    for each in lanes:
        each.join(PATIENCE)


def test_a_plan_waits_for_all_answers_even_if_another_plan_drops_old_ones() -> None:
    plans, asked = PlanPrechecks(), threading.Event()
    plans.submit = lambda _: asked.set()
    first, second = moving("web-0"), moving("web-1")
    found: list[Mapping[Move, MoveAnswer]] = []
    waiting = threading.Thread(
        target=lambda: found.append(plans.ask([first, second], now=NOW, within=PATIENCE))
    )
    waiting.start()
    assert asked.wait(PATIENCE)
    plans.heard(first, FULL)
    later = NOW + KEPT_FOR + timedelta(seconds=1)
    plans.ask([], now=later, within=0)  # drops the first answer
    plans.heard(replace(first, now=later), FULL)
    plans.heard(replace(second, now=later), FULL)
    waiting.join(PATIENCE)
    assert found == [dict.fromkeys(moves(first, second), FULL)]


def test_the_next_plan_repeats_a_question_with_an_unknown_answer() -> None:
    plans, asked = PlanPrechecks(), list[DriverTask]()

    def submit(each: DriverTask) -> None:
        asked.append(each)
        plans.heard(each, MoveAnswer(unknown="no route"))

    plans.submit = submit
    for _ in range(2):
        assert plans.ask([moving("web-0")], now=NOW, within=PATIENCE)
    assert len(asked) == 2
