"""Removing old records: a pass a day through the oldest of them, a batch at a time between ticks.

With the last record of an event goes what is kept of whom it named and who was told when. What
became of the promises is counted for good.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.control.use_case import EngineContext, UseCase
from forewarn.control.webhook_use_cases import MOST_WEBHOOKS
from forewarn.core import retention
from forewarn.core.basic_types import Kind
from forewarn.core.filters import RecordFilter
from forewarn.core.model.record import Record
from forewarn.core.time_formats import format_span
from forewarn.core.retention import Needed, Pruning
from forewarn.core.text_formats import counted
from forewarn.store.batch import Transaction

# A few milliseconds of work, for which a use case may have to wait.
BATCH = 500


class RecordPruning(UseCase):
    """Removes records that are older than they are kept."""

    def __init__(self, context: EngineContext, *, keep: timedelta | None) -> None:
        """Take how long records are kept; None: for ever."""
        super().__init__(context)
        self._transact = context.transact
        self.keep = keep
        self._known: Pruning | None = None
        self._looked_at = 0  # by this pass: every record up to this number

    def due_at(self, now: datetime) -> datetime | None:
        """Return when old records are looked for next; None: never."""
        if self.keep is None:
            return None
        if self._known is None:
            with self._store.read() as snapshot:
                self._known = snapshot.records.pruning()
        return self._known.next_at or now

    def prune(self, now: datetime) -> bool:
        """Remove a batch of old records if it is time; return whether there may be more.

        Records lie in the order of their times, so a pass reads the old ones only, and each once.
        """
        due, keep = self.due_at(now), self.keep
        if due is None or keep is None or now < due:
            return False
        self._known, self._looked_at = self._transact(lambda tx: self._prune_batch(tx, now, keep))
        return self._looked_at != 0

    def _prune_batch(self, tx: Transaction, now: datetime, keep: timedelta) -> tuple[Pruning, int]:
        """Remove a batch; return the state of the pass, and the number to go on from: 0 if it is over."""
        found = tx.records.following(self._looked_at, RecordFilter(), limit=BATCH).records
        old = [record for record in found if record.at < now - keep]
        over = len(old) < BATCH
        pruning = self._removed(tx, old)
        pruning = self._said(tx, pruning, now) if over else pruning
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

    def _said(self, tx: Transaction, pruning: Pruning, now: datetime) -> Pruning:
        """End a pass with a record of what it has removed."""
        if pruning.unreported:
            age = format_span(self.keep or 0)
            count = counted(pruning.unreported, "record")
            gone = f"{count} up to number {pruning.up_to}, older than {age}"
            with self._saving(tx, now=now) as draft:
                draft.record(Kind.HISTORY_PRUNED, None, reason=gone)
        return replace(pruning, unreported=0, next_at=now + retention.EVERY)
