"""Whether work may be announced now: orders and rollouts both ask here, and get the reasons as data.

Rule 4 keeps update domains apart, windows say when a project may be disturbed, budgets how many machines
of a group may be. What keeps work from starting as well as from being announced, a hold, is in `holds`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.admission import budgets
from forewarn.core.admission.timing import Timing
from forewarn.core.model.budget import Budget
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.waiting import Waiting
from forewarn.core.words import GroupName


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Work that is to be announced; what it is exempt from is empty."""

    host: str  # as its reasons name it
    footprint: Footprint
    listed: Mapping[GroupName, Collection[int]]  # the update domains with an event
    budgets: Mapping[GroupName, Budget]
    timing: Timing


def why_not(proposal: Proposal, *, now: datetime) -> tuple[Waiting, ...]:
    """Return all that keeps work from being announced; nothing if it may be."""
    return (
        *other_domains(proposal.footprint, proposal.listed),
        *proposal.timing.why_not_announce(proposal.host, now=now),
        *budgets.lacking(proposal.host, proposal.footprint, proposal.budgets),
    )


def other_domains(footprint: Footprint, listed: Mapping[GroupName, Collection[int]]) -> tuple[Waiting, ...]:
    """Return the groups with another update domain listed (rule 4): guests drain at the announcement."""
    found = []
    for group in footprint.counts:
        mine = footprint.first_domain(group)
        if others := set(listed.get(group, ())) - {mine}:
            reason = f"update domain {mine} waits for domain {min(others)}"
            found.append(Waiting(what=group, reason=reason, group=group))
    return tuple(found)


def check(proposal: Proposal, *, what: str, now: datetime) -> None:
    """Refuse what could only wait for ever: windows that never open, a group that can never spare so many."""
    proposal.timing.check(what, now=now)
    budgets.check(proposal.host, proposal.footprint, proposal.budgets)
