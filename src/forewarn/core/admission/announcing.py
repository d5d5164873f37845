"""Decide whether work may be announced now: update domains, windows and budgets.

Orders and rollouts both use these rules, and get the reasons as data.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.admission.timing import Timing
from forewarn.core.basic_types import GroupName
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.constraints import ArmedDomain, Budget, Waiting
from forewarn.core.model.footprint import Footprint

# A refusal names at most this many hosts, and counts the others.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Work to be announced. The fields of rules that it is exempt from are empty."""

    host: str  # as its reasons name it
    footprint: Footprint
    armed: Mapping[GroupName, Mapping[int, ArmedDomain]]  # the update domains with an armed event
    budgets: Mapping[GroupName, Budget]
    timing: Timing
    whole: bool = False  # the host is treated as a whole, or not at all


def why_not(proposal: Proposal, *, now: datetime) -> tuple[Waiting, ...]:
    """Return everything that prevents the announcement."""
    return (
        *divided(proposal),
        *other_domains(proposal.footprint, proposal.armed),
        *proposal.timing.why_not_announce(proposal.host, now=now),
        *short_budgets(proposal.host, proposal.footprint, proposal.budgets),
    )


def divided(proposal: Proposal) -> tuple[Waiting, ...]:
    """Return the groups with several update domains on a host that is to be treated as a whole."""
    if not proposal.whole or proposal.footprint.at_once:
        return ()
    return tuple(
        Waiting(
            what=group,
            reason=f"{proposal.host} carries its update domains {listing(domains)}, which are not disturbed "
            "together: move machines away, or order the work again in parts or together",
            group=group,
            stuck=True,
        )
        for group, domains in proposal.footprint.divided.items()
    )


def other_domains(
    footprint: Footprint, armed: Mapping[GroupName, Mapping[int, ArmedDomain]], *, named: bool = False
) -> tuple[Waiting, ...]:
    """Return the groups with another armed update domain (rule 4). `named` adds the order that armed it."""
    waiting = (
        (_frozen if group in footprint.free else _apart)(group, footprint, armed[group], named=named)
        for group in footprint.counts
        if group in armed
    )
    return tuple(wait for wait in waiting if wait is not None)


def _apart(
    group: GroupName, footprint: Footprint, armed: Mapping[int, ArmedDomain], *, named: bool
) -> Waiting | None:
    """Return the armed domain that work waits for, if any."""
    mine = footprint.first_domains(group)
    # Work on several domains together waits for every armed domain, even one of its own.
    others = armed.keys() - (mine if len(mine) == 1 else set())
    if not others:
        return None
    first = min(others)
    whose = _order_of(armed[first], named=named)
    if len(mine) == 1:
        reason = f"update domain {min(mine)} waits for domain {first}{whose}"
    else:
        of_another = whose or " of another order"
        reason = f"update domains {listing(sorted(mine))}, done together, wait for domain {first}{of_another}"
    return Waiting(what=group, reason=reason, group=group)


def _frozen(
    group: GroupName, footprint: Footprint, armed: Mapping[int, ArmedDomain], *, named: bool
) -> Waiting | None:
    """Return why a group that limits only the number of simultaneous freezes must wait, if it must."""
    most = footprint.free[group]
    if most is None:
        return None
    other = next((domain for domain, each in armed.items() if each.events > each.freezes), None)
    if other is not None:
        reason = f"a Freeze waits for domain {other}{_order_of(armed[other], named=named)}"
        return Waiting(what=group, reason=reason, group=group)
    frozen = sum(each.frozen for each in armed.values())
    if not frozen or frozen + footprint.together(group) <= most:
        return None
    reason = f"permits {most} freezes at once, and {frozen} of its machines are frozen or soon will be"
    return Waiting(what=group, reason=reason, group=group)


def _order_of(armed: ArmedDomain, *, named: bool) -> str:
    return f" (order {armed.order})" if named and armed.order else ""


def check(proposal: Proposal, *, what: str, now: datetime) -> None:
    """Refuse work that could never be announced.

    A window may never open. A group may never be able to spare this many machines. A host that is to be
    treated as a whole may carry several update domains of a group.
    """
    check_undivided([proposal])
    proposal.timing.check(what, now=now)
    for group, budget in never_met(proposal.footprint, proposal.budgets).items():
        crowding = _crowding(budget, group, proposal.host, proposal.footprint)
        raise Invalid(f"group {group}: {crowding}: this can never be met")


IN_ONE_GO = (
    "as a whole it would disturb them together. Treat it in parts (without --whole, a gate with --one-by-one "
    'for a command that treats machines; over the API without "whole"), or say why they may be disturbed '
    'together nevertheless (--together REASON; "together")'
)


def check_undivided(proposals: Iterable[Proposal], *, otherwise: str = IN_ONE_GO) -> None:
    """Refuse hosts that are to be treated as a whole and carry several update domains of a group."""
    found = []
    for proposal in filter(divided, proposals):
        groups = proposal.footprint.divided.items()
        domains = ", ".join(f"{listing(domains)} of group {group}" for group, domains in groups)
        found.append(f"{proposal.host} carries update domains {domains}")
    if found:
        more = f" (and {len(found) - MOST_NAMED} more hosts)" if len(found) > MOST_NAMED else ""
        raise Conflict(f"{'; '.join(found[:MOST_NAMED])}{more}: {otherwise}")


# The remedies of an operator for a host with too many machines of a group.
WAYS_OUT = "redeploy some of them to other hosts, add machines to the group, or lower its budget"


def short_budgets(
    host: str, footprint: Footprint, budgets: Mapping[GroupName, Budget]
) -> tuple[Waiting, ...]:
    """Return the groups that cannot spare the machines of this work now, or (`stuck`) can never do so."""
    waiting = []
    for group in footprint.counts:
        budget, together = budgets.get(group), footprint.together(group)
        if budget is None or together - footprint.unwell.get(group, 0) <= budget.spare:
            continue
        stuck = together > budget.at_best
        reason = f"{_crowding(budget, group, host, footprint)}: {WAYS_OUT}" if stuck else _missing(budget)
        waiting.append(Waiting(what=group, reason=reason, group=group, stuck=stuck))
    return tuple(waiting)


def never_met(footprint: Footprint, budgets: Mapping[GroupName, Budget]) -> dict[GroupName, Budget]:
    """Return the budgets of groups that can never spare the machines of this work."""
    return {
        group: budgets[group]
        for group in footprint.counts
        if group in budgets and footprint.together(group) > budgets[group].at_best
    }


def _crowding(budget: Budget, group: GroupName, host: str, footprint: Footprint) -> str:
    needs = f"needs {budget.needs} healthy of {budget.members}"
    which = "that are done together" if footprint.at_once else "of one update domain"
    return f"{needs}, but {host} carries {footprint.together(group)} {which}"


def _missing(budget: Budget) -> str:
    running = {id_: name for id_, name in budget.announced.items() if id_ not in budget.down}
    missing = [
        f"{listing(sorted(names.values()))} {'is' if len(names) == 1 else 'are'} {how}"
        for names, how in ((budget.down, "down"), (running, "under an event"))
        if names
    ]
    return f"needs {budget.needs} healthy, {', '.join(missing)}"


def listing(items: Iterable[object]) -> str:
    """Join items for a sentence: `0, 1 and 2`."""
    *most, last = map(str, items)
    return f"{', '.join(most)} and {last}" if most else last
