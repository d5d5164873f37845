"""Declaring the fleet: as a whole, or single machines, hosts, groups and projects."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from forewarn.control import naming
from forewarn.control.driver import KnownDrivers
from forewarn.control.fleet.fleet_application import (
    AT_ONCE,
    CheckedFleet,
    FleetApplication,
    FleetApplyLock,
    find_leftovers,
)
from forewarn.control.fleet.fleet_import import ImportDryRuns
from forewarn.control.paging import all_pages
from forewarn.control.use_case import Context, Reading, UseCase
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    GroupKind,
    GroupName,
    HostName,
    Kind,
    NameKind,
    ProjectName,
)
from forewarn.core.errors import Conflict, Invalid, NotFound, UnknownName
from forewarn.core.filters import MachineFilter
from forewarn.core.fleet import applying, fleet_changes, machines
from forewarn.core.fleet.fleet_changes import DeclaredMachine, FleetChange, cut, difference
from forewarn.core.model import declaration
from forewarn.core.model.declaration import FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.model.slice import Slice
from forewarn.core.rollouts.domain_fitting import FittedDomains, fit
from forewarn.core.scope import EVERYTHING
from forewarn.core.time_formats import format_span
from forewarn.signals import Signal
from forewarn.store.batch import Transact, Transaction
from forewarn.store.queries.fleet import FleetQueries


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDomains:
    """Update domains that could be applied when they were checked."""

    fitted: FittedDomains
    fleet: CheckedFleet


class DomainDryRuns(Reading):
    """Dry runs that fit update domains to hosts."""

    def domains(self, group: GroupName | None, *, by: str) -> CheckedDomains:
        """Fit the update domains of all groups, or of one, to the hosts. Saves nothing."""
        with self._store.read() as snapshot:
            base = snapshot.rules.everything()
            if group is not None:
                naming.check_group(snapshot.fleet, group, scope=EVERYTHING)
        fitted = fit(base.machines.values(), base.groups, only=group)
        _refuse_while_announced(base, fitted)
        declared = []
        for id_, domain in fitted.domains.items():
            spec = machines.spec_of(base.machines[id_], base.groups[base.machines[id_].group])
            declared.append(DeclaredMachine(spec=replace(spec, update_domain=domain), known=id_))
        whole = FleetChange(machines=tuple(declared))
        changes = tuple(applying.apply(self._draft(base), whole, by=by))
        return CheckedDomains(
            fitted=fitted, fleet=CheckedFleet(changes=changes, parts=cut(whole, base, at_once=AT_ONCE))
        )


def _refuse_while_announced(base: Slice, fitted: FittedDomains) -> None:
    """Raise Conflict if an open event names a machine that would change its update domain."""
    named = {each.machine: each.name for event in base.events.values() for each in event.resources}
    names = sorted(name for id_, name in named.items() if id_ in fitted.domains)
    if names:
        shown = naming.shortened([f'"{name}"' for name in names])
        raise Conflict(
            f"update domains of {shown} would change, and open events name them: "
            "wait until those are over, or fit another group alone (group)"
        )


class FleetDryRuns(DomainDryRuns, ImportDryRuns):
    """Dry runs of declarations."""

    def changes(self, spec: FleetSpec, *, by: str) -> tuple[str, ...]:
        """Return the changes that a declaration would make."""
        return self.check(spec, by=by).changes

    def check(self, spec: FleetSpec, *, by: str) -> CheckedFleet:
        """Apply a declaration to a draft that is not saved; return its changes and parts."""
        check_declaration(spec, self._drivers_known)
        with self._store.read() as snapshot:
            base = snapshot.rules.everything()
            draft, whole = self._draft(base), difference(base, spec)
            changes = (*applying.apply(draft, whole, by=by), *find_leftovers(snapshot, draft).lines())
        return CheckedFleet(changes=changes, parts=cut(whole, base, at_once=AT_ONCE))


def check_declaration(spec: FleetSpec, drivers: KnownDrivers) -> None:
    """Raise Invalid if a declaration is inconsistent or names an unusable driver."""
    drivers.check(spec.defaults.driver, where="defaults.driver")
    for host in spec.hosts:
        drivers.check(host.driver, where=f"hosts.{host.name}: driver")
    applying.validate(spec)


class FleetCommands(UseCase, FleetDryRuns):
    """Use cases that declare the fleet, and advance its clock."""

    def __init__(self, context: Context, *, webhooks_changed: Signal) -> None:
        super().__init__(context)
        self._context = context
        self._webhooks_changed = webhooks_changed
        self.apply_lock = FleetApplyLock()

    def put_machine(
        self,
        tx: Transaction,
        name: str,
        *,
        project: ProjectName | None,
        change: Callable[[MachineSpec | None], MachineSpec],
        by: str,
    ) -> Machine:
        """Add or change a machine. `change` maps the present declaration, or None, to the new one."""
        try:
            known: Machine | None = tx.fleet.machine(name, project=project)
        except NotFound:
            known = None
        group = tx.fleet.group(known.group) if known else None
        spec = change(machines.spec_of(known, group) if known and group else None)
        if known is None:
            if spec.name.casefold() != name.casefold():
                raise Invalid(f'name: expected "{name}", got "{spec.name}"')
            _check_fleet(tx.fleet, name)
        spec = self._in_project_of_group(tx.fleet, spec)
        around = tx.rules.around(
            machines=[id_ for id_ in (known.id if known else None, spec.vm_id) if id_],
            hosts=[spec.host] if spec.host else [],
            groups=[spec.group] if spec.group else [],
        )
        if spec.host is not None and spec.host not in around.hosts:
            raise _no_such(spec, NameKind.HOST, spec.host)
        with self._saving(tx, around) as draft:
            return machines.put(draft, spec, draft.machines[known.id] if known else None, by=by)

    def delete_machine(self, tx: Transaction, name: str, *, project: ProjectName | None, by: str) -> Machine:
        """Remove a machine from the fleet."""
        machine = tx.fleet.machine(name, project=project)
        with self._saving(tx, tx.rules.around(machines=[machine.id])) as draft:
            machines.remove(draft, machine, by=by)
        return machine

    def apply_fleet(
        self, transact: Transact, spec: FleetSpec, *, digest: str | None = None, by: str
    ) -> tuple[str, ...]:
        """Apply a declaration; return its changes."""
        with self.apply_lock.exclusive():
            if self.apply_lock.in_doubt:
                transact(self.resolve_doubt)
            application = self.application(self.check(spec, by=by), digest=digest, by=by)
            while not application.over:
                application.apply_next(transact)
        return application.changes

    def resolve_doubt(self, tx: Transaction) -> None:
        """Wait until an uncertain commit of a part has succeeded or failed."""
        if self.apply_lock.in_doubt:
            tx.lock()  # the uncertain transaction holds it until then
            self.apply_lock.in_doubt = False

    def application(self, checked: CheckedFleet, *, digest: str | None = None, by: str) -> FleetApplication:
        """Return the application of a checked declaration, which saves it in parts."""
        return FleetApplication(
            self._context,
            checked,
            digest=digest,
            by=by,
            webhooks_changed=self._webhooks_changed,
            apply_lock=self.apply_lock,
        )

    def applied_fleet(self) -> str | None:
        """Return the digest of the fleet file applied last."""
        with self._store.read() as snapshot:
            return snapshot.fleet_file.applied()

    def clock_advanced(self, tx: Transaction, way: timedelta, *, by: str) -> None:
        """Record who advances the clock, and by how much, before it is advanced."""
        with self._saving(tx) as draft:
            why = f"by {format_span(way)} to {draft.now + way:%Y-%m-%dT%H:%M:%SZ}"
            draft.record(Kind.CLOCK_ADVANCED, None, by=by, reason=why)

    def _in_project_of_group(self, fleet: FleetQueries, spec: MachineSpec) -> MachineSpec:
        if spec.group is None:
            if fleet.project(spec.project) is None:
                raise _no_such(spec, NameKind.PROJECT, spec.project)
            return spec
        group = fleet.group(spec.group)
        if group is None:
            raise _no_such(spec, NameKind.GROUP, spec.group)
        if spec.update_domain >= group.update_domains:
            expected = f"expected 0 to {group.update_domains - 1}, got {spec.update_domain}"
            raise Invalid(f'machine "{spec.name}": update_domain: {expected}')
        return replace(spec, project=group.project)


def _check_fleet(fleet: FleetQueries, name: str) -> None:
    """Raise Invalid if the fleet has no hosts yet. It then has no projects either."""
    if not fleet.hosts(after=None, limit=1)[0]:
        raise Invalid(
            f'machine "{name}": the fleet has no hosts yet: declare it first (forewarn fleet apply FILE)'
        )


def _no_such(spec: MachineSpec, kind: NameKind, got: str) -> Invalid:
    expected = f"expected one of the {kind}s, got {got!r}"
    return Invalid(f'machine "{spec.name}": {kind}: {expected}', unknown=UnknownName(kind=kind, name=got))


# Machines, groups and hosts per page.
_PAGE = 1_000


class FleetItems(UseCase):
    """Use cases that declare one host, group or project."""

    def __init__(self, context: Context, declarations: FleetCommands) -> None:
        super().__init__(context)
        self._declarations = declarations

    def put_host(
        self, tx: Transaction, name: HostName, change: Callable[[HostSpec | None], HostSpec], *, by: str
    ) -> bool:
        """Add or change a host; return whether it is new.

        `change` maps the present declaration to the new one.
        """
        known = tx.fleet.host(name)
        wanted = change(None if known is None else declaration.host_spec(known))
        self._drivers_known.check(wanted.driver, where=f'host "{name}": driver')
        self._save(tx, fleet_changes.host_part(known, wanted), by=by)
        return known is None

    def put_group(
        self, tx: Transaction, name: GroupName, change: Callable[[GroupSpec | None], GroupSpec], *, by: str
    ) -> bool:
        """Add or change a group; return whether it is new.

        `change` maps the present declaration to the new one.
        """
        known = tx.fleet.group(name)
        if known is not None and known.kind is GroupKind.STANDALONE:
            known = None
        wanted = change(None if known is None else declaration.group_spec(known))
        projects = {project.name: project for project in tx.fleet.projects()}
        draft = self._draft(replace(tx.rules.around(), projects=projects))
        found = partial(tx.fleet.machines, MachineFilter(group=name))
        members = [] if known is None else list(all_pages(found, limit=_PAGE))
        self._save(tx, fleet_changes.group_part(draft, known, wanted, members), by=by)
        return known is None

    def put_project(
        self, tx: Transaction, name: ProjectName, change: Callable[[Project | None], Project], *, by: str
    ) -> bool:
        """Add or change a project; return whether it is new.

        `change` maps the present declaration to the new one.
        """
        known = tx.fleet.project(name)
        self._save(tx, fleet_changes.project_part(known, change(known)), by=by)
        return known is None

    def delete_host(self, tx: Transaction, name: HostName, *, by: str) -> Host:
        """Remove a host; Conflict while it has machines or an order."""
        known = tx.fleet.host(name)
        if known is None:
            raise naming.unknown(NameKind.HOST, name)
        self._save(tx, FleetChange(removed_hosts=(name,)), by=by)
        return known

    def delete_group(self, tx: Transaction, name: GroupName, *, by: str) -> Group:
        """Remove a group; Conflict while it has machines."""
        known = naming.find_group(tx.fleet, name)
        self._save(tx, FleetChange(removed_groups=(name,)), by=by)
        return known

    def delete_project(self, tx: Transaction, name: ProjectName, *, by: str) -> Project:
        """Remove a project; Conflict while it has groups or machines."""
        if name == DEFAULT_PROJECT:
            raise Conflict(f'project "{name}" cannot be removed: it has everything that names no project')
        known = tx.fleet.project(name)
        if known is None:
            raise naming.unknown(NameKind.PROJECT, name)
        for group in all_pages(tx.fleet.groups, limit=_PAGE):
            if group.project == name:
                raise Conflict(
                    f'project "{name}" still has group "{group.name}": remove it, or keep the project'
                )
        self._save(tx, FleetChange(removed_projects=(name,)), by=by)
        return known

    def _save(self, tx: Transaction, part: FleetChange, *, by: str) -> None:
        # As a part of a fleet, but without a record that a fleet was applied.
        self._declarations.application(CheckedFleet(changes=(), parts=(part,)), by=by).save_next(tx)
