"""The lists of the fleet, page by page."""

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, and_

from forewarn.control.ports.fleet import ANY_MACHINE, MachineFilter
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.reads.reader import SELECT_GROUPS, Reader
from forewarn.store.rows.stored import HOSTS, MACHINES, PROJECTS, name_key

_M, _G, _H, _P = tables.machines.c, tables.groups.c, tables.hosts.c, tables.projects.c
# Comes after everything that a name may have in it.
_LAST = "\U0010ffff"


class Lists(Reader):
    """Machines, groups, hosts and projects in their order."""

    def machines(
        self, wanted: MachineFilter = ANY_MACHINE, *, after: str | None, limit: int
    ) -> tuple[Sequence[Machine], str | None]:
        """List machines by project and name."""
        query = self._mine(MACHINES.select().where(*_machines_wanted(wanted)), _M.project)
        return self._page(MACHINES.read, query, (_M.project, _M.key), after=after, limit=limit)

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups by name, standalone machines left out."""
        query = self._mine(SELECT_GROUPS.where(tables.LISTED_GROUP), _G.project)
        return self._page(self._group, query, (_G.name,), after=after, limit=limit)

    def hosts(self, *, after: str | None, limit: int) -> tuple[Sequence[Host], str | None]:
        """List hosts by name; for a project, those that carry a machine of it."""
        return self._page(HOSTS.read, self._my_hosts(), (_H.name,), after=after, limit=limit)

    def projects(self) -> Sequence[Project]:
        """List all projects by name."""
        return self._list(PROJECTS.read, self._mine(PROJECTS.select(), _P.name).order_by(_P.name))

    def project(self, name: ProjectName) -> Project | None:
        """Find a project that is declared."""
        return self._find(PROJECTS.read, self._mine(PROJECTS.select(), _P.name).where(_P.name == name))

    def page_of_projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects by name, and give the cursor of the next page."""
        query = self._mine(PROJECTS.select(), _P.name)
        return self._page(PROJECTS.read, query, (_P.name,), after=after, limit=limit)


def _machines_wanted(wanted: MachineFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.group is not None:
        yield _M.group_name == wanted.group
    if wanted.host is not None:
        yield _M.host == wanted.host
    if wanted.names:
        yield _M.key.in_(sorted(map(name_key, wanted.names)))
    if wanted.begins:
        first = name_key(wanted.begins)
        yield and_(_M.key >= first, _M.key <= first + _LAST)  # which an index answers, and LIKE would not
