"""Saving what was decided: its parts in their order, and the numbers it is given."""

from dataclasses import asdict
from hashlib import sha256
from json import dumps

from sqlalchemy import func, select

from forewarn.core.copies import replace
from forewarn.core.errors import Conflict
from forewarn.core.model.changes import Changes
from forewarn.core.model.footprint import NO_MOVES
from forewarn.core.model.slice import Sent
from forewarn.store import tables
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.meta import Meta
from forewarn.store.rows.stored import HOLDS, PROJECTS, ROLLOUTS
from forewarn.store.rows.times import micros
from forewarn.store.saved import SavedChanges
from forewarn.store.writes.fleet_writes import FleetWrites, Tombstones
from forewarn.store.writes.work_writes import Waking, WorkWrites
from forewarn.store.writes.writer import add_rows, put, put_rows

_COUNT_BLOCKED = select(func.count()).where(tables.OPEN_ROLLOUT, tables.rollouts.c.blocked)


class ChangeSaving(Reader):
    """Saves what was decided, and what guests were sent."""

    def __init__(self, transaction: OpenTransaction) -> None:
        super().__init__(transaction)
        self._fleet, self._work = FleetWrites(transaction), WorkWrites(transaction)
        self._tombstones, self._waking = Tombstones(transaction), Waking(transaction)

    def save(self, changes: Changes) -> Changes:
        """Save what was decided, and return it with the numbers that it was given.

        Unavailable if it cannot be saved, Conflict if it was decided on what is saved no longer.
        """
        before = self._meta.number
        if changes.as_of is not None and changes.as_of != before:
            raise Conflict("somebody else has saved something meanwhile: try again")
        changes = changes.numbered(after=before)
        if changes.empty:
            return changes
        self._transaction.found.clear()
        self._transaction.loaded.follow(changes)
        number = _newest(changes, before)
        self._fleet.save(changes, number=number)
        forgotten = self._tombstones.bury(changes, number=number)
        self._work.save(changes)
        tallies = [{"kind": kind.value, "machines": count} for kind, count in changes.tallies.items()]
        add_rows(self._connection, tables.tallies, tallies)
        add_rows(self._connection, tables.promises, [asdict(counted) for counted in changes.promises])
        wakes = self._waking.wake(changes)
        put(self._connection, ROLLOUTS, changes.rollouts)
        self._transaction.keep(replace(self._meta_after(changes, number), forgotten=forgotten))
        self._transaction.saved.append(
            SavedChanges(before=before, number=number, changes=changes, wakes=wakes)
        )
        return changes

    def save_notices(self, sent: Sent) -> None:
        """Save when machines were first sent events; what is saved already stays as it is."""
        rows = [
            {"event_id": event.upper(), "machine_id": machine.lower(), "sent_at": micros(at)}
            for event, machines in sent.items()
            for machine, at in machines.items()
        ]
        self._transaction.loaded.forget_notices(sent)
        put_rows(self._connection, tables.notices, rows, keep=("sent_at",))

    def _meta_after(self, changes: Changes, number: int) -> Meta:
        meta = replace(self._meta, number=number, reached=self._transaction.reached_by(changes.now))
        if changes.moves != NO_MOVES:
            meta = replace(meta, pace=meta.pace.plus(changes.moves))
        if changes.defaults is not None:
            meta = replace(meta, defaults=changes.defaults)
        if changes.projects or changes.holds or changes.removed_projects or changes.removed_holds:
            meta = replace(meta, settings_version=_version_after(meta.settings_version, changes))
        if changes.rollouts:
            meta = replace(meta, blocked_rollouts=self._connection.scalar(_COUNT_BLOCKED) or 0)
        return meta


def _newest(changes: Changes, before: int) -> int:
    """Return the number by which readers of the feed will find changes that are numbered."""
    newest = max((record.number for record in changes.records), default=before)
    boards_must_know = (
        changes.groups or changes.machines or changes.removed_groups or changes.removed_machines
    )
    # A change without a record needs a number too, or it would hide behind the last one.
    return before + 1 if newest == before and boards_must_know else newest


def _version_after(version: str, changes: Changes) -> str:
    """Return a text that stands for the projects and holds after these changes, and for no others ever."""
    written = [
        *map(PROJECTS.write, changes.projects),
        *map(HOLDS.write, changes.holds),
        *(changes.removed_projects, changes.removed_holds),
    ]
    return sha256(f"{version} {dumps(written)}".encode()).hexdigest()
