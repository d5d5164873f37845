"""Which records are about a machine, by its name."""

from sqlalchemy import ColumnElement, exists, or_, select

from forewarn.store import tables

_R, _NAMED = tables.records.c, tables.event_machines.c


def concerning(machine_key: str, *, by_index: bool) -> ColumnElement[bool]:
    """A record is about a machine if it names it, or is about an event that named it.

    How long an index takes tells how much there is of a name in all projects. So a project that has no such
    machine is read its own records without one.
    """
    if by_index:
        events = select(_NAMED.event_id).where(_NAMED.machine_key == machine_key)
        return or_(_R.machine_key == machine_key, _R.event_id.in_(events))
    # No index has these expressions.
    named = exists().where(_NAMED.event_id == _R.event_id, _NAMED.machine_key.concat("") == machine_key)
    return or_(_R.machine_key.concat("") == machine_key, named)
