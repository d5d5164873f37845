"""Saving projects, hosts, groups and machines: what is declared, what was removed, and who has polled."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Integer, bindparam, delete, insert, select, update

from forewarn.core.basic_types import GroupName, HostName, MachineId
from forewarn.core.errors import Conflict
from forewarn.core.model.changes import Changes
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_of
from forewarn.store.reads.reader import Reader, among, chunks
from forewarn.store.rows.mapping import Columns, micros, micros_or_none
from forewarn.store.rows.stored import GROUPS, HOLDS, HOSTS, MACHINES, PROJECTS, name_key
from forewarn.store.writes.writer import delete_rows, insertion, postponed, put, put_rows

# What a host that is removed leaves behind: old reasons name it.
REMOVED_HOSTS = "hosts"

_G = tables.groups.c
_AS_LOADED = (_G.name == bindparam("loaded_name"), _G.version == bindparam("loaded_version"))
# All that stays as it is when guests are told something.
_UNTOLD = attrgetter(*(each.name for each in fields(Group) if each.name != "incarnation"))
_UPDATE_GROUP = update(tables.groups).where(*_AS_LOADED)
_INSERT_GROUP = insert(tables.groups)
_DELETE_GROUP = delete(tables.groups).where(*_AS_LOADED)
_VERSIONS = among(select(_G.name, _G.version), _G.name)

_M = tables.machines.c
# No name begins with a space, so this one is free.
_RELEASE = (
    update(tables.machines)
    .where(one_of(_M.id, key_list("keys")))
    .values(key=" " + _M.id, address=None, port=None)
)
# All that work leaves as it is.
_DECLARED = attrgetter(
    *(each.name for each in fields(Machine) if each.name not in ("state", "host", "last_host", "bound_for"))
)
_MOVE_MACHINE = update(tables.machines).where(_M.id == bindparam("this_id"))
_H = tables.hosts.c
_COUNT_CARRIED = (
    update(tables.hosts)
    .where(_H.name == bindparam("host_name"))
    .values(carried=_H.carried + bindparam("more", type_=Integer))
)


class FleetWrites(Reader):
    """Writes to projects, hosts, holds, groups and machines."""

    def save(self, changes: Changes, *, number: int) -> None:
        """Save what changed of the declared fleet, by a number of the feed."""
        # Removed first: what comes in may take the name or the address of what goes.
        gone = [machine.lower() for machine in changes.removed_machines]
        delete_rows(self._connection, tables.machines.c.id, gone)
        delete_rows(self._connection, tables.machine_activity.c.machine_id, gone)
        put(self._connection, PROJECTS, changes.projects)
        put(self._connection, HOSTS, changes.hosts, keep=("carried",))
        put(self._connection, HOLDS, changes.holds)
        delete_rows(self._connection, tables.holds.c.id, changes.removed_holds)
        self._save_groups(changes.groups, number=number)
        self._save_machines(changes, number=number)
        self._count_carried(changes.carried)
        self._remove_groups(changes.removed_groups)
        delete_rows(self._connection, tables.hosts.c.name, changes.removed_hosts)
        delete_rows(self._connection, tables.projects.c.name, changes.removed_projects)

    def _count_carried(self, counts: Mapping[HostName, int]) -> None:
        rows = [{"host_name": host, "more": more} for host, more in counts.items()]
        if rows:
            self._connection.execute(_COUNT_CARRIED, rows)

    def _save_groups(self, groups: Sequence[Group], *, number: int) -> None:
        new: list[Columns] = []
        told: list[Columns] = []
        others: list[Columns] = []
        for group in groups:
            version, before = (
                self._transaction.versions.get(group.name),
                self._transaction.groups.get(group.name),
            )
            numbers = {"version": (version or 0) + 1, "changed": number}
            as_loaded = {"loaded_name": group.name, "loaded_version": version}
            if version is None:
                new.append(GROUPS.write(group) | numbers)
            elif before is not None and _UNTOLD(before) == _UNTOLD(group):
                told.append({"incarnation": group.incarnation} | numbers | as_loaded)
            else:
                others.append(GROUPS.write(group) | numbers | as_loaded)
        if new:
            self._connection.execute(_INSERT_GROUP, new)
        for known in (told, others):
            self._update_groups(known)
        self._transaction.versions.update(
            {group.name: self._transaction.versions.get(group.name, 0) + 1 for group in groups}
        )
        self._transaction.groups.update((group.name, group) for group in groups)
        self._follow_enabled(groups)

    def _update_groups(self, rows: Sequence[Columns]) -> None:
        if not rows or postponed(self._connection, _UPDATE_GROUP, rows, changing=True):
            return
        if self._connection.execute(_UPDATE_GROUP, rows).rowcount != len(rows):
            raise self._overtaken([row["loaded_name"] for row in rows])

    def _follow_enabled(self, groups: Sequence[Group]) -> None:
        """Begin or end the activity of groups that are enabled or disabled with this."""
        began = [group for group in groups if group.enabled and group.name not in self._transaction.enabled]
        ended = {group.name for group in groups if not group.enabled} & self._transaction.enabled
        put_rows(
            self._connection,
            tables.group_activity,
            [{"group_name": group.name, "last_active": micros_or_none(group.enabled_at)} for group in began],
        )
        delete_rows(self._connection, tables.group_activity.c.group_name, sorted(ended))
        self._transaction.enabled.update(group.name for group in began)
        self._transaction.enabled -= ended

    def _remove_groups(self, names: Sequence[GroupName]) -> None:
        rows = [
            {"loaded_name": name, "loaded_version": self._transaction.versions.get(name)} for name in names
        ]
        if rows and self._connection.execute(_DELETE_GROUP, rows).rowcount != len(rows):
            raise self._overtaken(names)
        delete_rows(
            self._connection,
            tables.group_activity.c.group_name,
            sorted(self._transaction.enabled.intersection(names)),
        )
        self._transaction.enabled.difference_update(names)
        for name in names:
            del self._transaction.versions[name]
            self._transaction.groups.pop(name, None)

    def _overtaken(self, names: Sequence[GroupName]) -> Conflict:
        saved = {row[0]: row[1] for row in self._among(_VERSIONS, names)}
        # Those that were updated just now are one ahead of what was loaded.
        loaded = {name: self._transaction.versions.get(name, 0) for name in names}
        lost = [name for name in names if saved.get(name, 0) not in (loaded[name], loaded[name] + 1)]
        return Conflict(f'group "{min(lost or names)}" was changed by somebody else: try again')

    def _save_machines(self, changes: Changes, *, number: int) -> None:
        # Machines that are given others' names, addresses or ports may swap them: all are freed first.
        claiming = [
            each.id.lower()
            for each in changes.machines
            if each.id in changes.machines_before
            and _claims(each) != _claims(changes.machines_before[each.id])
        ]
        for chunk in chunks(claiming if len(changes.machines) > 1 else ()):
            self._connection.execute(_RELEASE, {"keys": chunk})
        moved: list[Machine] = []
        others: list[Machine] = []
        for machine in changes.machines:
            before = changes.machines_before.get(machine.id)
            same = before is not None and _DECLARED(before) == _DECLARED(machine)
            (moved if same else others).append(machine)
        put_rows(
            self._connection,
            tables.machines,
            [MACHINES.write(machine) | {"changed": number} for machine in others],
        )
        if moved:
            self._connection.execute(_MOVE_MACHINE, [_moved(machine, number) for machine in moved])


def _moved(machine: Machine, number: int) -> Columns:
    """Write of a machine only what work does to it."""
    return {
        "this_id": machine.id.lower(),
        "state": machine.state.value,
        "host": machine.host,
        "last_host": machine.last_host,
        "bound_for": machine.bound_for,
        "place": machine.destination,
        "changed": number,
    }


def _claims(machine: Machine) -> tuple[object, ...]:
    """Return what no two machines may have at once."""
    return name_key(machine.name), machine.project, machine.network, machine.address, machine.port


# What was removed: kept for readers of the feed, and forgotten when they have had time to learn of it

# What is told by the feed. Names of removed hosts are kept: reasons in old records have them.
TOLD = ("machines", "groups")
# Those who follow the feed are seldom more than some numbers behind; one that is further reads all again.
KEPT_NUMBERS = 100_000
# So that to remove one machine never takes long. More come to be forgotten than are removed meanwhile.
MOST_AT_ONCE = 1_000

_T = tables.tombstones.c
_OLDEST = (
    select(_T.key, _T.number)
    .where(_T.kind == bindparam("of"), _T.number <= bindparam("up_to"))
    .order_by(_T.number)
    .limit(MOST_AT_ONCE)
)
_FORGET = delete(tables.tombstones).where(_T.kind == bindparam("of"), _T.key == bindparam("gone"))


class Tombstones(Reader):
    """Writes what was removed."""

    def bury(self, changes: Changes, *, number: int) -> int:
        """Keep what is removed, and forget what was long ago; return up to which number that may be so."""
        forgotten = self._meta.forgotten
        machines = [machine.lower() for machine in changes.removed_machines]
        self._leave("machines", machines, number=number)
        self._leave("groups", changes.removed_groups, number=number)
        self._leave(REMOVED_HOSTS, changes.removed_hosts, number=number)
        if changes.removed_machines or changes.removed_groups:
            forgotten = max(forgotten, *(self._forget(kind, up_to=number - KEPT_NUMBERS) for kind in TOLD))
        return forgotten

    def _leave(self, kind: str, keys: Iterable[str], *, number: int) -> None:
        rows = [{"kind": kind, "key": key, "number": number} for key in keys]
        put_rows(self._connection, tables.tombstones, rows)

    def _forget(self, kind: str, *, up_to: int) -> int:
        """Forget the oldest removals of a kind; return the number of the newest of them."""
        rows = self._all(_OLDEST, {"of": kind, "up_to": up_to})
        if rows:
            self._connection.execute(_FORGET, [{"of": kind, "gone": key} for key, _ in rows])
        return max((number for _, number in rows), default=0)


# When groups and machines last polled: apart from all else, and never older over newer

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
    """Save the newest polls of groups and of machines; those that are gone are passed over."""
    # In their order, so that two that save the same ones wait for each other, and not both for ever.
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
