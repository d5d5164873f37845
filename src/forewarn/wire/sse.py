"""Server-sent events, as the WHATWG's HTML standard frames them.

A block without data is no event, but moves the reader's `Last-Event-ID`: so a reader that was shown
nothing yet, or nothing that its filter lets through, resumes from where it was all the same.
"""

import json

from forewarn.core.model.record import Record
from forewarn.wire.answers.coding import ANSWER_CODEC
from forewarn.wire.answers.record_answers import RecordAnswer

# How long a browser waits before it connects again, in milliseconds.
RECONNECT = 1000


def opening(number: int) -> bytes:
    """Write from which number on records follow."""
    return f"retry: {RECONNECT}\nid: {number}\n: records after {number} follow\n\n".encode()


def missing(after: int, up_to: int) -> bytes:
    """Write that records which the reader has not seen are no longer kept; those that are follow."""
    why = f"records after {after} and up to {up_to} may be missing: the history is not kept so long"
    data = json.dumps({"after": after, "up_to": up_to, "reason": why}, separators=(",", ":"))
    return f"event: records-missing\ndata: {data}\n\n".encode()


def heartbeat(number: int) -> bytes:
    """Write that nothing has happened up to a number."""
    return f": nothing up to {number}\nid: {number}\n\n".encode()


def event(record: Record) -> bytes:
    """Write a record as one event."""
    # JSON on one line: a line break would end the field.
    data = json.dumps(ANSWER_CODEC.write(RecordAnswer.of(record)), ensure_ascii=False, separators=(",", ":"))
    return f"id: {record.number}\nevent: {record.kind}\ndata: {data}\n\n".encode()
