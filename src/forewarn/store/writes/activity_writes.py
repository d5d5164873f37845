"""Saving when groups and machines last polled: apart from all else, and never older over newer."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from forewarn.core.words import GroupName, MachineId
from forewarn.store import tables
from forewarn.store.many_rows import execute_many
from forewarn.store.rows.times import micros
from forewarn.store.writes.writer import insertion

_G, _A = tables.group_activity.c, tables.machine_activity.c
_SEEN = bindparam("seen", type_=tables.TIME)
# Groups that are not enabled have no row, and get none.
_SAVE_GROUP = (
    update(tables.group_activity)
    .where(_G.group_name == bindparam("group"), _G.last_active < _SEEN)
    .values(last_active=_SEEN)
)


def save_activity(
    connection: Connection, groups: Mapping[GroupName, datetime], machines: Mapping[MachineId, datetime]
) -> None:
    """Save the newest polls of groups and of machines; those that are gone are passed over."""
    # In their order, so that two that save the same ones wait for each other, and not both for ever.
    if groups:
        group_rows = [{"group": group, "seen": micros(groups[group])} for group in sorted(groups)]
        execute_many(connection, _SAVE_GROUP, group_rows)
    if machines:
        seen = {machine.lower(): micros(at) for machine, at in machines.items()}
        machine_rows = [{"machine": machine, "seen": seen[machine]} for machine in sorted(seen)]
        execute_many(connection, _save_machine(connection.dialect.name), machine_rows)


@cache
def _save_machine(dialect: str) -> Any:
    known = select(tables.machines.c.id, _SEEN).where(tables.machines.c.id == bindparam("machine"))
    statement = insertion(dialect, tables.machine_activity).from_select(["machine_id", "last_seen"], known)
    newer = statement.excluded.last_seen
    return statement.on_conflict_do_update(
        index_elements=["machine_id"], set_={"last_seen": newer}, where=_A.last_seen < newer
    )
