"""Reading how full the hosts are that machines could be moved to."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BindParameter, Integer, bindparam, exists, func, select

from forewarn.core.model import Group
from forewarn.core.room import Room
from forewarn.core.words import GroupKind, GroupName, HostName, HostState
from forewarn.store import tables
from forewarn.store.reading import Reader, chunks

# Each machine takes one host, not its own; beyond as many as that there is something to choose from. Looking
# at all hosts would find one without the group more often, and cost more the larger the fleet.
TO_CHOOSE_FROM = 32

_H, _M, _O = tables.hosts.c, tables.machines.c, tables.orders.c
_GROUPS: BindParameter[Any] = bindparam("keys", expanding=True)
_EMPTIEST = (
    select(_H.name, _H.carried)
    .where(_H.state == HostState.OK.value)
    .order_by(_H.carried, _H.name)
    .limit(bindparam("most", type_=Integer))
    .subquery()
)
_BUSY = exists().where(_O.host == _EMPTIEST.c.name, _O.ended_at.is_(None))
_HOSTS = select(_EMPTIEST.c.name, _EMPTIEST.c.carried, _BUSY)
_MEMBERS = (
    select(_M.place, _M.group_name, _M.update_domain, func.count())
    .join_from(_EMPTIEST, tables.machines, _M.place == _EMPTIEST.c.name)
    .where(_M.group_name.in_(_GROUPS))
    .group_by(_M.place, _M.group_name, _M.update_domain)
)


class Rooms(Reader):
    """The room there is for machines that move."""

    def _room_for(self, groups: Iterable[Group], *, movers: int, hosts: int) -> dict[HostName, Room]:
        """Look at the emptiest sound hosts, and count there what belongs to these groups."""
        most = movers + hosts + TO_CHOOSE_FROM
        # A machine that stands alone is kept apart from nobody.
        names = [group.name for group in groups if group.kind is not GroupKind.STANDALONE]
        members: dict[HostName, dict[tuple[GroupName, int], int]] = {}
        for some in chunks(names):
            rows = self._connection.execute(_MEMBERS, {"most": most, "keys": some})
            for host, group, domain, count in rows:
                members.setdefault(host, {})[group, domain] = count
        return {
            HostName(name): Room(carried=carried, members=members.get(name, {}), busy=bool(busy))
            for name, carried, busy in self._connection.execute(_HOSTS, {"most": most})
        }
