"""Import of a fleet from a driver that lists machines: the changes, and the parts to save."""

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
from forewarn.core.fleet.fleet_changes import cut
from forewarn.core.fleet.found_machines import IMPORTABLE_FIELDS, is_unsafe_name, to_valid_name
from forewarn.core.fleet.import_terms import ImportTerms
from forewarn.core.model.found_fleet import FoundFleet, FoundGroup, FoundMachine
from forewarn.core.model.host import Host
from forewarn.core.model.slice import Slice
from forewarn.core.text_formats import counted, hint
from forewarn.wire import fields

T = TypeVar("T")

# The fields that --take may name: of machines, and of listed hosts and groups.
TAKEABLE = (*IMPORTABLE_FIELDS, "driver", "uri", "labels", "kind", "update_domains")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportBase:
    """The fleet before the import, and the hosts to list."""

    base: Slice
    hosts: Sequence[Host]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedImport:
    """The changes of an import, and the conflicts that it leaves alone."""

    fleet: CheckedFleet
    plan: importing.ImportPlan
    digest: str  # of the changes: equal digests mean equal changes

    @property
    def removes_half(self) -> bool:
        """Whether the import would remove half of the machines that it has imported before."""
        return self.plan.removes > 0 and self.plan.removes * 2 >= self.plan.of

    def check(self, *, yes: bool, digest: str | None) -> None:
        """Raise Conflict if the caller has not seen these changes, or not confirmed the removals."""
        if digest is not None and digest != self.digest:
            raise Conflict("the changes of the import are no longer those that were shown: check them again")
        if self.removes_half and not yes:
            gone, all_ = self.plan.removes, counted(self.plan.of, "machine")
            raise Conflict(
                f"the import would remove {gone} of {all_}: confirm with --yes if they are really gone"
            )


class ImportDryRuns(Reading):
    """Dry runs of imports."""

    def import_base(self, source: str, given: Mapping[HostName, str]) -> ImportBase:
        """Return the fleet, and the hosts of a driver. `given` adds hosts by name, with their URI."""
        self._drivers_known.check_listing(source, where="from")
        with self._store.read() as snapshot:
            base = snapshot.rules.everything()
        to_list = {
            name: host for name, host in base.hosts.items() if base.defaults.driver_of(host.driver) == source
        }
        for name, uri in given.items():
            known = base.hosts.get(name) or Host(name=name)
            to_list[name] = replace(known, driver=source, uri=uri)
        return ImportBase(base=base, hosts=[to_list[name] for name in sorted(to_list)])

    def check_import(
        self, before: ImportBase, found: FoundFleet, terms: ImportTerms, *, by: str
    ) -> CheckedImport:
        """Compare a listing with the present fleet.

        The fleet may have changed since `before`, because listing takes time.
        """
        with self._store.read() as snapshot:
            base = snapshot.rules.everything()
        draft = self._draft(base)
        plan = importing.plan(draft, normalized(found), terms, before=self._draft(before.base))
        changes = applying.apply(draft, plan.part, by=by)
        digest = hashlib.sha256("\n".join((*changes, *plan.conflicts)).encode()).hexdigest()
        parts = cut(plan.part, base, at_once=AT_ONCE)
        fleet = CheckedFleet(changes=changes, parts=parts, origin=f"imported from {terms.source}")
        return CheckedImport(fleet=fleet, plan=plan, digest=digest)


def parse_takeable(names: Sequence[str]) -> frozenset[str]:
    """Parse the fields that an import may change."""
    taken = {name.replace("-", "_") for name in names}
    for name in sorted(taken - set(TAKEABLE)):
        known = [each.replace("_", "-") for each in TAKEABLE]
        shown = name.replace("_", "-")
        raise Invalid(f"take: expected some of {', '.join(known)}, got {shown!r}{hint(shown, known)}")
    return frozenset(taken)


def normalized(found: FoundFleet) -> FoundFleet:
    """Normalize the names, addresses and MACs of a listing, as in a declaration."""
    machines = tuple(_normalized_machine(each) for each in found.machines)
    return replace(
        found,
        machines=machines,
        groups=tuple(_normalized_group(each) for each in found.groups),
        notes=(*found.notes, *_warnings(found.machines, machines)),
    )


def _warnings(found: Iterable[FoundMachine], normalized: Iterable[FoundMachine]) -> Iterator[str]:
    """Warn about values that the owner has set and that cannot be declared.

    Values from guests are dropped silently.
    """
    for before, after in zip(found, normalized, strict=True):
        if is_unsafe_name(before.name):
            name = to_valid_name(before.name)
            yield f'machine "{before.name}" has an invalid name: it is imported as {name}'
        if before.update_domain is not None and after.update_domain is None:
            yield f"machine {after.name}: update-domain {before.update_domain} is invalid: ignored"
        if before.tags is not None and after.tags is None:
            yield f"machine {after.name}: its tags are invalid: ignored"


def _normalized_machine(found: FoundMachine) -> FoundMachine:
    return replace(
        found,
        vm_id=MachineId(fields.guid(found.vm_id)),
        group=None if found.group is None else GroupName(to_valid_name(found.group)),
        project=None if found.project is None else ProjectName(to_valid_name(found.project)),
        addresses=tuple(_parsed(fields.address, found.addresses)),
        macs=tuple(_parsed(fields.mac, found.macs)),
        update_domain=next(_parsed(fields.domain, [found.update_domain]), None),
        tags=next(_parsed(fields.tags, [found.tags]), None),
    )


def _parsed(read: Callable[[object], T], values: Iterable[object]) -> Iterator[T]:
    """Parse values, and skip invalid ones: guests and tenants write some of them."""
    for each in values:
        with suppress(Invalid):
            yield read(each)


def _normalized_group(found: FoundGroup) -> FoundGroup:
    project = None if found.project is None else ProjectName(to_valid_name(found.project))
    domains = next(_parsed(fields.domains, [found.update_domains]), None)
    called = None if found.called is None else GroupName(to_valid_name(found.called))
    name = GroupName(to_valid_name(found.name))
    return replace(found, name=name, called=called, project=project, update_domains=domains)
