"""Use cases that only read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from forewarn.control import naming
from forewarn.control.disclosing import check_sees_hosts, sees_hosts
from forewarn.control.history_search import BATCH, PROJECT_BATCH, FoundRecords, RecordSearch
from forewarn.control.interfaces import LastPolls
from forewarn.control.unsaved_activity import NoticeSnapshot, UnsavedNotices, UnsavedPolls
from forewarn.control.use_case import Context, ScopedReading
from forewarn.core.basic_types import (
    EventId,
    GroupName,
    MachineName,
    NameKind,
    OrderId,
    ProjectName,
)
from forewarn.core.filters import (
    ANY_MACHINE,
    ANY_ORDER,
    CURRENT_EVENTS,
    EventFilter,
    HistoryFilter,
    MachineFilter,
    OrderFilter,
)
from forewarn.core.guests import notice
from forewarn.core.guests.notice import MachineNotice
from forewarn.core.model.event import Event, NoticeSummary
from forewarn.core.model.fleet_counts import FleetSummary
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.record import MonthlyPromises, Record
from forewarn.core.scope import Scope
from forewarn.store.snapshots import ScopedSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineView:
    """A machine, its group, and its last poll."""

    machine: Machine
    group: Group
    last_seen: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedEvent:
    """An event, the project of its machines if known, and whether it is simulated."""

    event: Event
    project: ProjectName | None
    simulated: bool
    notice: NoticeSummary | None = None  # that its machines got, if the caller asked for it


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView(OwnedEvent):
    """An event, the notice that each machine got, and how long it disturbed them."""

    notices: tuple[MachineNotice, ...]
    impact: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingEvent:
    """An announced event, and when it was deferred."""

    event: Event
    deferrals: tuple[datetime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderView:
    """An order, all its events including past ones, and the notice that their machines got."""

    order: Order
    events: Sequence[EventView]
    notice: NoticeSummary


class Views(ScopedReading):
    """Use cases that only read.

    They read unsaved values before they open a snapshot, so that a value that is being saved meanwhile is not
    missed.
    """

    def __init__(
        self, context: Context, scope: Scope, *, polls: UnsavedPolls, unsaved: UnsavedNotices
    ) -> None:
        super().__init__(context, scope)
        self._polls = polls
        self._unsaved = unsaved

    def machine(self, name: str) -> MachineView:
        """Return one machine."""
        fresh = self._polls.fresh()
        with self._store.read() as snapshot:
            found = naming.find_machine(snapshot.fleet, name, scope=self.scope)
            return self._seen(snapshot, [found], fresh)[0]

    def machines(
        self, wanted: MachineFilter = ANY_MACHINE, *, after: str | None, limit: int
    ) -> tuple[Sequence[MachineView], str | None]:
        """List machines; NotFound if a group or host in the filter does not exist."""
        fresh = self._polls.fresh()
        with self._store.read() as snapshot:
            if wanted.host is not None or wanted.bound_for is not None:
                check_sees_hosts(snapshot.fleet, scope=self.scope)
            page, more = snapshot.fleet.machines(wanted, after=after, limit=limit)
            if not page:
                naming.check_group(snapshot.fleet, wanted.group, scope=self.scope)
                naming.check_host(snapshot.fleet, wanted.host, scope=self.scope)
                naming.check_host(snapshot.fleet, wanted.bound_for, scope=self.scope)
            return self._seen(snapshot, page, fresh), more

    def summary(self) -> FleetSummary:
        """Count machines by group, update domain and state, and everything else by state."""
        with self._store.read() as snapshot:
            counted = snapshot.fleet.summary()
            seen = sees_hosts(snapshot.fleet, scope=self.scope)
        return counted if seen else replace(counted, hosts=None)

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups."""
        with self._store.read() as snapshot:
            found, more = snapshot.fleet.groups(after=after, limit=limit)
            return self._disclosed(snapshot.fleet, found), more

    def group(self, name: str) -> Group:
        """Return one group."""
        with self._store.read() as snapshot:
            group = naming.find_group(snapshot.fleet, GroupName(name), scope=self.scope)
            return self._disclosed(snapshot.fleet, [group])[0]

    def projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects."""
        with self._store.read() as snapshot:
            return snapshot.fleet.page_of_projects(after=after, limit=limit)

    def project(self, name: str) -> Project:
        """Return one project."""
        with self._store.read() as snapshot:
            project = snapshot.fleet.project(ProjectName(name))
            if project is None:
                raise naming.unknown(NameKind.PROJECT, name, scope=self.scope)
            return project

    def orders(
        self, wanted: OrderFilter = ANY_ORDER, *, after: str | None, limit: int
    ) -> tuple[Sequence[Order], str | None]:
        """List orders, newest first; NotFound if a host or machine in the filter does not exist."""
        with self._store.read() as snapshot:
            if wanted.host is not None:
                check_sees_hosts(snapshot.fleet, scope=self.scope)
            page, more = snapshot.work.orders(wanted, after=after, limit=limit)
            self._check_named(snapshot, page, wanted)
            return self._disclosed(snapshot.fleet, page), more

    def order(self, order: OrderId) -> OrderView:
        """Return one order."""
        unsaved = self._unsaved.now()
        with self._store.read() as snapshot:
            found = naming.existing(snapshot.work.order(order), "order", order)
            (known,) = self._disclosed(snapshot.fleet, [found])
            events = self._noted(snapshot, known, snapshot.work.events_of_order(known.id), unsaved)
        summed = notice.summary((each.event, each.notices) for each in events)
        return OrderView(order=known, events=events, notice=summed)

    def events(
        self,
        wanted: EventFilter = CURRENT_EVENTS,
        *,
        after: str | None,
        limit: int,
        with_notice: bool = False,
    ) -> tuple[Sequence[OwnedEvent], str | None]:
        """List present or past events; NotFound if a host or machine in the filter does not exist.

        `with_notice` adds the notice that their machines got, which takes longer.
        """
        unsaved = self._unsaved.now()
        with self._store.read() as snapshot:
            if wanted.host is not None:
                check_sees_hosts(snapshot.fleet, scope=self.scope)
            page, more = snapshot.work.events(wanted, after=after, limit=limit)
            self._check_named(snapshot, page, wanted)
            ids = [event.id for event in page]
            owners, simulated = snapshot.work.projects_of_events(ids), snapshot.work.simulated_events(ids)
            sent = unsaved.notices(snapshot.work, ids) if with_notice else {}
            absences = snapshot.work.absences()
            shown = self._disclosed(snapshot.fleet, page)
        owned = [
            OwnedEvent(
                event=event,
                project=owners.get(event.id),
                simulated=event.id in simulated,
                notice=notice.summary_of(event, notice.by_machine(event, sent[event.id], absences=absences))
                if sent
                else None,
            )
            for event in shown
        ]
        return owned, more

    def _check_named(
        self, snapshot: ScopedSnapshot, page: Sequence[object], wanted: OrderFilter | EventFilter
    ) -> None:
        """Raise NotFound if a list is empty because of an unknown name."""
        if not page:
            naming.check_host(snapshot.fleet, wanted.host, scope=self.scope)
            if wanted.machine is not None:
                naming.check_machine(snapshot, wanted.machine, scope=self.scope)

    def coming(self) -> Sequence[ComingEvent]:
        """List all announced events, and when each was deferred."""
        with self._store.read() as snapshot:
            listed = [event for event in snapshot.work.listed_events() if not event.hint]
            events = self._disclosed(snapshot.fleet, listed)
            deferrals = snapshot.work.deferrals([event.id for event in events])
        return [ComingEvent(event=event, deferrals=tuple(deferrals.get(event.id, ()))) for event in events]

    def event(self, event: EventId) -> EventView:
        """Return one event, present or past."""
        unsaved = self._unsaved.now()
        with self._store.read() as snapshot:
            known = naming.existing(snapshot.work.event(event), "event", event)
            return self._noted(snapshot, snapshot.work.order(known.order), [known], unsaved)[0]

    def history(self, wanted: HistoryFilter) -> Sequence[Record]:
        """List records, newest first, or oldest first above a number; NotFound for names without records."""
        with self._store.read() as snapshot:
            if wanted.host is not None:
                check_sees_hosts(snapshot.fleet, scope=self.scope)
            found = snapshot.records.history(wanted)
            if not found:
                naming.check_filter(snapshot, wanted, scope=self.scope)
            return self._disclosed(snapshot.fleet, found)

    def search(self, wanted: HistoryFilter, search: RecordSearch) -> FoundRecords:
        """Search one batch of records, in the text that the caller may see."""
        batch = BATCH if self.scope.caller is None else PROJECT_BATCH
        shown = self.history(replace(wanted, limit=batch))
        return FoundRecords(
            records=[record for record in shown if search.finds(record)],
            reached=shown[-1].number if shown else None,
            more=len(shown) == batch,
        )

    def promises(
        self, *, month: str | None, after: str | None, limit: int
    ) -> tuple[Sequence[MonthlyPromises], str | None]:
        """Count kept and broken promises by project and month."""
        with self._store.read() as snapshot:
            return snapshot.work.promises(month=month, after=after, limit=limit)

    def check_machine(self, name: MachineName) -> None:
        """Raise NotFound unless a machine exists, or existed and has records."""
        with self._store.read() as snapshot:
            naming.check_machine(snapshot, name, scope=self.scope)

    def _noted(
        self, snapshot: ScopedSnapshot, order: Order | None, events: Sequence[Event], unsaved: NoticeSnapshot
    ) -> Sequence[EventView]:
        """Return events of an order with the notice that their machines got."""
        ids = [event.id for event in events]
        sent, owners = unsaved.notices(snapshot.work, ids), snapshot.work.projects_of_events(ids)
        simulated, absences = snapshot.work.simulated_events(ids), snapshot.work.absences()
        return [
            EventView(
                event=event,
                project=owners.get(event.id),
                simulated=event.id in simulated,
                notices=(notices := notice.by_machine(event, sent[event.id], order, absences=absences)),
                notice=notice.summary_of(event, notices),
                impact=notice.impact(order, event) if order else None,
            )
            for event in self._disclosed(snapshot.fleet, events)
        ]

    def _seen(
        self, snapshot: ScopedSnapshot, page: Sequence[Machine], fresh: LastPolls
    ) -> Sequence[MachineView]:
        ids = [machine.id for machine in page]
        page = self._disclosed(snapshot.fleet, page)
        groups = snapshot.rules.around(groups=sorted({machine.group for machine in page})).groups
        saved, unsaved = snapshot.fleet.last_seen(ids), fresh(ids)
        return [
            MachineView(
                machine=machine,
                group=groups[machine.group],
                last_seen=max(
                    (seen[machine.id] for seen in (saved, unsaved) if machine.id in seen), default=None
                ),
            )
            for machine in page
        ]
