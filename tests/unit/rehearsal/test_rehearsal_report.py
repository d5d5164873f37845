"""Reports of rehearsals, and their failures."""

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core.rehearsal_ledger import FirstSighting, GuestAccount
from forewarn.rehearsal.report import EventFacts, RehearsalReport, as_json, report
from forewarn.rehearsal.scenario import Scenario
from forewarn.rehearsal.scenario_file import default_fleet, read_scenario

BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def scenario(expect: str, steps: str = "") -> Scenario:
    text = f'[scenario]\nname = "mine"\n{steps}\n[expect]\nmachines = ["web-0"]\n{expect}\n'
    return read_scenario(text, default_fleet=default_fleet())


def event(*, approved: float | None = None, started: float | None = None, notice: float = 900) -> EventFacts:
    return EventFacts(
        id="E1",
        type="Reboot",
        machines=("web-0",),
        announced=after(10),
        not_before=after(10 + notice),
        started=None if started is None else after(started),
        approved=None if approved is None else after(approved),
    )


def guest(*, polls: int = 3, seen: float | None = 12, approved: float | None = None) -> GuestAccount:
    return GuestAccount(
        machine="web-0",
        polls=polls,
        first_poll=after(0) if polls else None,
        last_poll=after(60) if polls else None,
        last_sound=after(60) if polls else None,
        seen={} if seen is None else {"E1": FirstSighting(at=after(seen), what="")},
        approved={} if approved is None else {"E1": after(approved)},
    )


def outcome(wanted: Scenario, account: GuestAccount, *events: EventFacts) -> RehearsalReport:
    accounts = {"web-0": account, "web-1": GuestAccount(machine="web-1")}
    return report(wanted, accounts, events, began=BEGAN, ended=after(120))


def test_a_report_says_what_a_guest_did_and_when() -> None:
    told = outcome(scenario("approved = true"), guest(approved=20), event(approved=20, started=21))
    assert as_json(told) == {
        "scenario": "mine",
        "held": True,
        "failures": [],
        "lasted_seconds": 120,
        "guests": [
            {
                "machine": "web-0",
                "polls": 3,
                "spoiled": 0,
                "first_poll_seconds": 0,
                "last_poll_seconds": 60,
                "events": [
                    {
                        "id": "E1",
                        "type": "Reboot",
                        "named": True,
                        "announced_seconds": 10,
                        "seen_seconds": 12,
                        "approved_seconds": 20,
                        "started_seconds": 21,
                        "ended_seconds": None,
                        "notice_seconds": 900,
                        "used_seconds": 10,
                    }
                ],
            }
        ],
        "probes": [],
        "checks": [{"name": "scenario", "failures": []}, {"name": "guest web-0", "failures": []}],
        "took_seconds": 0,
        "interrupted": False,
    }


def test_without_an_approval_the_notice_lasts_until_the_start() -> None:
    told = outcome(scenario("saw = true"), guest(), event(started=910))
    assert told.guests[0].events[0].used_seconds == 900


def test_another_guests_approval_counts_for_all_machines_of_the_event() -> None:
    told = outcome(scenario("approved = true"), guest(), event(approved=20, started=21))
    assert told.held
    assert told.guests[0].events[0].approved_seconds is None


def test_an_event_without_notice_need_not_be_approved() -> None:
    assert outcome(scenario("approved = true"), guest(), event(started=10, notice=0)).held


@pytest.mark.parametrize(
    ("expect", "account", "facts", "failure"),
    [
        ("polled = true", guest(polls=0), event(), "web-0 should have polled, and never did"),
        ("polled = false", guest(), event(), "web-0 should not have polled, and did 3 times"),
        ("saw = true", guest(seen=None), event(), "web-0 should have seen the Reboot"),
        ("saw = false", guest(), event(), "web-0 should not have seen the Reboot"),
        (
            "approved = true",
            guest(),
            event(started=910),
            "the Reboot of web-0 should have been approved, and was not",
        ),
        (
            "approved = false",
            guest(approved=20),
            event(approved=20),
            "the Reboot of web-0 should not have been approved, and was",
        ),
        (
            'approved = true\nwithin = "5s"',
            guest(approved=20),
            event(approved=20),
            "the Reboot of web-0 was approved after 10 s, not within 5 s",
        ),
    ],
)
def test_unmet_expectations_are_failures(
    expect: str, account: GuestAccount, facts: EventFacts, failure: str
) -> None:
    told = outcome(scenario(expect), account, facts)
    assert not told.held
    assert told.failures == (failure,)


def test_seeing_needs_an_event() -> None:
    told = outcome(scenario("saw = true"), guest())
    assert told.failures == ("web-0 had no event that it could have seen",)


def test_a_guest_that_gets_no_sound_answer_after_the_faults_has_not_recovered() -> None:
    faults = '[[steps]]\nat = "50s"\nfault = {kind="503", for="30s"}'
    told = outcome(scenario("recovered = true", faults), guest())
    assert told.failures == ("web-0 should have recovered, but got no valid answer after the faults",)
    account = guest()
    account.last_sound = after(81)
    assert outcome(scenario("recovered = true", faults), account).held
