"""Saving projects, hosts, groups and machines."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter

from sqlalchemy import Integer, bindparam, delete, insert, select, update

from forewarn.core.errors import Conflict
from forewarn.core.model.changes import Changes
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.words import GroupName, HostName
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_of
from forewarn.store.many_rows import execute_many
from forewarn.store.postponed import postponed
from forewarn.store.reads.reader import Reader, among, chunks
from forewarn.store.rows.mapping import Columns
from forewarn.store.rows.stored import GROUPS, HOLDS, HOSTS, MACHINES, PROJECTS, name_key
from forewarn.store.rows.times import micros_or_none
from forewarn.store.writes.writer import delete_rows, put, put_rows

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
            execute_many(self._connection, _COUNT_CARRIED, rows)

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
            execute_many(self._connection, _INSERT_GROUP, new)
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
        if execute_many(self._connection, _UPDATE_GROUP, rows).rowcount != len(rows):
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
            execute_many(self._connection, _MOVE_MACHINE, [_moved(machine, number) for machine in moved])


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
