"""Searching the history: in what the caller is shown of records, and never in what is hidden from it.

No index helps to find a text in the middle of others, so that records are looked through one after another: a
batch in each use case, between which others have their turn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forewarn.core.basic_types import STANDALONE
from forewarn.core.model.record import Record
from forewarn.core.redaction import unmarked

# Some milliseconds of work each: what a project's people are shown of a record takes longer to find out.
BATCH = 500
PROJECT_BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSearch:
    """What is looked for in records, in any case; nothing: all of them are found."""

    text: str = ""  # somewhere in a name, a reason, a kind or an id
    by: str = ""  # who did it

    def __bool__(self) -> bool:
        return bool(self.text or self.by)

    def finds(self, record: Record) -> bool:
        """Return whether a record, as it is shown, has what is looked for."""
        if self.by and record.by.casefold() != self.by.casefold():
            return False
        wanted = self.text.casefold()
        return any(wanted in text.casefold() for text in _texts(record))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecords:
    """What was found in a batch of records, and where to go on."""

    records: Sequence[Record]
    reached: int | None  # the number of the last record that was looked at; None: there was none
    more: bool  # whether there may be more


def _texts(record: Record) -> Iterator[str]:
    yield from (str(record.kind), record.by, unmarked(record.reason))
    for text in (record.machine, record.host, record.event, record.order):
        if text is not None:
            yield text
    # A standalone machine's own group is not shown.
    if record.group is not None and not record.group.startswith(STANDALONE):
        yield record.group
