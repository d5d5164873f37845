"""Full-text search in the history, over the text that the caller may see.

No index helps to find a text inside another one, so the search reads record by record. Each use case reads
one batch, so that other callers get their turn in between.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forewarn.core.basic_types import STANDALONE
from forewarn.core.model.record import Record
from forewarn.core.redaction import unmarked

# Some milliseconds of work each. Redacting records for a project takes longer.
BATCH = 500
PROJECT_BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSearch:
    """A search in records, ignoring case. Empty: every record matches."""

    text: str = ""  # part of a name, a reason, a kind or an id
    by: str = ""  # the author

    def __bool__(self) -> bool:
        return bool(self.text or self.by)

    def finds(self, record: Record) -> bool:
        """Return whether a record, as the caller sees it, matches."""
        if self.by and record.by.casefold() != self.by.casefold():
            return False
        wanted = self.text.casefold()
        return any(wanted in text.casefold() for text in _texts(record))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecords:
    """The matches in one batch of records, and where to continue."""

    records: Sequence[Record]
    reached: int | None  # the number of the last record read; None: there was none
    more: bool  # whether there may be more records


def _texts(record: Record) -> Iterator[str]:
    yield from (str(record.kind), record.by, unmarked(record.reason))
    # The group of a standalone machine is not shown.
    group = record.group if record.group and not record.group.startswith(STANDALONE) else None
    yield from filter(None, (record.machine, record.host, record.event, record.order, group))
