"""Server-sent events in the format of the HTML standard.

A block without data is no event, but sets the client's `Last-Event-ID`. A client whose filter has matched
nothing yet can therefore resume.
"""

import json

from forewarn.core.model.record import Record
from forewarn.wire.answers.coding import ANSWER_CODEC
from forewarn.wire.answers.record_answers import RecordAnswer

# Milliseconds after which a browser reconnects.
RECONNECT = 1000


def opening(number: int) -> bytes:
    """Write the first block: the number after which records follow."""
    return f"retry: {RECONNECT}\nid: {number}\n: records after {number} follow\n\n".encode()


def missing(after: int, up_to: int) -> bytes:
    """Write an event about deleted records that the client has not received."""
    why = f"records after {after} and up to {up_to} may be missing: older records have been deleted"
    data = json.dumps({"after": after, "up_to": up_to, "reason": why}, separators=(",", ":"))
    return f"event: records-missing\ndata: {data}\n\n".encode()


def heartbeat(number: int) -> bytes:
    """Write a block without an event."""
    return f": nothing up to {number}\nid: {number}\n\n".encode()


def event(record: Record) -> bytes:
    """Write a record as one event."""
    # A line break would end the field.
    data = json.dumps(ANSWER_CODEC.write(RecordAnswer.of(record)), ensure_ascii=False, separators=(",", ":"))
    return f"id: {record.number}\nevent: {record.kind}\ndata: {data}\n\n".encode()
