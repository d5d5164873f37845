"""The lists of a snapshot, page by page."""

from collections.abc import Iterator, Mapping, Sequence, Set

from sqlalchemy import ColumnElement, and_, select

from forewarn.control.ports.fleet import ANY_MACHINE, MachineFilter
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.words import SIMULATED, EventId, OrderState, ProjectName, Work
from forewarn.store import tables
from forewarn.store.reads.reader import EVENT_PROJECT, SELECT_GROUPS, Reader, among
from forewarn.store.rows.stored import EVENTS, HOSTS, MACHINES, ORDERS, PROJECTS, name_key

_M, _G, _H, _P = tables.machines.c, tables.groups.c, tables.hosts.c, tables.projects.c
_O, _E = tables.orders.c, tables.events.c
_LISTED = EVENTS.select().where(tables.LISTED_EVENT)
_OWNERS = among(select(_E.id, EVENT_PROJECT), _E.id)
_SIMULATED = among(select(_E.id).join(tables.orders, _O.id == _E.order_id), _E.id).where(
    _O.driver == SIMULATED, _O.work.in_([work.value for work in Work if work.touches_machines])
)
# Comes after everything that a name may have in it.
_LAST = "\U0010ffff"


class Lists(Reader):
    """Machines, groups, hosts, projects, orders and events in their order."""

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

    def orders(
        self, *, state: OrderState | None, after: str | None, limit: int, only_open: bool = False
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first: open ones alone, or those that are over too."""
        query = self._mine(ORDERS.select(), _O.project)
        if state is not None:
            query = query.where(_O.state == state.value)
        if only_open:
            query = query.where(tables.OPEN_ORDER)
        return self._page(ORDERS.read, query, (_O.number, _O.id), after=after, limit=limit, newest=True)

    def events(
        self, *, after: str | None, limit: int, past: bool = False, begins: str = ""
    ) -> tuple[Sequence[Event], str | None]:
        """List listed events, by creation, or past ones too, newest first; `begins` is how their ids do."""
        query = self._mine(EVENTS.select() if past else _LISTED, EVENT_PROJECT)
        if begins:
            query = query.where(_E.id.startswith(begins.upper(), autoescape=True))
        return self._page(EVENTS.read, query, (_E.number, _E.id), after=after, limit=limit, newest=past)

    def projects_of_events(self, events: Sequence[EventId]) -> Mapping[EventId, ProjectName]:
        """Return whose these events are; of past ones as long as the record of their announcement is kept."""
        rows = self._among(_OWNERS, {event.upper() for event in events})
        return {event: project for event, project in rows if project is not None}

    def simulated_events(self, events: Sequence[EventId]) -> Set[EventId]:
        """Return those of these events for which nothing is really done."""
        return {event for (event,) in self._among(_SIMULATED, {event.upper() for event in events})}

    def listed_events(self) -> Sequence[Event]:
        """List all listed events, by creation."""
        query = self._mine(_LISTED, EVENT_PROJECT)
        return self._list(EVENTS.read, query.order_by(_E.number, _E.id))


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
