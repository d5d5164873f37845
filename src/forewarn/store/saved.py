"""Saved changes, as boards, the stream, the log and the engine are notified of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from forewarn.core.model.changes import Changes
from forewarn.core.model.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedChanges:
    """The changes of one use case, as they were saved."""

    before: int  # the number of the feed before
    number: int  # and after
    changes: Changes  # with the numbers that they were assigned
    wakes: bool = False  # whether they make orders or rollouts due that the use case did not load


# The saves of one transaction, in order. None: something may have been saved, but it is not known what.
Saved: TypeAlias = Sequence[SavedChanges] | None
Listener: TypeAlias = Callable[[Saved], None]


def records_of(saved: Saved) -> Sequence[Record]:
    """Return the records that were saved."""
    return [record for each in saved or () for record in each.changes.records]
