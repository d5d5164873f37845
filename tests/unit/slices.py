"""A fleet in memory for tests of the rules: advancing the clock saves the changes of its draft."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    ApprovedBy,
    EventId,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineId,
    MachineName,
    MachineState,
    OrderId,
    ServiceMode,
    StepState,
    Work,
)
from forewarn.core.draft import Draft
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.constraints import ArmedDomain, Budget
from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.host import Host, Room
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import AttemptId, Order, OrderTerms, Step
from forewarn.core.model.project import ALWAYS, Calendar, Project
from forewarn.core.model.record import Record
from forewarn.core.model.slice import Slice
from forewarn.core.orders import lifecycle, order_requests, reports
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.core.policy import Policy
from forewarn.core.redaction import unmarked

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def machine(name: str, host: str = "host-1", *, group: str = "", domain: int = 0, **more: Any) -> Machine:
    """Create a machine in the group of its name's prefix: `web-0` in `web`."""
    return Machine(
        id=MachineId(name),
        name=MachineName(name),
        project=DEFAULT_PROJECT,
        group=GroupName(group or name.partition("-")[0]),
        host=HostName(host),
        update_domain=domain,
        **more,
    )


class Fleet:
    """Machines on sound hosts, in groups that have enabled events. `hosts` are additional, empty hosts."""

    def __init__(
        self,
        *machines: Machine,
        hosts: Iterable[str] = (),
        policies: Mapping[str, GroupPolicy] | None = None,
        silent: Iterable[str] = (),
        calendar: Calendar = ALWAYS,
        policy: Policy | None = None,
        now: datetime = NOON,
    ) -> None:
        self.policy = policy or Policy()
        self._ids = count(1)
        names = sorted({*hosts, *(each.host for each in machines if each.host)})
        groups = sorted({each.group for each in machines})
        base = Slice(
            number=1,
            defaults=FleetDefaults(driver="simulated"),
            projects={DEFAULT_PROJECT: Project(name=DEFAULT_PROJECT, calendar=calendar)},
            hosts={HostName(name): Host(name=HostName(name)) for name in names},
            groups={
                name: Group(
                    name=name,
                    project=DEFAULT_PROJECT,
                    kind=GroupKind.AVAILABILITY_SET,
                    update_domains=5,
                    policy=(policies or {}).get(name, GroupPolicy()),
                    enabled_at=None if name in silent else now,
                    heard=name not in silent,
                )
                for name in groups
            },
            machines={each.id: each for each in machines},
        )
        self.records: list[Record] = []
        self.absences: tuple[Absence, ...] = ()
        self.sent: dict[EventId, dict[MachineId, datetime]] = {}
        self.draft = self._draft(base, now)
        self.draft = self._draft(self.saved(), now)

    def _draft(self, base: Slice, now: datetime) -> Draft:
        return Draft(base, now=now, new_id=lambda: f"{next(self._ids):X}")

    @property
    def now(self) -> datetime:
        return self.draft.now

    # Changes

    def turn(self, span: timedelta = timedelta()) -> None:
        """Save, and advance the clock without advancing orders."""
        self.draft = self._draft(self.saved(), self.now + span)

    def undo(self) -> None:
        """Discard unsaved changes, as after a refusal."""
        self.draft = self._draft(self.draft.base, self.now)

    def pass_(self, span: timedelta) -> None:
        """Save, advance the clock, and advance every order."""
        self.turn(span)
        for order in list(self.draft.orders):
            self.advance(order)

    def order(self, name: str, action: Action = Action.RESTART, *, scheduled: int = 0, **terms: Any) -> Order:
        """Place an order on a machine. All keywords except `driver` are terms."""
        request = OrderRequest(by="test", driver=terms.pop("driver", "simulated"), terms=OrderTerms(**terms))
        return order_requests.on_machine(
            self.draft, MachineId(name), action, request, scheduled=scheduled, policy=self.policy
        )

    def maintain(
        self,
        host: str = "host-1",
        action: Action = Action.MAINTENANCE,
        *,
        work: Work | None = None,
        **terms: Any,
    ) -> Order:
        """Place an order on a host; by default maintenance with a reboot."""
        if action is Action.MAINTENANCE:
            work = work or Work.REBOOT
        request = OrderRequest(by="test", driver=terms.pop("driver", "simulated"), terms=OrderTerms(**terms))
        return order_requests.on_host(
            self.draft, HostName(host), action, request, work=work, policy=self.policy
        )

    def service(self, host: str = "host-1", mode: ServiceMode | None = None, **terms: Any) -> Order:
        """Place an order for work on a host itself."""
        return self.maintain(host, Action.SERVICE, mode=mode, **terms)

    def finish_host(self, order: OrderId, task: HostTask = HostTask.WORK) -> None:
        """Report the running host steps as done, and advance all orders."""
        for step in self.draft.orders[order].running_host_steps:
            if step.task is task:
                reports.step_done(self.draft, AttemptId(order, step.subject, step.attempt))
        for each in list(self.draft.orders):
            self.advance(each)

    def advance(self, order: OrderId) -> Order:
        return lifecycle.advance(self.draft, order, policy=self.policy)

    def approve(self, event: Event, by: str = "web-0", kind: ApprovedBy = ApprovedBy.GUEST) -> None:
        approval = Approval(by=by, kind=kind, at=self.now)
        lifecycle.approve(self.draft, event, approval, policy=self.policy)

    def send(self, name: str, *, at: datetime | None = None) -> None:
        """Note that a machine was sent its events. The rules see this after the next `turn`."""
        for event in self.events():
            if name in {each.name for each in event.resources}:
                self.sent.setdefault(event.id, {}).setdefault(MachineId(name), at or self.now)

    def finish(self, order: OrderId) -> None:
        """Report the running machine steps of an order as done, and advance all orders."""
        for step in self.running(order):
            reports.step_done(self.draft, AttemptId(order, step.machine, step.attempt))
        for each in list(self.draft.orders):
            self.advance(each)

    def fail(self, order: OrderId, why: str = "it burns") -> None:
        """Report the running steps of an order as failed, and advance it."""
        for step in self.running(order):
            reports.step_failed(self.draft, AttemptId(order, step.machine, step.attempt), why=why)
        self.advance(order)

    # State

    def events(self, order: OrderId | None = None) -> tuple[Event, ...]:
        """Return the listed events, oldest first."""
        listed = (event for event in self.draft.events.values() if event.listed)
        mine = (event for event in listed if order is None or event.order == order)
        return tuple(sorted(mine, key=lambda event: event.number))

    def running(self, order: OrderId) -> tuple[Step, ...]:
        return tuple(step for step in self.draft.orders[order].steps if step.state is StepState.RUNNING)

    def machine(self, name: str) -> Machine:
        return self.draft.machines[MachineId(name)]

    def waits(self, order: OrderId) -> list[str]:
        """Return why an order waits, as `what: reason`."""
        return [unmarked(str(wait)) for wait in self.draft.orders[order].waiting]

    def history(self, *kinds: Kind) -> list[str]:
        """Return the reasons of the records of some kinds, oldest first."""
        written = (*self.records, *self.draft.changes().records)
        return [unmarked(record.reason) for record in written if record.kind in kinds]

    def saved(self) -> Slice:
        """Return the fleet as the store would load it after saving the draft."""
        draft = self.draft
        changes = draft.changes().numbered(after=draft.base.number)
        draft.take_saved(changes)
        self.records += changes.records
        events = {id_: event for id_, event in draft.events.items() if event.listed}
        listed: dict[GroupName, Counter[int]] = {}
        armed: dict[GroupName, dict[int, ArmedDomain]] = {}
        for event in (each for each in events.values() if not each.hint):
            listed.setdefault(event.group, Counter())[event.update_domain] += 1
            domains = armed.setdefault(event.group, {})
            domains[event.update_domain] = domains.get(event.update_domain, ArmedDomain()).plus(event)
        return Slice(
            number=draft.base.number + len(changes.records),
            projects=draft.projects,
            hosts=draft.hosts,
            groups=draft.groups,
            machines=draft.machines,
            orders={id_: order for id_, order in draft.orders.items() if order.open},
            events=events,
            listed=listed,
            armed=armed,
            room={name: self._room(name) for name, host in draft.hosts.items() if host.state is HostState.OK},
            budgets={
                group.name: self._budget(group, events.values())
                for group in draft.groups.values()
                if group.policy.budget
            },
            grace=draft.grace,
            absences=self.absences,
            holds=draft.holds,
            sent=self.sent,
        )

    def _room(self, host: HostName) -> Room:
        there = [each for each in self.draft.machines.values() if each.destination == host]
        busy = any(order.open and order.host == host for order in self.draft.orders.values())
        members = Counter((each.group, each.update_domain) for each in there)
        known = self.draft.hosts[host]
        takers = [each for each in self.draft.machines.values() if host in (each.host, each.bound_for)]
        free = {
            name: resource.capacity - sum(each.resources.get(name, 0) for each in takers)
            for name, resource in known.resources.items()
        }
        return Room(
            carried=len(there),
            members=members,
            busy=busy,
            driver=known.driver,
            labels=known.labels,
            free=free,
            unreachable_since=known.unreachable_since,
        )

    def _budget(self, group: Group, events: Iterable[Event]) -> Budget:
        members = [each for each in self.draft.machines.values() if each.group == group.name]
        mine = (event for event in events if event.group == group.name and event.armed and not event.hint)
        return Budget(
            needs=group.policy.budget,
            members=len(members),
            down={each.id: each.name for each in members if each.state is not MachineState.RUNNING},
            announced={named.machine: named.name for event in mine for named in event.resources},
        )
