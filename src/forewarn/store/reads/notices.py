"""Notices: when machines were first sent events."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select

from forewarn.core.basic_types import EventId, MachineId
from forewarn.core.model.slice import Sent
from forewarn.store import tables
from forewarn.store.key_lists import for_keys
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.rows.mapping import moment

_N = tables.notices.c
NOTICES = for_keys(select(_N.event_id, _N.machine_id, _N.sent_at), _N.event_id)


def first_sent(tx: OpenTransaction, events: Sequence[EventId]) -> Sent:
    """Return when machines were first sent these events, as far as that is saved."""
    found: dict[EventId, dict[MachineId, datetime]] = {}
    ids = {event.upper() for event in events}
    for event, machine, sent_at in tx.prefetched_rows(tx.batch.prefetched.notices, NOTICES, ids):
        found.setdefault(event, {})[machine] = moment(sent_at)
    return found
