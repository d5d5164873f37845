"""What was saved, as those are told of it who follow: boards, the tail of records, the log, the engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from forewarn.core.model.changes import Changes
from forewarn.core.model.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedChanges:
    """What one use case has changed, as it was saved."""

    before: int  # the number of the feed until then
    number: int  # and from then on
    changes: Changes  # with the numbers that they were given
    wakes: bool = False  # whether something that was loaded for nobody is due with it


# What one transaction has saved, in order; None: something may have been saved, and nobody knows what.
Saved: TypeAlias = Sequence[SavedChanges] | None
Listener: TypeAlias = Callable[[Saved], None]


def records_of(saved: Saved) -> Sequence[Record]:
    """Return the records that were saved."""
    return [record for each in saved or () for record in each.changes.records]
