"""Saving when machines were first sent events, and counting those that were sent them late."""

from collections.abc import Mapping

from forewarn.core.model.slice import Sent
from forewarn.core.words import Kind
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.times import micros
from forewarn.store.writes.upserts import adding, insert_new


class NoticeWrites(Reader):
    """Writes to what is known of notice."""

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; what is saved already stays as it is."""
        rows = [
            {"event_id": event.upper(), "machine_id": machine.lower(), "sent_at": micros(at)}
            for event, machines in sent.items()
            for machine, at in machines.items()
        ]
        if rows:
            self._connection.execute(insert_new(self._connection.dialect.name, tables.notices), rows)

    def _save_tallies(self, tallies: Mapping[Kind, int]) -> None:
        if tallies:
            rows = [{"kind": kind.value, "machines": count} for kind, count in tallies.items()]
            self._connection.execute(adding(self._connection.dialect.name, tables.tallies), rows)
