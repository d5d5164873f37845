"""Lane queues: a host has its limit, hosts take turns, and calls that hang time out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from forewarn.control.driver import (
    Cancelled,
    Done,
    DriverLimits,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    Unknown,
)
from forewarn.control.engine.driver_calls import DriverCall, Verb
from forewarn.core.basic_types import OrderId
from forewarn.core.redaction import driver_named
from forewarn.server.threads.lane_queues import (
    REACH_WITHIN,
    SHORTEST_WAIT,
    LaneBounds,
    LaneQueues,
    PlacedCall,
)
from tests.helpers.service.driver_calls import begin, cancel, check

TIMEOUT = 30.0
LATE = TIMEOUT + 1


def queues(*, at_once: int = 1, **bounds: int) -> LaneQueues:
    limits = DriverLimits(timeout=timedelta(seconds=TIMEOUT), at_once=at_once)

    def of(task: DriverTask) -> DriverLimits:
        own = None if task.host is None else task.host.at_once
        return limits if own is None else replace(limits, at_once=own)

    return LaneQueues(of, bounds=LaneBounds(**bounds))


def add(lanes: LaneQueues, *calls: DriverCall, now: float = 0.0) -> None:
    for call in calls:
        lanes.add(call, now=now)


def made(lanes: LaneQueues, now: float = 0.0) -> list[PlacedCall]:
    """Start all calls that may start."""
    return list(iter(lambda: lanes.next(now), None))  # type: ignore[arg-type]


def names(calls: list[PlacedCall]) -> list[str]:
    return [placed.call.task.machine.name for placed in calls]


def told(lanes: LaneQueues) -> list[tuple[str, str, object]]:
    return [(each.call.verb.value, each.call.task.machine.name, each.answer) for each in lanes.take_answers()]


def hang(lanes: LaneQueues, *calls: DriverCall) -> list[PlacedCall]:
    """Let calls time out."""
    add(lanes, *calls)
    hanging = made(lanes)
    lanes.pass_time(LATE)
    return hanging


def test_hosts_take_turns_and_each_keeps_its_limit() -> None:
    lanes = queues(at_once=2)
    add(lanes, *(begin(f"a-{number}", host="a") for number in range(4)))
    add(lanes, begin("b-0", host="b"), begin("c-0", host="c", at_once=1), begin("c-1", host="c", at_once=1))
    assert names(made(lanes)) == ["a-0", "b-0", "c-0", "a-1"]


def test_all_hosts_together_have_a_limit() -> None:
    lanes = queues(calls=2)
    add(lanes, *(begin(f"m-{number}", host=f"host-{number}") for number in range(3)))
    first, _ = made(lanes)
    lanes.returned(first, Done())
    assert names(made(lanes)) == ["m-2"]


def test_an_answered_call_makes_room_for_the_next_call_to_its_host() -> None:
    lanes = queues()
    add(lanes, begin("web-0"), begin("web-1"))
    (first,) = made(lanes)
    lanes.returned(first, Running(None))
    assert names(made(lanes)) == ["web-1"]
    assert told(lanes) == [("begin", "web-0", Running(None))]


def test_a_call_that_times_out_is_unknown_and_makes_room_for_another() -> None:
    lanes = queues()
    hang(lanes, begin("web-0"), begin("web-1"))
    (answer,) = lanes.take_answers()
    assert (answer.answer, answer.hangs) == (
        Unknown(f"{driver_named('test')} has not answered begin within 30 s"),
        True,
    )
    assert names(made(lanes, LATE)) == ["web-1"]


def test_a_call_that_is_answered_in_time_does_not_time_out() -> None:
    lanes = queues()
    add(lanes, begin("web-0"))
    (first,) = made(lanes)
    lanes.returned(first, Done())
    lanes.take_answers()
    lanes.pass_time(LATE)
    assert told(lanes) == []
    assert lanes.next_due() is None


def test_the_answer_of_a_begin_counts_however_late_it_comes() -> None:
    lanes = queues()
    (late,) = hang(lanes, begin("web-0"))
    add(lanes, check("web-0"), now=LATE)
    made(lanes, LATE)
    lanes.take_answers()
    lanes.returned(late, Failed("no such machine"))
    assert told(lanes) == [("begin", "web-0", Failed("no such machine"))]


def test_a_check_from_before_a_late_begin_does_not_cause_a_second_begin() -> None:
    lanes = queues()
    (late,) = hang(lanes, begin("web-0"))
    add(lanes, check("web-0"), now=LATE)
    (asked,) = made(lanes, LATE)
    lanes.returned(late, Running(None))
    lanes.take_answers()
    lanes.returned(asked, NotBegun())
    assert told(lanes) == [("check", "web-0", Unknown("the attempt began while the driver was being asked"))]


def test_a_late_check_is_dropped_if_there_is_a_newer_one() -> None:
    lanes = queues()
    (late,) = hang(lanes, check("web-0"))
    add(lanes, check("web-0"), now=LATE)
    (newer,) = made(lanes, LATE)
    lanes.take_answers()
    lanes.returned(late, Running(None))
    assert told(lanes) == []
    lanes.returned(newer, Done())
    assert told(lanes) == [("check", "web-0", Done())]


def test_a_late_check_counts_if_there_is_no_newer_one() -> None:
    lanes = queues()
    (late,) = hang(lanes, check("web-0"))
    lanes.take_answers()
    lanes.returned(late, Done())
    assert told(lanes) == [("check", "web-0", Done())]


def test_an_attempt_is_not_begun_again_while_its_begin_hangs() -> None:
    lanes = queues()
    (late,) = hang(lanes, begin("web-0"))
    add(lanes, begin("web-0"), begin("web-0", attempt=2), now=LATE)
    (second,) = made(lanes, LATE)
    assert second.call.task.attempt == 2
    lanes.returned(late, Done())
    lanes.returned(second, Done())
    assert made(lanes, LATE) == []


def test_a_host_with_too_many_hanging_calls_waits_and_reports_why() -> None:
    lanes = queues(at_once=2, hung_in_lane=2)
    late, _ = hang(lanes, begin("web-0"), begin("web-1"))
    lanes.take_answers()
    add(lanes, begin("web-2"), check("web-3"), begin("db", host="other"), now=LATE)
    lanes.pass_time(LATE)
    why = Unknown("2 calls to host-1 hang")
    assert told(lanes) == [("begin", "web-2", why), ("check", "web-3", why)]
    assert names(made(lanes, LATE)) == ["db"]
    lanes.pass_time(LATE)
    assert told(lanes) == []  # a begin that waits is reported once
    lanes.returned(late, Done())
    assert names(made(lanes, LATE)) == ["web-2"]


def test_hanging_calls_beyond_the_bound_reduce_the_number_of_calls() -> None:
    lanes = queues(calls=2, hung=1, hung_in_lane=9)
    for number in range(3):
        add(lanes, begin(f"m-{number}", host=f"host-{number}"), now=LATE * number)
        made(lanes, LATE * number)
        lanes.pass_time(LATE * (number + 1))
    lanes.take_answers()
    add(lanes, check("last", host="sound"), now=LATE * 9)
    assert made(lanes, LATE * 9) == []
    lanes.pass_time(LATE * 9)
    assert told(lanes) == [("check", "last", Unknown("3 calls of all drivers hang"))]


def test_a_queued_begin_is_cancelled_without_a_call_of_the_driver() -> None:
    lanes = queues()
    add(lanes, begin("web-0"), begin("web-1"))
    made(lanes)
    add(lanes, cancel("web-1"), cancel("web-0"))
    assert told(lanes) == [("cancel", "web-1", Cancelled())]


def test_a_check_that_is_due_too_soon_is_delayed() -> None:
    lanes = queues()
    lanes.add(check("web-0"), now=0.0, wait=-5.0)
    assert made(lanes) == []
    assert lanes.next_due() == SHORTEST_WAIT
    lanes.pass_time(SHORTEST_WAIT)
    assert names(made(lanes, SHORTEST_WAIT)) == ["web-0"]


def test_a_wake_makes_the_check_of_a_machine_due() -> None:
    lanes = queues()
    lanes.add(check("web-0"), now=0.0, wait=600.0)
    lanes.wake(begin("web-0").task.machine.id)
    assert names(made(lanes)) == ["web-0"]
    lanes.pass_time(600.0)
    assert made(lanes, 600.0) == []  # once


def test_a_wake_during_a_check_causes_another_check() -> None:
    lanes = queues()
    add(lanes, check("web-0"))
    (asked,) = made(lanes)
    lanes.wake(asked.subject)
    lanes.returned(asked, Running(None))
    lanes.add(check("web-0"), now=1.0, wait=600.0)
    assert names(made(lanes, 1.0)) == ["web-0"]
    lanes.add(check("web-0"), now=2.0, wait=600.0)
    assert made(lanes, 2.0) == []


@pytest.mark.parametrize("answer", [Done(), Failed("no")])
def test_nothing_is_kept_of_finished_calls(answer: Done | Failed) -> None:
    lanes = queues()
    add(lanes, begin("web-0"))
    (asked,) = made(lanes)
    lanes.wake(asked.subject)
    lanes.returned(asked, answer)
    lanes.wake(asked.subject)
    kept = (
        lanes.lanes,
        lanes.waiting,
        lanes._begins,
        lanes._newest,
        lanes._present,
        lanes._woken,
        lanes._started,
    )
    assert not any(kept)


def test_all_queued_calls_are_answered_when_every_possible_call_hangs() -> None:
    lanes = queues(calls=1, hung=0)
    hang(lanes, begin("web-0", host="a"))
    add(lanes, check("web-1", host="b"), check("web-2", host="b"), now=LATE)
    lanes.take_answers()
    lanes.pass_time(LATE)
    why = Unknown("1 call of all drivers hangs")
    assert told(lanes) == [("check", "web-1", why), ("check", "web-2", why)]


def test_a_queued_begin_is_withdrawn_and_a_running_one_continues() -> None:
    lanes = queues()
    add(lanes, begin("web-0"), begin("web-1"), begin("web-2"))
    (first,) = made(lanes)
    for name in ("web-0", "web-1", "web-9"):
        lanes.withdraw(begin(name).task.id)
    assert made(lanes) == []
    lanes.returned(first, Done())
    assert names(made(lanes)) == ["web-2"]
    assert told(lanes) == [("begin", "web-0", Done())]


def test_a_begin_in_a_blocked_lane_is_withdrawn() -> None:
    lanes = queues(hung_in_lane=1)
    (hanging,) = hang(lanes, begin("web-0"))
    add(lanes, begin("web-1"), now=LATE)
    lanes.pass_time(LATE)
    lanes.withdraw(begin("web-1").task.id)
    lanes.returned(hanging, Done())
    assert made(lanes, LATE) == []


def test_a_reachability_probe_runs_beside_steps_and_has_a_shorter_timeout() -> None:
    lanes = queues(at_once=1)
    hanging = hang(lanes, begin("web-0"), begin("web-1"))
    lanes.take_answers()
    step = hanging[0].call.task
    add(
        lanes,
        begin("web-2"),
        DriverCall(verb=Verb.REACH, task=replace(step, order=OrderId("reach"))),
        now=LATE,
    )
    asked = [placed.call.verb for placed in made(lanes, LATE)]
    assert Verb.REACH in asked
    lanes.pass_time(LATE + REACH_WITHIN)
    given_up = [each for each in lanes.take_answers() if each.call.verb is Verb.REACH]
    assert [(each.answer, each.hangs) for each in given_up] == [
        (Unknown(f"{driver_named('test')} has not answered reach within 5 s"), True)
    ]
