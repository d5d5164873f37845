"""Whether groups keep as many healthy machines as they need while work disturbs some of them."""

from collections.abc import Iterable, Mapping

from forewarn.core.errors import Invalid
from forewarn.core.model.constraints import Budget, Waiting
from forewarn.core.model.footprint import Footprint
from forewarn.core.words import GroupName, MachineName

# What a person can do about a host that carries too many machines of a group.
WAYS_OUT = "redeploy some of them to other hosts, add machines to the group, or lower its budget"


def lacking(host: str, footprint: Footprint, budgets: Mapping[GroupName, Budget]) -> tuple[Waiting, ...]:
    """Return the groups that cannot spare what work disturbs of them now, or (`stuck`) can never."""
    return tuple(
        _lack(budget, group, host, footprint)
        for group in footprint.counts
        if (budget := budgets.get(group))
        and footprint.together(group) - footprint.unwell.get(group, 0) > budget.spare
    )


def never_met(footprint: Footprint, budgets: Mapping[GroupName, Budget]) -> dict[GroupName, Budget]:
    """Return the budgets of groups that can never spare what work disturbs of them together."""
    return {
        group: budgets[group]
        for group in footprint.counts
        if group in budgets and footprint.together(group) > budgets[group].at_best
    }


def check(host: str, footprint: Footprint, budgets: Mapping[GroupName, Budget]) -> None:
    """Refuse work on a host that disturbs more of a group together than it can ever spare."""
    for group, budget in never_met(footprint, budgets).items():
        raise Invalid(f"group {group}: {_crowding(budget, group, host, footprint)}: this can never be met")


def _lack(budget: Budget, group: GroupName, host: str, footprint: Footprint) -> Waiting:
    stuck = footprint.together(group) > budget.at_best
    reason = f"{_crowding(budget, group, host, footprint)}: {WAYS_OUT}" if stuck else _missing(budget)
    return Waiting(what=group, reason=reason, group=group, stuck=stuck)


def _crowding(budget: Budget, group: GroupName, host: str, footprint: Footprint) -> str:
    needs = f"needs {budget.needs} healthy of {budget.members}"
    which = "that are done together" if footprint.at_once else "of one update domain"
    return f"{needs}, but {host} carries {footprint.together(group)} {which}"


def _missing(budget: Budget) -> str:
    running = {id_: name for id_, name in budget.announced.items() if id_ not in budget.down}
    missing = [
        f"{_are(names.values())} {how}"
        for names, how in ((budget.down, "down"), (running, "under an event"))
        if names
    ]
    return f"needs {budget.needs} healthy, {', '.join(missing)}"


def _are(names: Iterable[MachineName]) -> str:
    *most, last = sorted(names)
    return f"{', '.join(most)} and {last} are" if most else f"{last} is"
