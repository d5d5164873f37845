"""Statements that several parts of a snapshot use."""

from sqlalchemy import ColumnElement, case, exists, func, or_, select

from forewarn.store import tables
from forewarn.store.rows.stored import GROUPS, HOSTS, MACHINES

_E, _R, _NAMED = tables.events.c, tables.records.c, tables.event_machines.c

# The rows of `OpenTransaction.read_machine`: with the machine's host, or its last one.
MACHINES_WITH_HOSTS = select(*MACHINES.columns, *HOSTS.columns).outerjoin_from(
    tables.machines,
    tables.hosts,
    tables.hosts.c.name == func.coalesce(tables.machines.c.host, tables.machines.c.last_host),
)
SELECT_GROUPS = select(*GROUPS.columns, tables.groups.c.version)  # the rows of `OpenTransaction.read_group`
# The project of an event: of its group while guests see it, afterwards of the record that announced it.
EVENT_PROJECT = case(
    (
        tables.LISTED_EVENT,
        select(tables.groups.c.project).where(tables.groups.c.name == _E.group_name).scalar_subquery(),
    ),
    else_=select(_R.project).where(_R.number == _E.number).scalar_subquery(),
)


def about_machine(machine_key: str, *, by_index: bool) -> ColumnElement[bool]:
    """Return the condition that a record names a machine, or an event that named the machine.

    See `OpenTransaction.may_use_name_index` for when to avoid the index.
    """
    if by_index:
        events = select(_NAMED.event_id).where(_NAMED.machine_key == machine_key)
        return or_(_R.machine_key == machine_key, _R.event_id.in_(events))
    # No index has these expressions.
    named = exists().where(_NAMED.event_id == _R.event_id, _NAMED.machine_key.concat("") == machine_key)
    return or_(_R.machine_key.concat("") == machine_key, named)
