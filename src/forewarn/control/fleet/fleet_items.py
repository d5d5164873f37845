"""Adding, changing and removing single hosts, groups and projects, as a fleet file would."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from forewarn.control import naming
from forewarn.control.fleet.declarations import FleetCommands
from forewarn.control.fleet.fleet_application import CheckedFleet
from forewarn.control.paging import all_pages
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
from forewarn.core.model.project import Project
from forewarn.store.batch import Transaction

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
