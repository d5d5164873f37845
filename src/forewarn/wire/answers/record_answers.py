"""Records of the history."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from forewarn.core.model.record import Record
from forewarn.core.topics import Topic, topics_of
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.event_answers import listed_group


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAnswer(ApiAnswer):
    """A line of the history."""

    number: int
    at: datetime
    kind: str
    project: str | None
    group: str | None
    host: str | None
    machine: str | None
    event: str | None
    order: str | None
    by: str | None
    reason: str | None
    topics: tuple[Topic, ...]  # the lists that have changed with it

    @classmethod
    def of(cls, record: Record) -> Self:
        """Show a record."""
        return cls.like(
            record,
            kind=str(record.kind),
            group=listed_group(record.group) if record.group else None,
            topics=topics_of(record.kind),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsAnswer(ApiAnswer):
    """Records, newest first.

    `missing_up_to` is the number up to which records after `above` may have been removed; null if none were.
    """

    records: tuple[RecordAnswer, ...]
    next: str | None
    missing_up_to: int | None
