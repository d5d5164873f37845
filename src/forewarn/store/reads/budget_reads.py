"""Reading how many healthy machines groups need, and how they are."""

from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import func, select

from forewarn.core.model.constraints import Budget
from forewarn.core.model.event import Resource
from forewarn.core.model.group import Group
from forewarn.core.words import GroupName, MachineId, MachineName, MachineState
from forewarn.store import tables
from forewarn.store.reads.reader import Reader, among
from forewarn.store.rows.stored import STORED

_M, _E = tables.machines.c, tables.events.c
GROUP_SIZES = among(select(_M.group_name, func.count()), _M.group_name).group_by(_M.group_name)
_NAMED = among(select(_E.group_name, _E.resources), tables.GROUP_OF_LISTED_EVENT).where(
    tables.COUNTED_TYPE, _E.armed_at.is_not(None)
)
_DOWN = among(select(_M.group_name, _M.id, _M.name), _M.group_name).where(
    _M.state != MachineState.RUNNING.value
)


class BudgetReads(Reader):
    """The budgets of groups."""

    def load(self, groups: Iterable[Group]) -> dict[GroupName, Budget]:
        """Count for the groups that ask for healthy machines: only they cost a query."""
        needs = {group.name: group.policy.budget for group in groups if group.policy.budget > 0}
        if not needs:
            return {}
        sizes = {row[0]: row[1] for row in self._among(GROUP_SIZES, needs)}
        down: dict[GroupName, dict[MachineId, MachineName]] = defaultdict(dict)
        for group, id_, name in self._among(_DOWN, needs):
            down[group][id_] = name
        announced: dict[GroupName, dict[MachineId, MachineName]] = defaultdict(dict)
        for group, resources in self._among(_NAMED, needs):
            announced[group].update(
                (named.machine, named.name) for named in STORED.read(tuple[Resource, ...], resources)
            )
        return {
            group: Budget(
                needs=need, members=sizes.get(group, 0), down=down[group], announced=announced[group]
            )
            for group, need in needs.items()
        }
