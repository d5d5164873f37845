"""Saving when machines were first sent events, and counting those that were sent them late."""

from collections.abc import Mapping

from forewarn.core.model.slice import Sent
from forewarn.core.words import Kind
from forewarn.store import tables
from forewarn.store.rows.times import micros
from forewarn.store.writes.writer import Writer


class NoticeWrites(Writer):
    """Writes to what is known of notice."""

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; what is saved already stays as it is."""
        rows = [
            {"event_id": event.upper(), "machine_id": machine.lower(), "sent_at": micros(at)}
            for event, machines in sent.items()
            for machine, at in machines.items()
        ]
        self._put(tables.notices, rows, keep=("sent_at",))

    def _save_tallies(self, tallies: Mapping[Kind, int]) -> None:
        self._add(
            tables.tallies, [{"kind": kind.value, "machines": count} for kind, count in tallies.items()]
        )
