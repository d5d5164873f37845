"""The activity of each guest in a rehearsal, as the guest endpoint saw it, in service time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


class Note(Protocol):
    """Receives each line about a guest's activity."""

    def __call__(self, machine: str, what: str, /, *, at: datetime | None = None) -> None:
        """Receive a line; `at` is None for the present."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSighting:
    """The first time that a guest received an event."""

    at: datetime
    what: str  # a description of the event at that time


@dataclass(slots=True, kw_only=True)
class GuestAccount:
    """The activity of one guest."""

    machine: str
    polls: int = 0
    spoiled: int = 0  # requests that got a faulty answer
    first_poll: datetime | None = None
    last_poll: datetime | None = None
    last_sound: datetime | None = None  # the last correct answer
    seen: dict[str, FirstSighting] = field(default_factory=dict)  # by event
    approved: dict[str, datetime] = field(default_factory=dict)
    listed: tuple[str, ...] = ()  # the events of the last document that it received
    meets: str = ""  # the fault of its answers at present


# The first words of notes.
SEES = "sees"
APPROVES = "approves"


def _nothing(machine: str, what: str, /, *, at: datetime | None = None) -> None: ...


class GuestLedger:
    """The activity of all guests."""

    def __init__(self) -> None:
        self.accounts: dict[str, GuestAccount] = {}
        self._note: Note = _nothing

    def set_listener(self, note: Note) -> None:
        """Call `note` with every later line."""
        self._note = note

    def admit(self, machine: str) -> None:
        """Create the account of a machine."""
        self.accounts.setdefault(machine, GuestAccount(machine=machine))

    def polled(self, machine: str, *, now: datetime) -> None:
        """Record a poll."""
        account = self.accounts[machine]
        account.polls += 1
        account.last_poll = now
        if account.first_poll is None:
            account.first_poll = now
            self._note(machine, "polls for the first time", at=now)

    def spoiled(self, machine: str, what: str) -> None:
        """Record a faulty answer."""
        account = self.accounts[machine]
        account.spoiled += 1
        if account.meets != what:
            account.meets = what
            self._note(machine, f"meets {what}")

    def sound(self, machine: str, *, now: datetime) -> None:
        """Record a correct answer."""
        account = self.accounts[machine]
        account.last_sound, account.meets = now, ""

    def sent(self, machine: str, events: Mapping[str, str], *, now: datetime) -> None:
        """Record the events of a document that a guest received: a description of each, by id."""
        sightings = {event: FirstSighting(at=now, what=what) for event, what in events.items()}
        self._document(self.accounts[machine], sightings, tuple(events), at=now)

    def approved(self, machine: str, events: Iterable[str], *, now: datetime) -> None:
        """Record approvals of a guest."""
        account = self.accounts[machine]
        for event in (each.upper() for each in events):
            if event not in account.approved:
                account.approved[event] = now
                self._note(machine, f"{APPROVES} event {event[:8]}", at=now)

    def catch_up(self, account: GuestAccount) -> None:
        """Merge a guest's account from another ledger, which may have started again."""
        mine = self.accounts[account.machine]
        if account.first_poll is not None:
            self.polled(account.machine, now=account.first_poll)
        if account.meets:
            self.spoiled(account.machine, account.meets)
        self._document(mine, account.seen, account.listed, at=account.last_sound)
        for event, at in account.approved.items():
            self.approved(account.machine, [event], now=at)
        mine.polls, mine.spoiled, mine.meets = account.polls, account.spoiled, account.meets
        mine.last_poll, mine.last_sound = account.last_poll, account.last_sound

    def _document(
        self,
        account: GuestAccount,
        sightings: Mapping[str, FirstSighting],
        listed: tuple[str, ...],
        *,
        at: datetime | None,
    ) -> None:
        new = [event for event in sightings if event not in account.seen]
        for event in new:
            account.seen[event] = sightings[event]
            self._note(account.machine, f"{SEES} {sightings[event].what}", at=sightings[event].at)
        before = {*account.listed, *new}
        for gone in before - {*listed}:
            self._note(account.machine, f"sees that event {gone[:8]} is gone", at=at)
        for again in {*listed} - before:
            self._note(account.machine, f"sees event {again[:8]} again", at=at)
        account.listed = listed
