"""What can be asked of forewarn that changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from forewarn.control.ports import Activity, HistoryFilter, Snapshot, Store
from forewarn.control.scope import ProjectStore
from forewarn.core import machines
from forewarn.core.errors import NotFound
from forewarn.core.fleet import FleetSpec, GroupSpec
from forewarn.core.model import (
    Event,
    EventId,
    Group,
    GroupKind,
    GroupName,
    Host,
    HostName,
    Machine,
    MachineId,
    Order,
    OrderId,
    OrderState,
    ProjectName,
    Record,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineView:
    """A machine, and what its guests have made known."""

    machine: Machine
    group: Group
    last_seen: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderView:
    """An order with all its events, over ones too."""

    order: Order
    events: Sequence[Event]


class Views:
    """The use cases that only read."""

    def __init__(self, *, store: Store, activity: Activity) -> None:
        self._store = store
        self._activity = activity

    def within(self, project: ProjectName | None) -> "Views":
        """Give the same as the people of a project see it; None: all of it."""
        if project is None:
            return self
        return Views(store=ProjectStore(self._store, project), activity=self._activity)

    def machine(self, name: str, *, project: ProjectName | None) -> MachineView:
        """Show one machine."""
        with self._store.read() as snapshot:
            return self._seen(snapshot, [snapshot.machine(name, project=project)])[0]

    def machines(self, *, after: str | None, limit: int) -> tuple[Sequence[MachineView], str | None]:
        """List machines."""
        with self._store.read() as snapshot:
            page, more = snapshot.machines(after=after, limit=limit)
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
            raise NotFound(f'group "{name}" does not exist')
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
            raise NotFound(f'host "{name}" does not exist')
        carried = [machine for machine in around.machines.values() if machine.host == name]
        return around.hosts[HostName(name)], sorted(carried, key=lambda machine: machine.name.casefold())

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
            return OrderView(order=known, events=snapshot.events_of_order(known.id))

    def events(self, *, after: str | None, limit: int) -> tuple[Sequence[Event], str | None]:
        """List what guests are being told."""
        with self._store.read() as snapshot:
            return snapshot.events(after=after, limit=limit)

    def event(self, event: EventId) -> Event:
        """Show one event, listed or over."""
        with self._store.read() as snapshot:
            known = snapshot.event(event)
        if known is None:
            raise NotFound(f"event {event} does not exist")
        return known

    def history(self, wanted: HistoryFilter) -> Sequence[Record]:
        """List records, newest first."""
        with self._store.read() as snapshot:
            return snapshot.history(wanted)

    def fleet(self) -> FleetSpec:
        """Show the fleet as it would be declared now."""
        with self._store.read() as snapshot:
            whole = snapshot.everything()
        groups = [group for group in whole.groups.values() if group.kind is not GroupKind.STANDALONE]
        return FleetSpec(
            projects=tuple(sorted(whole.projects)),
            groups=tuple(_group_spec(group) for group in sorted(groups, key=lambda group: group.name)),
            hosts=tuple(sorted(whole.hosts)),
            machines=tuple(
                machines.spec_of(machine, whole.groups[machine.group])
                for machine in sorted(whole.machines.values(), key=lambda each: (each.project, each.name))
            ),
        )

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count what there is, for the metrics."""
        with self._store.read() as snapshot:
            return snapshot.counts()

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
        name=group.name, kind=group.kind, update_domains=group.update_domains, project=group.project
    )
