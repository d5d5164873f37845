"""Putting and removing hosts, groups and projects, one at a time, as a fleet file would."""

from collections.abc import Callable
from dataclasses import replace

from forewarn.control import naming
from forewarn.control.fleet.fleet_application import CheckedFleet
from forewarn.control.fleet.declarations import FleetCommands
from forewarn.control.use_case import Context, UseCase
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    GroupKind,
    GroupName,
    HostName,
    NameKind,
    ProjectName,
)
from forewarn.core.errors import Conflict
from forewarn.core.filters import MachineFilter
from forewarn.core.fleet import fleet_changes
from forewarn.core.fleet.fleet_changes import FleetChange
from forewarn.core.model import declaration
from forewarn.core.model.declaration import GroupSpec, HostSpec
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.store.batch import Transaction

_PAGE = 1_000


class FleetItems(UseCase):
    """The use cases that declare one host, group or project."""

    def __init__(self, context: Context, declarations: FleetCommands) -> None:
        super().__init__(context)
        self._declarations = declarations

    def put_host(
        self, tx: Transaction, name: HostName, change: Callable[[HostSpec | None], HostSpec], *, by: str
    ) -> bool:
        """Add a host, or change one, and return whether it is new; `change` makes the new declaration."""
        known = tx.fleet.host(name)
        wanted = change(None if known is None else declaration.host_spec(known))
        self._drivers_known.check(wanted.driver, where=f'host "{name}": driver')
        self._save(tx, fleet_changes.host_part(known, wanted), by=by)
        return known is None

    def put_group(
        self, tx: Transaction, name: GroupName, change: Callable[[GroupSpec | None], GroupSpec], *, by: str
    ) -> bool:
        """Add a group, or change one, and return whether it is new; `change` makes the new declaration."""
        known = _listed_group(tx, name)
        wanted = change(None if known is None else declaration.group_spec(known))
        projects = {project.name: project for project in tx.fleet.projects()}
        draft = self._draft(replace(tx.rules.around(), projects=projects))
        members = [] if known is None else _members(tx, name)
        self._save(tx, fleet_changes.group_part(draft, known, wanted, members), by=by)
        return known is None

    def put_project(
        self, tx: Transaction, name: ProjectName, change: Callable[[Project | None], Project], *, by: str
    ) -> bool:
        """Add a project, or change one, and return whether it is new; `change` makes the new declaration."""
        known = tx.fleet.project(name)
        self._save(tx, fleet_changes.project_part(known, change(known)), by=by)
        return known is None

    def delete_host(self, tx: Transaction, name: HostName, *, by: str) -> Host:
        """Take a host out of the fleet; Conflict while it carries a machine, or has an order."""
        known = tx.fleet.host(name)
        if known is None:
            raise naming.unknown(NameKind.HOST, name)
        self._save(tx, FleetChange(removed_hosts=(name,)), by=by)
        return known

    def delete_group(self, tx: Transaction, name: GroupName, *, by: str) -> Group:
        """Take a group out of the fleet; Conflict while it has machines."""
        known = _listed_group(tx, name)
        if known is None:
            raise naming.unknown(NameKind.GROUP, name)
        self._save(tx, FleetChange(removed_groups=(name,)), by=by)
        return known

    def delete_project(self, tx: Transaction, name: ProjectName, *, by: str) -> Project:
        """Take a project out of the fleet; Conflict while it has groups or machines."""
        if name == DEFAULT_PROJECT:
            raise Conflict(f'project "{name}" is always there: what names no project is in it')
        known = tx.fleet.project(name)
        if known is None:
            raise naming.unknown(NameKind.PROJECT, name)
        in_it = next((each for each in _groups(tx) if each.project == name), None)
        if in_it is not None:
            raise Conflict(f'project "{name}" still has group "{in_it.name}": remove it, or keep the project')
        self._save(tx, FleetChange(removed_projects=(name,)), by=by)
        return known

    def _save(self, tx: Transaction, part: FleetChange, *, by: str) -> None:
        # As a part of a fleet; no record says that a fleet was applied.
        self._declarations.application(CheckedFleet(changes=(), parts=(part,)), by=by).save_next(tx)


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
