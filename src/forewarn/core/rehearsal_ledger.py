"""What each guest did in a rehearsal, as its endpoint saw it, in service time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


class Note(Protocol):
    """Takes what a guest did: now, or when it was."""

    def __call__(self, machine: str, what: str, /, *, at: datetime | None = None) -> None:
        """Take it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSighting:
    """The first time that a guest was sent an event."""

    at: datetime
    what: str  # the event as it was then, in words


@dataclass(slots=True, kw_only=True)
class GuestAccount:
    """What one guest did so far."""

    machine: str
    polls: int = 0
    spoiled: int = 0  # requests that got no sound answer
    first_poll: datetime | None = None
    last_poll: datetime | None = None
    last_sound: datetime | None = None  # the last answer that was as it should be
    seen: dict[str, FirstSighting] = field(default_factory=dict)  # by event
    approved: dict[str, datetime] = field(default_factory=dict)
    listed: tuple[str, ...] = ()  # the events of the last document it was sent
    meets: str = ""  # what is wrong with its answers at present


# How notes begin.
SEES = "sees"
APPROVES = "approves"


def _nothing(machine: str, what: str, /, *, at: datetime | None = None) -> None:
    """Take a note for nobody."""


class GuestLedger:
    """The accounts of all guests."""

    def __init__(self) -> None:
        self.accounts: dict[str, GuestAccount] = {}
        self._note: Note = _nothing

    def set_listener(self, note: Note) -> None:
        """Call `note` from now on with what guests do."""
        self._note = note

    def admit(self, machine: str) -> None:
        """Open an account for a machine."""
        self.accounts.setdefault(machine, GuestAccount(machine=machine))

    def polled(self, machine: str, *, now: datetime) -> None:
        """Record that a guest asked."""
        account = self.accounts[machine]
        account.polls += 1
        account.last_poll = now
        if account.first_poll is None:
            account.first_poll = now
            self._note(machine, "polls for the first time", at=now)

    def spoiled(self, machine: str, what: str) -> None:
        """Record that a guest was not answered as it should be."""
        account = self.accounts[machine]
        account.spoiled += 1
        if account.meets != what:
            account.meets = what
            self._note(machine, f"meets {what}")

    def sound(self, machine: str, *, now: datetime) -> None:
        """Record that a guest was answered as it should be."""
        account = self.accounts[machine]
        account.last_sound, account.meets = now, ""

    def sent(self, machine: str, events: Mapping[str, str], *, now: datetime) -> None:
        """Record the events of a document that a guest was sent: what each is, by id."""
        sightings = {event: FirstSighting(at=now, what=what) for event, what in events.items()}
        self._document(self.accounts[machine], sightings, tuple(events), at=now)

    def approved(self, machine: str, events: Iterable[str], *, now: datetime) -> None:
        """Record the events that a guest let start."""
        account = self.accounts[machine]
        for event in (each.upper() for each in events):
            if event not in account.approved:
                account.approved[event] = now
                self._note(machine, f"{APPROVES} event {event[:8]}", at=now)

    def catch_up(self, account: GuestAccount) -> None:
        """Take over what another ledger has of a guest, which may have begun anew."""
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
