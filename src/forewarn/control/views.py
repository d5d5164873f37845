"""What can be asked of forewarn that changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.control import naming
from forewarn.control.naming import check_project
from forewarn.control.ports.guests import Activity
from forewarn.control.ports.records import HistoryFilter
from forewarn.control.ports.store import Snapshot, Store
from forewarn.control.scope import ProjectStore
from forewarn.control.sent_notices import NotingStore
from forewarn.core.errors import NotFound
from forewarn.core.fleet import machines
from forewarn.core.guests import notice
from forewarn.core.guests.notice import MachineNotice
from forewarn.core.model.declaration import FleetSpec, GroupSpec
from forewarn.core.model.event import Event, NoticeSummary
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Hold
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.record import Record
from forewarn.core.words import (
    EventId,
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    OrderState,
    ProjectName,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineView:
    """A machine, and what its guests have made known."""

    machine: Machine
    group: Group
    last_seen: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """An event, what notice its machines got, and how long it disturbed them."""

    event: Event
    notices: tuple[MachineNotice, ...]
    impact: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingEvent:
    """An event that guests are being told, and when it was put off."""

    event: Event
    put_off: tuple[datetime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderView:
    """An order with all its events, over ones too, and what notice their machines got."""

    order: Order
    events: Sequence[EventView]
    notice: NoticeSummary


class Views:
    """The use cases that only read."""

    def __init__(self, *, store: NotingStore, activity: Activity, project: ProjectName | None = None) -> None:
        """Show what a project's people may see; None: all of it."""
        self._noting = store
        self._project = project
        self._store: Store = store if project is None else ProjectStore(store, project)
        self._activity = activity

    def within(self, project: ProjectName | None) -> "Views":
        """Give the same as the people of a project see it; None: all of it."""
        if project is None:
            return self
        return Views(store=self._noting, activity=self._activity, project=project)

    def only(self, project: ProjectName | None) -> "Views":
        """Give the same with one project's things alone; NotFound for a project that cannot be seen."""
        if project is None:
            return self
        with self._store.read() as snapshot:
            check_project(snapshot, project, within=self._project)
        return self.within(project)

    def machine(self, name: str, *, project: ProjectName | None) -> MachineView:
        """Show one machine."""
        with self._store.read() as snapshot:
            found = naming.known_machine(snapshot, name, project=project, within=self._project)
            return self._seen(snapshot, [found])[0]

    def machines(
        self,
        *,
        after: str | None,
        limit: int,
        group: GroupName | None = None,
        host: HostName | None = None,
    ) -> tuple[Sequence[MachineView], str | None]:
        """List machines: all, or those of a group, on a host, or both; NotFound if there is no such."""
        with self._store.read() as snapshot:
            page, more = snapshot.machines(after=after, limit=limit, group=group, host=host)
            if not page:
                naming.check_group(snapshot, group)
                naming.check_host(snapshot, host, within=self._project)
            return self._seen(snapshot, page), more

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups."""
        with self._store.read() as snapshot:
            return snapshot.groups(after=after, limit=limit)

    def group(self, name: str) -> Group:
        """Show one group."""
        with self._store.read() as snapshot:
            group = snapshot.group(GroupName(name))
            if group is None or group.kind is GroupKind.STANDALONE:
                raise naming.unknown_group(snapshot, name)
        return group

    def hosts(self, *, after: str | None, limit: int) -> tuple[Sequence[Host], str | None]:
        """List hosts."""
        with self._store.read() as snapshot:
            return snapshot.hosts(after=after, limit=limit)

    def host(self, name: str) -> tuple[Host, Sequence[Machine]]:
        """Show one host and what it carries."""
        with self._store.read() as snapshot:
            around = snapshot.around(hosts=[HostName(name)])
            if HostName(name) not in around.hosts:
                raise naming.unknown_host(snapshot, name)
        carried = [machine for machine in around.machines.values() if machine.host == name]
        return around.hosts[HostName(name)], sorted(carried, key=lambda machine: machine.name.casefold())

    def projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects."""
        with self._store.read() as snapshot:
            return snapshot.page_of_projects(after=after, limit=limit)

    def project(self, name: str) -> Project:
        """Show one project."""
        with self._store.read() as snapshot:
            for project in snapshot.projects():
                if project.name == name:
                    return project
            raise naming.unknown_project(snapshot, name)

    def orders(
        self, *, state: OrderState | None, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first."""
        with self._store.read() as snapshot:
            return snapshot.orders(state=state, after=after, limit=limit)

    def order(self, order: OrderId) -> OrderView:
        """Show one order."""
        with self._store.read() as snapshot:
            known = snapshot.order(order)
            if known is None:
                raise NotFound(f"order {order} does not exist")
            events = self._noted(snapshot, known, snapshot.events_of_order(known.id))
        summed = notice.summary((each.event, each.notices) for each in events)
        return OrderView(order=known, events=events, notice=summed)

    def events(self, *, after: str | None, limit: int) -> tuple[Sequence[Event], str | None]:
        """List what guests are being told."""
        with self._store.read() as snapshot:
            return snapshot.events(after=after, limit=limit)

    def coming(self) -> Sequence[ComingEvent]:
        """List all that guests are being told, at once."""
        with self._store.read() as snapshot:
            events = snapshot.listed_events()
            put_off = snapshot.put_off([event.id for event in events])
        return [ComingEvent(event=event, put_off=tuple(put_off.get(event.id, ()))) for event in events]

    def event(self, event: EventId) -> EventView:
        """Show one event, listed or over."""
        with self._store.read() as snapshot:
            known = snapshot.event(event)
            if known is None:
                raise NotFound(f"event {event} does not exist")
            return self._noted(snapshot, snapshot.order(known.order), [known])[0]

    def history(self, wanted: HistoryFilter) -> Sequence[Record]:
        """List records, newest first, or oldest first above a number; NotFound if nothing ever was of it."""
        with self._store.read() as snapshot:
            found = snapshot.history(wanted)
            if not found:
                naming.check_filter(snapshot, wanted)
            return found

    def check_machine(self, name: MachineName) -> None:
        """Refuse a machine that neither is nor was."""
        with self._store.read() as snapshot:
            naming.check_machine(snapshot, name)

    def fleet(self) -> FleetSpec:
        """Show the fleet as it would be declared now."""
        with self._store.read() as snapshot:
            whole = snapshot.everything()
        groups = [group for group in whole.groups.values() if group.kind is not GroupKind.STANDALONE]
        return FleetSpec(
            projects=tuple(whole.projects[name] for name in sorted(whole.projects)),
            groups=tuple(_group_spec(group) for group in sorted(groups, key=lambda group: group.name)),
            hosts=tuple(sorted(whole.hosts)),
            machines=tuple(
                machines.spec_of(machine, whole.groups[machine.group])
                for machine in sorted(whole.machines.values(), key=lambda each: (each.project, each.name))
            ),
        )

    def holds(self) -> Sequence[Hold]:
        """List what is held, oldest first."""
        with self._store.read() as snapshot:
            return list(snapshot.around().holds.values())

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count what there is, for the metrics."""
        with self._store.read() as snapshot:
            return snapshot.counts()

    def tallies(self) -> Mapping[str, int]:
        """Count what has happened, for the metrics."""
        with self._store.read() as snapshot:
            return snapshot.tallies()

    def _noted(self, snapshot: Snapshot, order: Order | None, events: Sequence[Event]) -> Sequence[EventView]:
        """Add to events of an order what notice their machines got, and what they went through."""
        sent = self._noting.notices(snapshot, [event.id for event in events])
        return [
            EventView(
                event=event,
                notices=notice.by_machine(event, sent[event.id]),
                impact=notice.impact(order, event) if order else None,
            )
            for event in events
        ]

    def _seen(self, snapshot: Snapshot, page: Sequence[Machine]) -> Sequence[MachineView]:
        ids = [machine.id for machine in page]
        groups = snapshot.around(groups=sorted({machine.group for machine in page})).groups
        saved, fresh = snapshot.last_seen(ids), self._activity.fresh(ids)
        return [
            MachineView(
                machine=machine,
                group=groups[machine.group],
                last_seen=_newest(machine.id, saved, fresh),
            )
            for machine in page
        ]


def _newest(
    machine: MachineId, saved: Mapping[MachineId, datetime], fresh: Mapping[MachineId, datetime]
) -> datetime | None:
    return max((seen[machine] for seen in (saved, fresh) if machine in seen), default=None)


def _group_spec(group: Group) -> GroupSpec:
    return GroupSpec(
        name=group.name,
        kind=group.kind,
        update_domains=group.update_domains,
        project=group.project,
        policy=group.policy,
    )
