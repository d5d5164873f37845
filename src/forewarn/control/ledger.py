"""What each guest did in a rehearsal, as its endpoint saw it, in service time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

Note: TypeAlias = Callable[[str, str], None]  # who, and what they did


@dataclass(slots=True, kw_only=True)
class Account:
    """What one guest did so far."""

    machine: str
    polls: int = 0
    spoiled: int = 0  # requests that got no sound answer
    first_poll: datetime | None = None
    last_poll: datetime | None = None
    last_sound: datetime | None = None  # the last answer that was as it should be
    seen: dict[str, datetime] = field(default_factory=dict)  # by event
    approved: dict[str, datetime] = field(default_factory=dict)
    lists: tuple[str, ...] = ()  # the events it was told last
    meets: str = ""  # what is wrong with its answers at present


class Ledger:
    """The accounts of all guests."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self._note: Note = _nobody_listens

    def attend(self, note: Note) -> None:
        """Tell somebody from now on what happens."""
        self._note = note

    def admit(self, machine: str) -> None:
        """Open an account for a machine."""
        self.accounts.setdefault(machine, Account(machine=machine))

    def polled(self, machine: str, *, now: datetime) -> None:
        """Write down that a guest asked."""
        account = self.accounts[machine]
        account.polls += 1
        account.last_poll = now
        if account.first_poll is None:
            account.first_poll = now
            self._note(machine, "polls for the first time")

    def spoiled(self, machine: str, what: str) -> None:
        """Write down that a guest was not answered as it should be."""
        account = self.accounts[machine]
        account.spoiled += 1
        if account.meets != what:
            account.meets = what
            self._note(machine, f"meets {what}")

    def sound(self, machine: str, *, now: datetime) -> None:
        """Write down that a guest was answered as it should be."""
        account = self.accounts[machine]
        account.last_sound, account.meets = now, ""

    def told(self, machine: str, events: Sequence[tuple[str, str]], *, now: datetime) -> None:
        """Write down the events a guest was shown, each an id and what it is."""
        account = self.accounts[machine]
        for event, what in events:
            self.shown(machine, event, what, at=now)
        ids = tuple(event for event, _ in events)
        for gone in set(account.lists) - set(ids):
            self._note(machine, f"sees that event {gone[:8]} is gone")
        for again in set(ids) - set(account.lists):
            self._note(machine, f"sees event {again[:8]} again")
        account.lists = ids

    def shown(self, machine: str, event: str, what: str, *, at: datetime) -> None:
        """Write down when a guest was first shown an event."""
        account = self.accounts[machine]
        if account.seen.setdefault(event, at) is at:
            account.lists += (event,)
            self._note(machine, f"sees {what}")

    def catch_up(self, account: Account) -> None:
        """Take over what another ledger has of a guest's requests."""
        if account.first_poll is not None:
            self.polled(account.machine, now=account.first_poll)
        if account.meets:
            self.spoiled(account.machine, account.meets)
        mine = self.accounts[account.machine]
        mine.polls, mine.spoiled, mine.meets = account.polls, account.spoiled, account.meets
        mine.last_poll, mine.last_sound = account.last_poll, account.last_sound

    def over(self, event: str) -> None:
        """Write down that nobody is shown an event any more."""
        for account in self.accounts.values():
            account.lists = tuple(listed for listed in account.lists if listed != event)

    def approved(self, machine: str, events: Iterable[str], *, now: datetime) -> None:
        """Write down the events that a guest let start."""
        account = self.accounts[machine]
        for event in events:
            if account.approved.setdefault(event.upper(), now) is now:
                self._note(machine, f"approves event {event.upper()[:8]}")


def _nobody_listens(who: str, what: str) -> None:
    """Keep it to oneself."""
