"""Fitting update domains to the hosts that machines are on: what that would change, and in which parts."""

from dataclasses import dataclass

from forewarn.control import naming
from forewarn.control.fleet.applying_fleet import AT_ONCE, CheckedFleet
from forewarn.control.use_case import FleetReading
from forewarn.core.copies import replace
from forewarn.core.errors import Conflict
from forewarn.core.fleet import applying, machines
from forewarn.core.fleet.parts import DeclaredMachine, FleetPart, cut
from forewarn.core.model.slice import Slice
from forewarn.core.rollouts.domain_fitting import FittedDomains, fit
from forewarn.core.words import GroupKind, GroupName, NameKind

# A refusal names no more machines than a person reads.
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDomains:
    """Update domains that could be applied when they were looked at."""

    fitted: FittedDomains
    fleet: CheckedFleet


class DomainDryRuns(FleetReading):
    """What shows how update domains would follow the hosts."""

    def domains(self, group: GroupName | None, *, by: str) -> CheckedDomains:
        """Fit the update domains of all groups, or of one, to the hosts; nothing is saved."""
        with self._store.read() as snapshot:
            base = snapshot.rules.everything()
            if group is not None and not _is_declared(base, group):
                raise naming.unknown(NameKind.GROUP, group)
        fitted = fit(base.machines.values(), base.groups, only=group)
        _refuse_while_announced(base, fitted)
        whole = FleetPart(
            machines=tuple(
                DeclaredMachine(
                    spec=replace(
                        machines.spec_of(base.machines[id_], base.groups[base.machines[id_].group]),
                        update_domain=domain,
                    ),
                    known=id_,
                )
                for id_, domain in fitted.domains.items()
            )
        )
        changes = tuple(applying.apply(self._draft(base), whole, by=by))
        return CheckedDomains(
            fitted=fitted, fleet=CheckedFleet(changes=changes, parts=cut(whole, base, at_once=AT_ONCE))
        )


def _is_declared(base: Slice, group: GroupName) -> bool:
    return group in base.groups and base.groups[group].kind is not GroupKind.STANDALONE


def _refuse_while_announced(base: Slice, fitted: FittedDomains) -> None:
    """Refuse to change machines that an open event names: guests know them under the present domains."""
    named = {each.machine: each.name for event in base.events.values() for each in event.resources}
    names = sorted(name for id_, name in named.items() if id_ in fitted.domains)
    if names:
        shown = ", ".join(f'"{name}"' for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise Conflict(
            f"update domains of {shown}{more} would change, and open events name them: "
            "wait until those are over, or fit another group alone (group)"
        )
