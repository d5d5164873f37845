"""The polls of guests, on their way from memory into the store: a part at a time."""

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice

from forewarn.control.interfaces import Activity, LastPolls
from forewarn.core.words import GroupName, MachineId
from forewarn.store.sql import Store

# Groups, and machines, that are saved in one transaction: it takes less time than anybody notices.
AT_ONCE = 1_000


class UnsavedPolls:
    """Polls that no transaction has saved yet, whether the boards still have them or not."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._groups: dict[GroupName, datetime] = {}
        self._machines: dict[MachineId, datetime] = {}
        self._moving = threading.Lock()  # held while something is on its way from the boards to here

    def pending(self) -> bool:
        """Return whether there is anything to hand over."""
        return self._activity.pending()

    @property
    def half_saved(self) -> bool:
        """Whether something was handed over and is not saved yet."""
        return bool(self._groups or self._machines)

    def collect(self) -> None:
        """Have the boards hand over what they have."""
        with self._moving:
            groups, machines = self._activity.take()
            self._groups.update(groups)
            self._machines.update(machines)

    def save_some(self, store: Store) -> None:
        """Save a part of what was handed over; one that cannot be saved is kept."""
        groups = dict(islice(self._groups.items(), AT_ONCE))
        machines = dict(islice(self._machines.items(), AT_ONCE))
        store.save_activity(groups, machines)
        for group in groups:
            del self._groups[group]
        for machine in machines:
            del self._machines[machine]

    def fresh(self) -> LastPolls:
        """Return the polls that are not saved by now. Any thread may ask.

        Whoever asks before it opens a snapshot misses none: each is here until the store has it.
        """
        with self._moving:
            newest, handed_over = self._activity.fresh(), self._machines.copy()

        def find(machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
            older = {machine: handed_over[machine] for machine in machines if machine in handed_over}
            return older | dict(newest(machines))

        return find
