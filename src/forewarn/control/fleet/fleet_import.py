"""Importing a fleet from a driver that lists what there is: what that would change, and in which parts."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from forewarn.control.fleet.fleet_application import AT_ONCE, CheckedFleet
from forewarn.control.use_case import Reading
from forewarn.core.basic_types import GroupName, HostName, MachineId, ProjectName
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.fleet import applying, importing
from forewarn.core.fleet.found_machines import TAKEN, fit_name, is_unsafe_name
from forewarn.core.fleet.import_terms import ImportTerms
from forewarn.core.fleet.fleet_changes import cut
from forewarn.core.model.found_fleet import FoundFleet, FoundGroup, FoundMachine
from forewarn.core.model.host import Host
from forewarn.core.model.slice import Slice
from forewarn.core.text_formats import counted, hint
from forewarn.wire import fields

T = TypeVar("T")

# What --take may name: fields of machines, and those of hosts and groups that a source tells.
TAKEABLE = (*TAKEN, "driver", "uri", "labels", "kind", "update_domains")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeImport:
    """The fleet before a source is asked, and the hosts that it is asked about."""

    base: Slice
    hosts: Sequence[Host]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedImport:
    """What an import changes, and what it leaves alone."""

    fleet: CheckedFleet
    plan: importing.ImportPlan
    digest: str  # of what was found to change: the same again is the same difference

    @property
    def removes_half(self) -> bool:
        """Whether half of what the source had imported would be gone."""
        return self.plan.removes > 0 and self.plan.removes * 2 >= self.plan.of

    def check(self, *, yes: bool, digest: str | None) -> None:
        """Refuse what nobody has looked at, or has agreed to."""
        if digest is not None and digest != self.digest:
            raise Conflict("what the import would change is not what was shown: look at it again")
        if self.removes_half and not yes:
            gone, all_ = self.plan.removes, counted(self.plan.of, "machine")
            raise Conflict(
                f"the import would remove {gone} of {all_}: if they are really gone, say yes (--yes)"
            )


class ImportDryRuns(Reading):
    """What shows the changes that an import would make."""

    def import_base(self, source: str, given: Mapping[HostName, str]) -> BeforeImport:
        """Return the fleet, and the hosts of a driver; those that are given are reached as it is said."""
        self._drivers_known.check_listing(source, where="from")
        with self._store.read() as snapshot:
            base = snapshot.rules.everything()
        mine = {
            name: host for name, host in base.hosts.items() if base.defaults.driver_of(host.driver) == source
        }
        for name, uri in given.items():
            known = base.hosts.get(name) or Host(name=name)
            mine[name] = replace(known, driver=source, uri=uri)
        return BeforeImport(base=base, hosts=[mine[name] for name in sorted(mine)])

    def check_import(
        self, before: BeforeImport, found: FoundFleet, terms: ImportTerms, *, by: str
    ) -> CheckedImport:
        """Hold what was found against the fleet as it is now: people go on while a source is asked."""
        with self._store.read() as snapshot:
            base = snapshot.rules.everything()
        draft = self._draft(base)
        plan = importing.plan(draft, tidied(found), terms, before=self._draft(before.base))
        changes = applying.apply(draft, plan.part, by=by)
        digest = hashlib.sha256("\n".join((*changes, *plan.conflicts)).encode()).hexdigest()
        parts = cut(plan.part, base, at_once=AT_ONCE)
        fleet = CheckedFleet(changes=changes, parts=parts, origin=f"imported from {terms.source}")
        return CheckedImport(fleet=fleet, plan=plan, digest=digest)


def parse_takeable(names: Sequence[str]) -> frozenset[str]:
    """Read the fields that a source may change."""
    taken = {name.replace("-", "_") for name in names}
    for name in sorted(taken - set(TAKEABLE)):
        known = [each.replace("_", "-") for each in TAKEABLE]
        shown = name.replace("_", "-")
        raise Invalid(f"take: expected some of {', '.join(known)}, got {shown!r}{hint(shown, known)}")
    return frozenset(taken)


def tidied(found: FoundFleet) -> FoundFleet:
    """Return what was found with names, addresses and MACs spelled as they are declared."""
    machines = tuple(_tidied(each) for each in found.machines)
    return replace(
        found,
        machines=machines,
        groups=tuple(_tidied_group(each) for each in found.groups),
        notes=(*found.notes, *_dropped(found.machines, machines)),
    )


def _dropped(found: Iterable[FoundMachine], tidied: Iterable[FoundMachine]) -> Iterator[str]:
    """Say what its owner wrote of a machine and cannot be declared; what guests say is only left out."""
    for before, after in zip(found, tidied, strict=True):
        if is_unsafe_name(before.name):
            yield f'machine "{before.name}" cannot be called so: it is imported as {fit_name(before.name)}'
        if before.update_domain is not None and after.update_domain is None:
            yield f"machine {after.name}: update-domain {before.update_domain} cannot be declared: left out"
        if before.tags is not None and after.tags is None:
            yield f"machine {after.name}: its tags cannot be declared: left out"


def _tidied(found: FoundMachine) -> FoundMachine:
    return replace(
        found,
        vm_id=MachineId(fields.guid(found.vm_id)),
        group=None if found.group is None else GroupName(fit_name(found.group)),
        project=None if found.project is None else ProjectName(fit_name(found.project)),
        addresses=tuple(_readable(fields.address, found.addresses)),
        macs=tuple(_readable(fields.mac, found.macs)),
        update_domain=next(_readable(fields.domain, [found.update_domain]), None),
        tags=next(_readable(fields.tags, [found.tags]), None),
    )


def _readable(read: Callable[[object], T], said: Iterable[object]) -> Iterator[T]:
    """Read what can be read: guests and tenants write some of it, who are not to keep others from it."""
    for each in said:
        with suppress(Invalid):
            yield read(each)


def _tidied_group(found: FoundGroup) -> FoundGroup:
    project = None if found.project is None else ProjectName(fit_name(found.project))
    domains = next(_readable(fields.domains, [found.update_domains]), None)
    called = None if found.called is None else GroupName(fit_name(found.called))
    name = GroupName(fit_name(found.name))
    return replace(found, name=name, called=called, project=project, update_domains=domains)
