"""Putting and removing hosts, groups and projects, one at a time, as a fleet file would."""

from collections.abc import Callable

from forewarn.control import naming
from forewarn.control.fleet.applying_fleet import CheckedFleet
from forewarn.control.fleet.declaring import FleetCommands
from forewarn.control.parts.fleet import MachineFilter
from forewarn.control.ports.store import Transaction
from forewarn.control.use_case import Context, FleetUseCase
from forewarn.core.copies import replace
from forewarn.core.errors import Conflict
from forewarn.core.fleet import parts
from forewarn.core.fleet.parts import FleetPart
from forewarn.core.model import declaration
from forewarn.core.model.declaration import GroupSpec, HostSpec
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.words import DEFAULT_PROJECT, GroupKind, GroupName, HostName, NameKind, ProjectName

_PAGE = 1_000


class FleetPuts(FleetUseCase):
    """The use cases that declare one host, group or project."""

    def __init__(self, context: Context, declarations: FleetCommands) -> None:
        super().__init__(context)
        self._declarations = declarations

    def put_host(self, name: HostName, change: Callable[[HostSpec | None], HostSpec], *, by: str) -> bool:
        """Add a host, or change one, and return whether it is new; `change` makes the new declaration."""
        with self._store.write() as tx:
            known = tx.fleet.host(name)
            wanted = change(None if known is None else declaration.host_spec(known))
            self._drivers_known.check(wanted.driver, where=f'host "{name}": driver')
            self._save(parts.host_part(known, wanted), by=by)
        return known is None

    def put_group(self, name: GroupName, change: Callable[[GroupSpec | None], GroupSpec], *, by: str) -> bool:
        """Add a group, or change one, and return whether it is new; `change` makes the new declaration."""
        with self._store.write() as tx:
            known = _listed_group(tx, name)
            wanted = change(None if known is None else declaration.group_spec(known))
            projects = {project.name: project for project in tx.fleet.projects()}
            draft = self._draft(replace(tx.rules.around(), projects=projects))
            members = [] if known is None else _members(tx, name)
            self._save(parts.group_part(draft, known, wanted, members), by=by)
        return known is None

    def put_project(self, name: ProjectName, change: Callable[[Project | None], Project], *, by: str) -> bool:
        """Add a project, or change one, and return whether it is new; `change` makes the new declaration."""
        with self._store.write() as tx:
            known = tx.fleet.project(name)
            self._save(parts.project_part(known, change(known)), by=by)
        return known is None

    def delete_host(self, name: HostName, *, by: str) -> Host:
        """Take a host out of the fleet; Conflict while it carries a machine, or has an order."""
        with self._store.write() as tx:
            known = tx.fleet.host(name)
            if known is None:
                raise naming.unknown(NameKind.HOST, name)
            self._save(FleetPart(removed_hosts=(name,)), by=by)
        return known

    def delete_group(self, name: GroupName, *, by: str) -> Group:
        """Take a group out of the fleet; Conflict while it has machines."""
        with self._store.write() as tx:
            known = _listed_group(tx, name)
            if known is None:
                raise naming.unknown(NameKind.GROUP, name)
            self._save(FleetPart(removed_groups=(name,)), by=by)
        return known

    def delete_project(self, name: ProjectName, *, by: str) -> Project:
        """Take a project out of the fleet; Conflict while it has groups or machines."""
        if name == DEFAULT_PROJECT:
            raise Conflict(f'project "{name}" is always there: what names no project is in it')
        with self._store.write() as tx:
            known = tx.fleet.project(name)
            if known is None:
                raise naming.unknown(NameKind.PROJECT, name)
            in_it = next((each for each in _groups(tx) if each.project == name), None)
            if in_it is not None:
                raise Conflict(
                    f'project "{name}" still has group "{in_it.name}": remove it, or keep the project'
                )
            self._save(FleetPart(removed_projects=(name,)), by=by)
        return known

    def _save(self, part: FleetPart, *, by: str) -> None:
        # Saved as a part of a fleet is, within the same transaction; nothing says that a fleet was applied.
        self._declarations.application(CheckedFleet(changes=(), parts=(part,)), by=by).apply_next()


def _listed_group(tx: Transaction, name: GroupName) -> Group | None:
    found = tx.fleet.group(name)
    return None if found is None or found.kind is GroupKind.STANDALONE else found


def _members(tx: Transaction, group: GroupName) -> list[Machine]:
    some, after = tx.fleet.machines(MachineFilter(group=group), after=None, limit=_PAGE)
    found = list(some)
    while after is not None:
        some, after = tx.fleet.machines(MachineFilter(group=group), after=after, limit=_PAGE)
        found += some
    return found


def _groups(tx: Transaction) -> list[Group]:
    some, after = tx.fleet.groups(after=None, limit=_PAGE)
    found = list(some)
    while after is not None:
        some, after = tx.fleet.groups(after=after, limit=_PAGE)
        found += some
    return found
