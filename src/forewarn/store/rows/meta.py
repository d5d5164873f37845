"""What is kept of the store as a whole: one row."""

from dataclasses import dataclass
from datetime import datetime

from forewarn.core.model.clock_slew import Absence, Slew, TimeKind
from forewarn.core.model.constraints import Grace
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.footprint import MovePace
from forewarn.core.retention import Pruning
from forewarn.store import tables
from forewarn.store.rows.mapping import mapped
from forewarn.store.rows.stored import STORED


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The row; see the table."""

    number: int
    reached: datetime | None
    present_at: datetime | None
    system_at: datetime | None
    beats: int
    absences: tuple[Absence, ...]
    time_kind: TimeKind | None
    backup_of: datetime | None
    grace_until: datetime | None
    grace_announced_before: datetime | None
    applied_fleet: str | None
    defaults: FleetDefaults
    lineage: str
    pruned: int
    pruned_unsaid: int
    prune_at: datetime | None
    session_changes: int
    settings_version: str
    blocked_rollouts: int
    forgotten: int
    pace: MovePace

    @property
    def grace(self) -> Grace | None:
        """Until when unapproved starts are deferred."""
        if self.grace_until is None or self.grace_announced_before is None:
            return None
        return Grace(until=self.grace_until, announced_before=self.grace_announced_before)

    @property
    def slew(self) -> Slew | None:
        """How service time and the system's go on, if it is ahead."""
        if self.present_at is None or self.system_at is None:
            return None
        return Slew(at=self.present_at, system=self.system_at)

    @property
    def pruning(self) -> Pruning:
        """How far old records have been removed."""
        return Pruning(up_to=self.pruned, unreported=self.pruned_unsaid, next_at=self.prune_at)


META = mapped(Meta, tables.meta, STORED)
