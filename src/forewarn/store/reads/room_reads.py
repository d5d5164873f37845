"""Reading how full the hosts are that machines could be moved to."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Integer, Select, bindparam, exists, func, select

from forewarn.core.model.budget import Budget
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.model.room import Room
from forewarn.core.words import GroupKind, GroupName, HostName, HostState
from forewarn.store import tables
from forewarn.store.reads.reader import Reader, among, chunks

# Each machine takes one host, not its own; beyond as many as that there is something to choose from. Looking
# at all hosts would find one without the group more often, and cost more the larger the fleet.
TO_CHOOSE_FROM = 32

_H, _M, _O = tables.hosts.c, tables.machines.c, tables.orders.c
_EMPTIEST = (
    select(_H.name, _H.carried, exists().where(_O.host == _H.name, tables.OPEN_ORDER), _H.driver)
    .where(_H.state == HostState.OK.value)
    .order_by(_H.carried, _H.name)
    .limit(bindparam("most", type_=Integer))
)
_OF_DOMAIN = (
    select(func.count())
    .where(
        _M.place == _H.name,
        _M.group_name == bindparam("group"),
        _M.update_domain == bindparam("domain"),
    )
    .scalar_subquery()
)
# Along the same index. What it passes over are hosts that are crowded, and a group has no more of these than
# it has machines: in a larger fleet it takes no longer.
_UNCROWDED = _EMPTIEST.where(bindparam("spare", type_=Integer) > _OF_DOMAIN)
_MEMBERS = (
    among(select(_M.place, _M.group_name, _M.update_domain, func.count()), _M.group_name)
    .where(_M.place.in_(bindparam("hosts", expanding=True)))
    .group_by(_M.place, _M.group_name, _M.update_domain)
)


class RoomReads(Reader):
    """The room there is for machines that move."""

    def for_machines(
        self,
        machines: Collection[Machine],
        groups: Iterable[Group],
        budgets: Mapping[GroupName, Budget],
        *,
        hosts: int,
    ) -> dict[HostName, Room]:
        """Look at the emptiest sound hosts, and at others where too few of these can take more of a group.

        All these machines may move, each to another host than before; `hosts` is how many hosts that is.
        """
        most = len(machines) + hosts + TO_CHOOSE_FROM
        # A machine that stands alone is kept apart from no other.
        listed = [group.name for group in groups if group.kind is not GroupKind.STANDALONE]
        found = self._rooms(_EMPTIEST, {"most": most}, listed)
        if len(found) < most:
            return found  # there are no others
        together = Counter((machine.group, machine.update_domain) for machine in machines)
        for (group, domain), movers in together.items():
            spare = budgets[group].at_best if group in budgets else 0
            uncrowded = sum(room.members.get((group, domain), 0) < spare for room in found.values())
            if spare > 0 and uncrowded < movers + hosts:
                wanted = {"most": most, "group": group, "domain": domain, "spare": spare}
                found |= self._rooms(_UNCROWDED, wanted, listed)
        return found

    def _rooms(
        self, query: Select[Any], wanted: Mapping[str, Any], groups: Collection[GroupName]
    ) -> dict[HostName, Room]:
        """Read hosts, and count there what belongs to these groups."""
        hosts = self._all(query, wanted)
        members: dict[HostName, dict[tuple[GroupName, int], int]] = {}
        for names in chunks(name for name, *_ in hosts):
            for some in chunks(groups):
                rows = self._all(_MEMBERS, {"hosts": names, "keys": some})
                for host, group, domain, count in rows:
                    members.setdefault(host, {})[group, domain] = count
        return {
            HostName(name): Room(
                carried=carried, members=members.get(name, {}), busy=bool(busy), driver=driver
            )
            for name, carried, busy, driver in hosts
        }
