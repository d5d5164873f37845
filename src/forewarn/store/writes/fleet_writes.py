"""Saving projects, hosts, groups and machines."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Integer, bindparam, delete, insert, select, update

from forewarn.core.errors import Conflict
from forewarn.core.model.changes import Changes
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.words import GroupName, HostName
from forewarn.store import tables
from forewarn.store.reads.reader import among, chunks
from forewarn.store.rows.stored import GROUPS, HOLDS, HOSTS, MACHINES, PROJECTS, name_key
from forewarn.store.rows.times import micros_or_none
from forewarn.store.writes.writer import Writer

_G = tables.groups.c
_AS_LOADED = (_G.name == bindparam("loaded_name"), _G.version == bindparam("loaded_version"))
_UPDATE_GROUP = update(tables.groups).where(*_AS_LOADED)
_DELETE_GROUP = delete(tables.groups).where(*_AS_LOADED)
_VERSIONS = among(select(_G.name, _G.version), _G.name)

_M = tables.machines.c
# No name begins with a space, so this one is free.
_RELEASE = (
    update(tables.machines)
    .where(_M.id.in_(bindparam("keys", expanding=True)))
    .values(key=" " + _M.id, address=None, port=None)
)
_H = tables.hosts.c
_COUNT_CARRIED = (
    update(tables.hosts)
    .where(_H.name == bindparam("host_name"))
    .values(carried=_H.carried + bindparam("more", type_=Integer))
)


class FleetWrites(Writer):
    """Writes to projects, hosts, holds, groups and machines."""

    def _save_fleet(self, changes: Changes, *, number: int) -> None:
        # Removed first: what comes in may take the name or the address of what goes.
        gone = [machine.lower() for machine in changes.removed_machines]
        self._delete(tables.machines.c.id, gone)
        self._delete(tables.machine_activity.c.machine_id, gone)
        self._save(PROJECTS, changes.projects)
        self._save(HOSTS, changes.hosts, keep=("carried",))
        self._save(HOLDS, changes.holds)
        self._delete(tables.holds.c.id, changes.removed_holds)
        self._save_groups(changes.groups, number=number)
        self._save_machines(changes, number=number)
        self._count_carried(changes.carried)
        self._remove_groups(changes.removed_groups)
        self._delete(tables.hosts.c.name, changes.removed_hosts)
        self._delete(tables.projects.c.name, changes.removed_projects)

    def _count_carried(self, counts: Mapping[HostName, int]) -> None:
        rows = [{"host_name": host, "more": more} for host, more in counts.items()]
        if rows:
            self._connection.execute(_COUNT_CARRIED, rows)

    def _save_groups(self, groups: Sequence[Group], *, number: int) -> None:
        new, known = [], []
        for group in groups:
            loaded = self._versions.get(group.name)
            row = GROUPS.write(group) | {"version": (loaded or 0) + 1, "changed": number}
            if loaded is None:
                new.append(row)
            else:
                known.append(row | {"loaded_name": group.name, "loaded_version": loaded})
        if new:
            self._connection.execute(insert(tables.groups), new)
        if known and self._connection.execute(_UPDATE_GROUP, known).rowcount != len(known):
            raise self._overtaken([row["loaded_name"] for row in known])
        self._versions.update({row["name"]: row["version"] for row in (*new, *known)})
        self._follow_enabled(groups)

    def _follow_enabled(self, groups: Sequence[Group]) -> None:
        """Begin or end the activity of groups that are enabled or disabled with this."""
        began = [group for group in groups if group.enabled and group.name not in self._enabled]
        ended = {group.name for group in groups if not group.enabled} & self._enabled
        self._put(
            tables.group_activity,
            [{"group_name": group.name, "last_active": micros_or_none(group.enabled_at)} for group in began],
        )
        self._delete(tables.group_activity.c.group_name, sorted(ended))
        self._enabled.update(group.name for group in began)
        self._enabled -= ended

    def _remove_groups(self, names: Sequence[GroupName]) -> None:
        rows = [{"loaded_name": name, "loaded_version": self._versions.get(name)} for name in names]
        if rows and self._connection.execute(_DELETE_GROUP, rows).rowcount != len(rows):
            raise self._overtaken(names)
        self._delete(tables.group_activity.c.group_name, sorted(self._enabled.intersection(names)))
        self._enabled.difference_update(names)
        for name in names:
            del self._versions[name]

    def _overtaken(self, names: Sequence[GroupName]) -> Conflict:
        saved = {row[0]: row[1] for row in self._among(_VERSIONS, names)}
        # Those that were updated just now are one ahead of what was loaded.
        loaded = {name: self._versions.get(name, 0) for name in names}
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
        rows = [MACHINES.write(machine) | {"changed": number} for machine in changes.machines]
        self._put(tables.machines, rows)


def _claims(machine: Machine) -> tuple[object, ...]:
    """Return what no two machines may have at once."""
    return name_key(machine.name), machine.project, machine.network, machine.address, machine.port
