"""Saving projects, hosts, groups and machines, removals of them, and when guests polled."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Integer, bindparam, delete, insert, select, update

from forewarn.core.basic_types import GroupName, MachineId
from forewarn.core.errors import Conflict
from forewarn.core.model.changes import Changes
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.store import tables
from forewarn.store.key_lists import chunks, for_keys, key_list, one_of
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.rows.mapping import Columns, micros, micros_or_none
from forewarn.store.rows.stored import GROUPS, HOLDS, HOSTS, MACHINES, PROJECTS, name_key
from forewarn.store.writes.writer import MUST_MATCH, delete_rows, insertion, put, put_rows

# The kind of the tombstones of hosts, which are kept because the reasons of old records name hosts.
REMOVED_HOSTS = "hosts"

_G = tables.groups.c
_AS_LOADED = (_G.name == bindparam("loaded_name"), _G.version == bindparam("loaded_version"))
# All fields that stay the same when only the document of a group changes.
_UNCHANGED_BY_EVENTS = attrgetter(*(each.name for each in fields(Group) if each.name != "incarnation"))
_UPDATE_GROUP = update(tables.groups).where(*_AS_LOADED).execution_options(**{MUST_MATCH: True})
_INSERT_GROUP = insert(tables.groups)
_DELETE_GROUP = delete(tables.groups).where(*_AS_LOADED)
_VERSIONS = for_keys(select(_G.name, _G.version), _G.name)

_M = tables.machines.c
# No name begins with a space, so this key is free.
_RELEASE = (
    update(tables.machines)
    .where(one_of(_M.id, key_list("keys")))
    .values(key=" " + _M.id, address=None, port=None)
)
# All fields that stay the same when work moves a machine or changes its state.
_UNCHANGED_BY_WORK = attrgetter(
    *(each.name for each in fields(Machine) if each.name not in ("state", "host", "last_host", "bound_for"))
)
_MOVE_MACHINE = update(tables.machines).where(_M.id == bindparam("this_id"))
_H = tables.hosts.c
_COUNT_CARRIED = (
    update(tables.hosts)
    .where(_H.name == bindparam("host_name"))
    .values(carried=_H.carried + bindparam("more", type_=Integer))
)


def save_fleet(tx: OpenTransaction, changes: Changes, *, number: int) -> None:
    """Save the changes to the declared fleet under a number of the feed."""
    # Removals first: a new machine may take the name or the address of a removed one.
    removed = [machine.lower() for machine in changes.removed_machines]
    delete_rows(tx, _M.id, removed)
    delete_rows(tx, tables.machine_activity.c.machine_id, removed)
    put(tx, PROJECTS, changes.projects)
    put(tx, HOSTS, changes.hosts, keep=("carried",))
    put(tx, HOLDS, changes.holds)
    delete_rows(tx, tables.holds.c.id, changes.removed_holds)
    _save_groups(tx, changes.groups, number=number)
    _save_machines(tx, changes, number=number)
    counts = [{"host_name": host, "more": more} for host, more in changes.carried.items()]
    if counts:
        tx.connection.execute(_COUNT_CARRIED, counts)
    if changes.removed_groups:
        _remove_groups(tx, changes.removed_groups)
    delete_rows(tx, _H.name, changes.removed_hosts)
    delete_rows(tx, tables.projects.c.name, changes.removed_projects)


def _save_groups(tx: OpenTransaction, groups: Sequence[Group], *, number: int) -> None:
    new: list[Columns] = []
    new_documents: list[Columns] = []
    others: list[Columns] = []
    for group in groups:
        version, before = tx.versions.get(group.name), tx.groups.get(group.name)
        numbers = {"version": (version or 0) + 1, "changed": number}
        as_loaded = {"loaded_name": group.name, "loaded_version": version}
        if version is None:
            new.append(GROUPS.write(group) | numbers)
        elif before is not None and _UNCHANGED_BY_EVENTS(before) == _UNCHANGED_BY_EVENTS(group):
            new_documents.append({"incarnation": group.incarnation} | numbers | as_loaded)
        else:
            others.append(GROUPS.write(group) | numbers | as_loaded)
    if new:
        tx.connection.execute(_INSERT_GROUP, new)
    for rows in filter(None, (new_documents, others)):
        if tx.batch.postpone is not None:
            tx.batch.postpone(_UPDATE_GROUP, rows)
        elif tx.connection.execute(_UPDATE_GROUP, rows).rowcount != len(rows):
            raise _overtaken(tx, [row["loaded_name"] for row in rows])
    tx.versions.update({group.name: tx.versions.get(group.name, 0) + 1 for group in groups})
    tx.groups.update((group.name, group) for group in groups)
    _save_enabled(tx, groups)


def _save_enabled(tx: OpenTransaction, groups: Sequence[Group]) -> None:
    """Add or remove the activity of groups that were enabled or disabled."""
    began = [group for group in groups if group.enabled and group.name not in tx.enabled]
    ended = {group.name for group in groups if not group.enabled} & tx.enabled
    put_rows(
        tx,
        tables.group_activity,
        [{"group_name": group.name, "last_active": micros_or_none(group.enabled_at)} for group in began],
    )
    delete_rows(tx, tables.group_activity.c.group_name, sorted(ended))
    tx.enabled.update(group.name for group in began)
    tx.enabled -= ended


def _remove_groups(tx: OpenTransaction, names: Sequence[GroupName]) -> None:
    rows = [{"loaded_name": name, "loaded_version": tx.versions.get(name)} for name in names]
    if tx.connection.execute(_DELETE_GROUP, rows).rowcount != len(rows):
        raise _overtaken(tx, names)
    delete_rows(tx, tables.group_activity.c.group_name, sorted(tx.enabled.intersection(names)))
    tx.enabled.difference_update(names)
    for name in names:
        del tx.versions[name]
        tx.groups.pop(name, None)


def _overtaken(tx: OpenTransaction, names: Sequence[GroupName]) -> Conflict:
    saved = {row[0]: row[1] for row in tx.rows_for(_VERSIONS, names)}
    # Groups that this statement did update are one version ahead of the loaded one.
    loaded = {name: tx.versions.get(name, 0) for name in names}
    lost = [name for name in names if saved.get(name, 0) not in (loaded[name], loaded[name] + 1)]
    return Conflict(f'another call changed group "{min(lost or names)}": try again')


def _save_machines(tx: OpenTransaction, changes: Changes, *, number: int) -> None:
    # Machines may swap names, addresses or ports, so all of these are released first.
    claiming = [
        each.id.lower()
        for each in changes.machines
        if each.id in changes.machines_before and _unique(each) != _unique(changes.machines_before[each.id])
    ]
    for chunk in chunks(claiming if len(changes.machines) > 1 else ()):
        tx.connection.execute(_RELEASE, {"keys": chunk})
    moved: list[Columns] = []
    others: list[Columns] = []
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        if before is not None and _UNCHANGED_BY_WORK(before) == _UNCHANGED_BY_WORK(machine):
            moved.append(_moved(machine, number))
        else:
            others.append(MACHINES.write(machine) | {"changed": number})
    put_rows(tx, tables.machines, others)
    if moved:
        tx.connection.execute(_MOVE_MACHINE, moved)


def _moved(machine: Machine, number: int) -> Columns:
    """Return the columns that work changes."""
    return {
        "this_id": machine.id.lower(),
        "state": machine.state.value,
        "host": machine.host,
        "last_host": machine.last_host,
        "bound_for": machine.bound_for,
        "place": machine.destination,
        "changed": number,
    }


def _unique(machine: Machine) -> tuple[object, ...]:
    """Return the values that only one machine may have."""
    return name_key(machine.name), machine.project, machine.network, machine.address, machine.port


# Tombstones of removed things, for readers of the feed

# The kinds that the feed reports. Tombstones of hosts are never removed.
IN_THE_FEED = ("machines", "groups")
# Readers of the feed are rarely more than a few numbers behind. A reader that is further reads everything
# again.
KEPT_NUMBERS = 100_000
# A limit, so that the removal of one machine never takes long. It exceeds the number that is added meanwhile.
MOST_AT_ONCE = 1_000

_T = tables.tombstones.c
_OLDEST = (
    select(_T.key, _T.number)
    .where(_T.kind == bindparam("of"), _T.number <= bindparam("up_to"))
    .order_by(_T.number)
    .limit(MOST_AT_ONCE)
)
_FORGET = delete(tables.tombstones).where(_T.kind == bindparam("of"), _T.key == bindparam("gone"))


def save_tombstones(tx: OpenTransaction, changes: Changes, *, number: int) -> int:
    """Save what is removed, delete old tombstones, and return the number up to which some are missing."""
    forgotten = tx.meta.forgotten
    removed = {
        "machines": [machine.lower() for machine in changes.removed_machines],
        "groups": changes.removed_groups,
        REMOVED_HOSTS: changes.removed_hosts,
    }
    rows = [{"kind": kind, "key": key, "number": number} for kind, keys in removed.items() for key in keys]
    put_rows(tx, tables.tombstones, rows)
    if changes.removed_machines or changes.removed_groups:
        for kind in IN_THE_FEED:
            old = tx.rows(_OLDEST, {"of": kind, "up_to": number - KEPT_NUMBERS})
            if old:
                tx.connection.execute(_FORGET, [{"of": kind, "gone": key} for key, _ in old])
                forgotten = max(forgotten, *(number_ for _, number_ in old))
    return forgotten


# When groups and machines last polled: saved without the lock of writers, and only ever moved forward

_POLLED_GROUPS, _POLLED_MACHINES = tables.group_activity.c, tables.machine_activity.c
_SEEN = bindparam("seen", type_=tables.TIME)
# Groups that are not enabled have no row, and get none.
_SAVE_GROUP = (
    update(tables.group_activity)
    .where(_POLLED_GROUPS.group_name == bindparam("group"), _POLLED_GROUPS.last_active < _SEEN)
    .values(last_active=_SEEN)
)


def save_activity(
    connection: Connection, groups: Mapping[GroupName, datetime], machines: Mapping[MachineId, datetime]
) -> None:
    """Save the last polls of groups and machines; removed ones are ignored."""
    # Sorted, so that two processes that save the same rows do not deadlock.
    if groups:
        group_rows = [{"group": group, "seen": micros(groups[group])} for group in sorted(groups)]
        connection.execute(_SAVE_GROUP, group_rows)
    if machines:
        seen = {machine.lower(): micros(at) for machine, at in machines.items()}
        machine_rows = [{"machine": machine, "seen": seen[machine]} for machine in sorted(seen)]
        connection.execute(_save_machine(connection.dialect.name), machine_rows)


@cache
def _save_machine(dialect: str) -> Any:
    known = select(tables.machines.c.id, _SEEN).where(tables.machines.c.id == bindparam("machine"))
    statement = insertion(dialect, tables.machine_activity).from_select(["machine_id", "last_seen"], known)
    newer = statement.excluded.last_seen
    return statement.on_conflict_do_update(
        index_elements=["machine_id"], set_={"last_seen": newer}, where=_POLLED_MACHINES.last_seen < newer
    )
