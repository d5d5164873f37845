"""Pruning of old records: one pass a day through the oldest ones, in batches between ticks.

With the last record of an event, its recipients and their notice times are removed too. The counts of kept
and broken promises stay permanently.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.control.use_case import EngineContext, UseCase
from forewarn.control.webhook_use_cases import MOST_WEBHOOKS
from forewarn.core import retention
from forewarn.core.basic_types import Kind
from forewarn.core.filters import RecordFilter
from forewarn.core.model.record import Record
from forewarn.core.retention import Needed, Pruning
from forewarn.core.text_formats import counted
from forewarn.core.time_formats import format_span
from forewarn.store.batch import Transaction

# A few milliseconds of work, for which use cases may have to wait.
BATCH = 500


class RecordPruning(UseCase):
    """Removes records that are older than the retention time."""

    def __init__(self, context: EngineContext, *, keep: timedelta | None) -> None:
        """Take the retention time; None: forever."""
        super().__init__(context)
        self._transact = context.transact
        self.keep = keep
        self._known: Pruning | None = None
        self._read_up_to = 0  # the last record that this pass has read

    def due_at(self, now: datetime) -> datetime | None:
        """Return when the next pass is due; None: never."""
        if self.keep is None:
            return None
        if self._known is None:
            with self._store.read() as snapshot:
                self._known = snapshot.records.pruning()
        return self._known.next_at or now

    def prune(self, now: datetime) -> bool:
        """Remove a batch of old records if a pass is due; return whether there may be more.

        Records are in the order of their times, so a pass reads only the old ones, each once.
        """
        due, keep = self.due_at(now), self.keep
        if due is None or keep is None or now < due:
            return False
        self._known, self._read_up_to = self._transact(lambda tx: self._prune_batch(tx, now, keep))
        return self._read_up_to != 0

    def _prune_batch(self, tx: Transaction, now: datetime, keep: timedelta) -> tuple[Pruning, int]:
        """Remove a batch; return the state of the pass, and the number to continue from, 0 at the end."""
        found = tx.records.following(self._read_up_to, RecordFilter(), limit=BATCH).records
        old = [record for record in found if record.at < now - keep]
        over = len(old) < BATCH
        pruning = self._removed(tx, old)
        pruning = self._finished(tx, pruning, now) if over else pruning
        tx.records.set_pruning(pruning)
        return pruning, 0 if over else old[-1].number

    def _removed(self, tx: Transaction, old: list[Record]) -> Pruning:
        before = tx.records.pruning()
        if not old:
            return before
        gone = retention.removable(
            old,
            Needed(
                orders=tx.due.open_orders({record.order for record in old if record.order is not None}),
                rollouts=tx.rollouts.open(),
                webhooks=tx.webhooks.page(project=None, after=None, limit=MOST_WEBHOOKS)[0],
            ),
        )
        tx.records.remove(gone)
        tx.records.remove_notices(retention.events_of(old, removed=gone))
        return replace(before, up_to=max(before.up_to, *gone, 0), unreported=before.unreported + len(gone))

    def _finished(self, tx: Transaction, pruning: Pruning, now: datetime) -> Pruning:
        """End a pass with a record of how many records it has removed."""
        if pruning.unreported:
            age = format_span(self.keep or 0)
            count = counted(pruning.unreported, "record")
            gone = f"{count} up to number {pruning.up_to}, older than {age}"
            with self._saving(tx, now=now) as draft:
                draft.record(Kind.HISTORY_PRUNED, None, reason=gone)
        return replace(pruning, unreported=0, next_at=now + retention.EVERY)
