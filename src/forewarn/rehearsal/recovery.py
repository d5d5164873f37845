"""When the guest of a machine is through with what a scenario did to it.

A guest that tells it, as forewarn's agent tells systemd, is through when it cares for no event any more. One
that tells nothing is through when it asks again after an answer without the events: most guests do one thing
after the other.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from forewarn.clock import monotonic
from forewarn.core.rehearsal_ledger import Account
from forewarn.rehearsal.guest_programs import Told
from forewarn.rehearsal.scenario import FaultStep, Scenario


class Program(Protocol):
    """A program that is run as a guest."""

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        ...

    @property
    def told(self) -> Told | None:
        """What it has told of itself last."""
        ...


class GuestRecovery:
    """Follows one guest from the end of the last event on."""

    def __init__(
        self, account: Account, program: Program | None, *, events: Collection[str], end: datetime
    ) -> None:
        """Take the program that is run as the guest, the scenario's events, and when all of it was over."""
        self._account = account
        self._program = program
        self._events = frozenset(events)
        self._end = end
        self._answered: datetime | None = None  # without any of the events
        self._answered_at = 0.0  # real seconds

    @property
    def machine(self) -> str:
        """Whose guest it is."""
        return self._account.machine

    @property
    def tells(self) -> bool:
        """Whether the guest tells what it cares for."""
        return self._program is not None and self._program.told is not None

    def answered(self) -> bool:
        """Whether the guest was answered that all is over."""
        sound = self._account.last_sound
        listed = self._events.intersection(self._account.listed)
        if self._answered is None and sound is not None and sound >= self._end and not listed:
            self._answered, self._answered_at = sound, monotonic()
        return self._answered is not None

    def over(self) -> bool:
        """Whether the guest may be ended; one that nobody here has started is not ended at all."""
        if self._program is None:
            return self.answered()
        if not self._program.runs:
            return True
        if not self.answered() or self._answered is None:
            return False
        told = self._program.told
        if told is not None:
            return told.events == 0 and told.at > self._answered_at
        return self._account.last_poll is not None and self._account.last_poll > self._answered

    def worth_waiting(self, scenario: Scenario, gone: Collection[str]) -> bool:
        """Return whether it can recover before it is ended: it is answered, and its machine runs."""
        if self._program is None:
            return False
        if any(_spoils_to_the_end(step, self.machine) for _, step in scenario.fault_steps):
            return False
        return self.tells or self.machine not in gone


def _spoils_to_the_end(step: FaultStep, machine: str) -> bool:
    concerned = not step.fault.machines or machine in step.fault.machines
    return concerned and step.lasts is None and step.fault.calls is None
