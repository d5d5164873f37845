"""Scenarios on the machines of a running server, and its clock."""

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.rehearsal.scenario import OrderStep, Scenario, required_machines, substitute, unanswered
from forewarn.rehearsal.scenario_file import all_shipped, default_fleet, find, read_scenario
from forewarn.rehearsal.target import ServerClock
from forewarn.wire.answers.service_answers import ClockAnswer

SENT = "2026-01-05T12:00:10Z"


def scenario(text: str) -> Scenario:
    return read_scenario(f'[scenario]\nname = "mine"\n{text}', default_fleet=default_fleet())


def test_only_the_machines_in_use_are_required() -> None:
    assert required_machines(find("spot-eviction")) == ("batch_0",)
    assert required_machines(find("rolling-host-update")) == ("web-0", "web-1", "web-2")
    watched = scenario(
        '[[steps]]\norder = {machine="web-1", action="freeze"}\n[expect]\nmachines = ["web-0"]'
    )
    assert required_machines(watched) == ("web-0", "web-1")


def test_substitutes_replace_machines_and_hosts_everywhere() -> None:
    both = scenario(
        '[[steps]]\norder = {machine="web-0", action="freeze"}\n[[steps]]\ncancel = true\n'
        '[[steps]]\norder = {host="host-1", action="fail"}\n[[guests]]\nmachine = "web-0"\ncommand = ["x"]\n'
    )
    played = substitute(both, machines={"web-0": "front"}, hosts={"host-1": "rack"})
    assert (played.machines, played.expect.machines) == (("front",), ("front",))
    orders = [step.does for step in played.steps if isinstance(step.does, OrderStep)]
    assert [(order.machine, order.host) for order in orders] == [("front", None), (None, "rack")]
    assert played.guests == ()


@pytest.mark.parametrize(
    ("name", "lasts"),
    [
        ("user-restart", timedelta(seconds=10, minutes=15) + timedelta(seconds=90)),
        ("spot-eviction", timedelta(seconds=10 + 30 + 90)),
        ("hardware-failure", timedelta(seconds=10 + 90)),
        ("degraded-hardware", timedelta(minutes=10, days=7) + timedelta(seconds=90)),
    ],
)
def test_the_duration_is_estimated_in_advance(name: str, lasts: timedelta) -> None:
    assert unanswered(find(name)) == lasts


def test_no_scenario_takes_longer_than_its_limit() -> None:
    assert all(unanswered(each) <= each.limit for each in all_shipped())


def clock_answer(now: str) -> ClockAnswer:
    return ClockAnswer(kind="manual", now=datetime.fromisoformat(now), speed=0.0)


def test_a_manual_clock_stands_until_the_next_answer_of_the_server() -> None:
    clock = ServerClock(clock_answer("2026-01-05T12:00:00Z"))
    assert clock.now() == clock.now() == datetime(2026, 1, 5, 12, tzinfo=UTC)
    clock.set(clock_answer(SENT))
    assert clock.now() == datetime(2026, 1, 5, 12, 0, 10, tzinfo=UTC)
