"""Whether work may be announced now: update domains, windows, and as many healthy machines as budgets need.

Orders and rollouts both ask here, and get the reasons as data.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.admission.timing import Timing
from forewarn.core.basic_types import GroupName, MachineName
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.constraints import ArmedDomain, Budget, Waiting
from forewarn.core.model.footprint import Footprint

# Hosts that a refusal names; the others are counted.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Work that is to be announced; what it is exempt from is empty."""

    host: str  # as its reasons name it
    footprint: Footprint
    armed: Mapping[GroupName, Mapping[int, ArmedDomain]]  # the update domains with an armed event
    budgets: Mapping[GroupName, Budget]
    timing: Timing
    whole: bool = False  # it is done to the host in one go, or not at all


def why_not(proposal: Proposal, *, now: datetime) -> tuple[Waiting, ...]:
    """Return all that keeps work from being announced; nothing if it may be."""
    return (
        *divided(proposal),
        *other_domains(proposal.footprint, proposal.armed),
        *proposal.timing.why_not_announce(proposal.host, now=now),
        *lacking(proposal.host, proposal.footprint, proposal.budgets),
    )


def divided(proposal: Proposal) -> tuple[Waiting, ...]:
    """Return the groups that keep a host from being done in one go: it carries several of their domains."""
    if not proposal.whole or proposal.footprint.at_once:
        return ()
    return tuple(
        Waiting(
            what=group,
            reason=f"{proposal.host} carries its update domains {_listing(domains)}, which are not disturbed "
            "together: move machines away, or order it anew in parts or together",
            group=group,
            stuck=True,
        )
        for group, domains in proposal.footprint.divided.items()
    )


def other_domains(
    footprint: Footprint, armed: Mapping[GroupName, Mapping[int, ArmedDomain]], *, named: bool = False
) -> tuple[Waiting, ...]:
    """Return the groups with another update domain armed (rule 4), and whose order that is, if asked."""
    waiting = (
        _frozen(group, footprint, armed[group], named=named)
        if group in footprint.free
        else _apart(group, footprint, armed[group], named=named)
        for group in footprint.counts
        if group in armed
    )
    return tuple(wait for wait in waiting if wait is not None)


def _apart(
    group: GroupName, footprint: Footprint, armed: Mapping[int, ArmedDomain], *, named: bool
) -> Waiting | None:
    mine = footprint.first_domains(group)
    # Of several that are disturbed together, each is another one to whatever is armed.
    others = armed.keys() - (mine if len(mine) == 1 else set())
    if not others:
        return None
    first = min(others)
    whose = _whose(armed[first], named=named)
    if len(mine) == 1:
        reason = f"update domain {min(mine)} waits for domain {first}{whose}"
    else:  # which may be one of its own: others may be at that too
        of_another = whose or " of another order"
        reason = (
            f"update domains {_listing(sorted(mine))}, done together, wait for domain {first}{of_another}"
        )
    return Waiting(what=group, reason=reason, group=group)


def _frozen(
    group: GroupName, footprint: Footprint, armed: Mapping[int, ArmedDomain], *, named: bool
) -> Waiting | None:
    """Return what keeps machines whose update domains do not count: only so many are frozen at once."""
    most = footprint.free[group]
    if most is None:
        return None
    other = next((domain for domain, each in armed.items() if each.events > each.freezes), None)
    if other is not None:
        reason = f"a Freeze waits for domain {other}{_whose(armed[other], named=named)}"
        return Waiting(what=group, reason=reason, group=group)
    frozen = sum(each.frozen for each in armed.values())
    if not frozen or frozen + footprint.together(group) <= most:
        return None
    reason = f"lets {most} be frozen at once, and {frozen} are or soon will be"
    return Waiting(what=group, reason=reason, group=group)


def _whose(armed: ArmedDomain, *, named: bool) -> str:
    return f" (order {armed.order})" if named and armed.order else ""


def check(proposal: Proposal, *, what: str, now: datetime) -> None:
    """Refuse what could only wait for ever: windows that never open, a group that can never spare so many.

    Refuse also a host that is to be done in one go and cannot be, before anybody is told of it.
    """
    check_undivided([proposal])
    proposal.timing.check(what, now=now)
    check_budgets(proposal.host, proposal.footprint, proposal.budgets)


IN_ONE_GO = (
    "in one go they would be disturbed together. Do it in parts (without --whole, a gate with --one-by-one "
    'for a command that treats machines; over the API without "whole"), or say why they may be disturbed '
    'together all the same (--together REASON; "together")'
)


def check_undivided(proposals: Iterable[Proposal], *, otherwise: str = IN_ONE_GO) -> None:
    """Refuse hosts that are to be done in one go and carry several update domains of a group."""
    found = [_carried(proposal) for proposal in proposals if divided(proposal)]
    if not found:
        return
    more = f" (and {len(found) - MOST_NAMED} more hosts)" if len(found) > MOST_NAMED else ""
    raise Conflict(f"{'; '.join(found[:MOST_NAMED])}{more}: {otherwise}")


def _carried(proposal: Proposal) -> str:
    groups = proposal.footprint.divided.items()
    domains = ", ".join(f"{_listing(domains)} of group {group}" for group, domains in groups)
    return f"{proposal.host} carries update domains {domains}"


def _listing(domains: Sequence[int]) -> str:
    *most, last = map(str, domains)
    return f"{', '.join(most)} and {last}" if most else last


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


def check_budgets(host: str, footprint: Footprint, budgets: Mapping[GroupName, Budget]) -> None:
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
