"""Who plays whom on a running server, and what is known there of the guests."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forewarn.control.ledger import Ledger
from forewarn.rehearsal import casting
from forewarn.rehearsal.reading import read_scenario
from forewarn.rehearsal.running import ServerClock, witness
from forewarn.rehearsal.scenario import OrderStep, Scenario
from forewarn.rehearsal.shipped import all_shipped, default_fleet, find

SENT = "2026-01-05T12:00:10Z"


def scenario(text: str) -> Scenario:
    return read_scenario(f'[scenario]\nname = "mine"\n{text}', default_fleet=default_fleet())


def test_only_machines_that_matter_must_be_there() -> None:
    assert casting.roles(find("spot-eviction")) == ("batch_0",)
    assert casting.roles(find("rolling-host-update")) == ("web-0", "web-1", "web-2")
    watched = scenario(
        '[[steps]]\norder = {machine="web-1", action="freeze"}\n[expect]\nmachines = ["web-0"]'
    )
    assert casting.roles(watched) == ("web-0", "web-1")


def test_those_who_play_stand_in_all_places() -> None:
    both = scenario(
        '[[steps]]\norder = {machine="web-0", action="freeze"}\n[[steps]]\ncancel = true\n'
        '[[steps]]\norder = {host="host-1", action="fail"}\n[[guests]]\nmachine = "web-0"\ncommand = ["x"]\n'
    )
    played = casting.cast(both, machines={"web-0": "front"}, hosts={"host-1": "rack"})
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
def test_how_long_it_takes_is_known_before(name: str, lasts: timedelta) -> None:
    assert casting.unanswered(find(name)) == lasts


def test_no_scenario_takes_longer_than_its_limit() -> None:
    assert all(casting.unanswered(each) <= each.limit for each in all_shipped())


def event(**more: Any) -> dict[str, Any]:
    return {
        "id": "602D9444-D2CD-49C7-8624-8643E7171297",
        "type": "Freeze",
        "status": "Scheduled",
        "resources": ["web-0"],
        "notices": [],
        "approvals": [],
        "started_at": None,
        "ended_at": None,
        **more,
    }


def test_what_the_server_sent_is_what_a_guest_saw() -> None:
    said: list[tuple[str, str]] = []
    ledger = Ledger()
    ledger.attend(lambda who, what: said.append((who, what)))
    for machine in ("web-0", "web-1"):
        ledger.admit(machine)
    unsent = {"machine": "web-0", "sent_at": None}
    witness(ledger, [event(notices=[unsent])])
    assert said == []
    sent = {"machine": "web-0", "sent_at": SENT}
    words = [
        {"by": "web-1", "kind": "guest", "at": SENT},
        {"by": "olga", "kind": "person", "at": SENT},
        {"by": "elsewhere", "kind": "guest", "at": SENT},
    ]
    for _ in range(2):
        witness(ledger, [event(notices=[sent, {"machine": "elsewhere", "sent_at": SENT}], approvals=words)])
    assert said == [
        ("web-0", "sees Freeze of web-0 (Scheduled, event 602D9444)"),
        ("web-1", "approves event 602D9444"),
    ]
    assert len(ledger.accounts["web-0"].lists) == 1
    witness(ledger, [event(notices=[sent], ended_at=SENT)])
    assert ledger.accounts["web-0"].lists == ()
    at = datetime(2026, 1, 5, 12, 0, 10, tzinfo=UTC)
    assert list(ledger.accounts["web-0"].seen.values()) == [at]
    assert list(ledger.accounts["web-1"].approved.values()) == [at]


def test_a_clock_that_is_turned_by_hand_stands_until_the_server_says_more() -> None:
    clock = ServerClock({"kind": "manual", "now": "2026-01-05T12:00:00Z", "speed": 0.0})
    assert clock.now() == clock.now() == datetime(2026, 1, 5, 12, tzinfo=UTC)
    clock.set({"now": SENT})
    assert clock.now() == datetime(2026, 1, 5, 12, 0, 10, tzinfo=UTC)
