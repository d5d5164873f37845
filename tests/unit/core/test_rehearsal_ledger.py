"""The activity of guests: recorded by the endpoint, and merged by the rehearsal."""

from datetime import UTC, datetime, timedelta

import pytest

from forewarn.core.rehearsal_ledger import GuestLedger

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
EVENT = "602D9444-D2CD-49C7-8624-8643E7171297"
FREEZE = {EVENT: "Freeze of web-0 (Scheduled, event 602D9444)"}


class Notes(list[str]):
    def __call__(self, who: str, what: str, /, *, at: datetime | None = None) -> None:
        assert who == "web-0"
        self.append(what)


def ledger(notes: Notes | None = None) -> GuestLedger:
    made = GuestLedger()
    made.admit("web-0")
    if notes is not None:
        made.set_listener(notes)
    return made


@pytest.fixture
def endpoint() -> GuestLedger:
    return ledger()


def test_merging_a_ledger_again_repeats_no_note(endpoint: GuestLedger) -> None:
    notes = Notes()
    mine = ledger(notes)
    endpoint.polled("web-0", now=NOW)
    endpoint.sent("web-0", FREEZE, now=NOW)
    endpoint.approved("web-0", [EVENT.lower()], now=NOW)
    endpoint.spoiled("web-0", "a 503")
    for _ in range(2):
        mine.catch_up(endpoint.accounts["web-0"])
    assert notes == [
        "polls for the first time",
        "meets a 503",
        f"sees {FREEZE[EVENT]}",
        "approves event 602D9444",
    ]
    assert mine.accounts == endpoint.accounts


def test_events_that_go_and_come_back_are_noted(endpoint: GuestLedger) -> None:
    notes = Notes()
    endpoint.set_listener(notes)
    for events in (FREEZE, {}, FREEZE):
        endpoint.sent("web-0", events, now=NOW)
    assert notes == [
        f"sees {FREEZE[EVENT]}",
        "sees that event 602D9444 is gone",
        "sees event 602D9444 again",
    ]


def test_a_restart_of_the_server_does_not_lose_earlier_activity(endpoint: GuestLedger) -> None:
    mine = ledger()
    endpoint.sent("web-0", FREEZE, now=NOW)
    endpoint.approved("web-0", [EVENT], now=NOW)
    mine.catch_up(endpoint.accounts["web-0"])
    restarted = ledger()
    restarted.sent("web-0", FREEZE, now=NOW + timedelta(minutes=1))
    mine.catch_up(restarted.accounts["web-0"])
    assert mine.accounts["web-0"].seen[EVENT].at == NOW
    assert mine.accounts["web-0"].approved == {EVENT: NOW}


def test_the_same_fault_is_noted_again_after_a_correct_answer(endpoint: GuestLedger) -> None:
    endpoint.spoiled("web-0", "a 503")
    endpoint.sound("web-0", now=NOW)
    account = endpoint.accounts["web-0"]
    assert (account.last_sound, account.meets, account.spoiled) == (NOW, "", 1)
