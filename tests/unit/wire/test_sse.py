"""Records as server-sent events."""

from datetime import UTC, datetime

from forewarn.core.basic_types import Kind, MachineName
from forewarn.core.model.record import Record
from forewarn.wire import sse

RECORD = Record(
    number=7,
    at=datetime(2026, 1, 5, 12, tzinfo=UTC),
    kind=Kind.ORDER_PLACED,
    machine=MachineName("web-0"),
    reason="two\nlines, and ü",
)


def test_a_record_is_one_event_whose_id_is_its_number() -> None:
    assert sse.event(RECORD).decode() == (
        "id: 7\nevent: order-placed\n"
        'data: {"number":7,"at":"2026-01-05T12:00:00Z","kind":"order-placed","project":null,"group":null,'
        '"host":null,"machine":"web-0","event":null,"order":null,"by":null,"reason":"two\\nlines, and ü",'
        '"topics":["orders","rollouts"]}\n\n'
    )


def test_blocks_without_an_event_set_the_last_event_id() -> None:
    assert sse.opening(5) == b"retry: 1000\nid: 5\n: records after 5 follow\n\n"
    assert sse.heartbeat(6) == b": nothing up to 6\nid: 6\n\n"
