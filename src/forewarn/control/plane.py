"""What can be asked of forewarn that changes something: one method for each, each in one transaction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import timedelta

from forewarn.control.bell import Bell
from forewarn.control.leaving import left_behind, let_go
from forewarn.control.ports import Clock, Snapshot, Store, Transaction
from forewarn.control.scope import ProjectStore
from forewarn.core import fleet, holds, lifecycle, listening, machines, orders
from forewarn.core.access import check_change, check_terms
from forewarn.core.draft import Draft, Slice
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.fleet import FleetSpec
from forewarn.core.machines import MachineSpec
from forewarn.core.model import Approval, Event, Hold, Machine, Order
from forewarn.core.orders import Mandate
from forewarn.core.policy import Policy
from forewarn.core.timing import check_deadline
from forewarn.core.words import (
    Action,
    ApprovedBy,
    EventId,
    EventStatus,
    GroupName,
    HostName,
    Kind,
    MachineId,
    OrderId,
    ProjectName,
    Work,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An order, and the events that tell of it so far."""

    order: Order
    events: tuple[Event, ...]


class Plane:
    """The use cases that change something."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        policy: Policy,
        new_id: Callable[[], str],
        heard: Callable[[OrderId], None] = lambda _: None,
        webhooks_changed: Bell | None = None,
    ) -> None:
        """Take whom to tell of somebody's report of an order, and what to ring when webhooks go."""
        self._heard = heard
        self._store: Store = store
        self._webhooks_changed = webhooks_changed or Bell()
        self._clock = clock
        self._policy = policy
        self._new_id = new_id
        self._project: ProjectName | None = None

    def within(self, project: ProjectName | None) -> "Plane":
        """Give the same for the users of a project; None: for operators."""
        if project is None:
            return self
        plane = copy(self)
        plane._store, plane._project = ProjectStore(self._store, project), project
        return plane

    # Orders

    def order_machine(
        self, name: str, action: Action, mandate: Mandate, *, project: ProjectName | None = None
    ) -> Placed:
        """Order something to be done to a machine."""
        if self._project is not None:
            check_terms(emergency=mandate.terms.emergency, driver=mandate.driver)
        with self._store.write() as tx:
            machine = tx.machine(name, project=project)
            scheduled = tx.scheduled_user_orders(machine.project)
            with self._saving(tx, tx.around(machines=[machine.id])) as draft:
                order = orders.on_machine(
                    draft, machine.id, action, mandate, scheduled=scheduled, policy=self._policy
                )
        return Placed(order=order, events=draft.events_of(order.id))

    def order_host(self, name: str, action: Action, mandate: Mandate, *, work: Work | None = None) -> Placed:
        """Order something to be done to a host and all it carries."""
        host = HostName(name)
        check_deadline(mandate.terms.deadline, now=self._clock.now())
        with self._store.write() as tx:
            around = tx.around(hosts=[host])
            if host not in around.hosts:
                raise NotFound(f'host "{name}" does not exist')
            with self._saving(tx, around) as draft:
                order = orders.on_host(draft, host, action, mandate, work=work, policy=self._policy)
        return Placed(order=order, events=draft.events_of(order.id))

    def cancel_order(self, order: OrderId, *, by: str) -> Placed:
        """Call an order off."""
        with self._on_order(order) as draft:
            ended = orders.cancel(draft, order, by=by)
        return Placed(order=ended, events=())

    def retry_order(self, order: OrderId, *, by: str) -> Placed:
        """Carry out the failed steps of an order once more."""
        with self._on_order(order) as draft:
            again = orders.retry(draft, order, by=by, policy=self._policy)
        return Placed(order=again, events=draft.events_of(order))

    def abandon_order(self, order: OrderId, *, by: str) -> Placed:
        """Give up an order that failed."""
        with self._on_order(order) as draft:
            ended = orders.abandon(draft, order, by=by)
        return Placed(order=ended, events=())

    def complete_order(self, order: OrderId, *, by: str) -> Placed:
        """Take the word of whoever does the work outside that it is done."""
        with self._on_order(order) as draft:
            after = orders.report_done(draft, order, by=by, policy=self._policy)
        return Placed(order=after, events=draft.events_of(order))

    def fail_order(self, order: OrderId, *, why: str) -> Placed:
        """Take the word of whoever does the work outside that it failed."""
        with self._on_order(order) as draft:
            after = orders.report_failed(draft, order, why=why, policy=self._policy)
        return Placed(order=after, events=draft.events_of(order))

    def heartbeat(self, order: OrderId) -> Placed:
        """Take the word of whoever does the work outside that it goes on."""
        with self._on_order(order) as draft:
            after = orders.heartbeat(draft, order, policy=self._policy)
            self._heard(order)
        return Placed(order=after, events=draft.events_of(order))

    # Holds

    def hold(self, mandate: Mandate, *, project: ProjectName | None, host: HostName | None) -> Hold:
        """Let nothing new be announced or started: anywhere, in a project, or on a host."""
        with self._store.write() as tx:
            around = tx.around(hosts=[] if host is None else [host])
            if host is not None and host not in around.hosts:
                raise NotFound(f'host "{host}" does not exist')
            if project is not None and project not in {known.name for known in tx.projects()}:
                raise NotFound(f'project "{project}" does not exist')
            with self._saving(tx, around) as draft:
                wanted = Hold(
                    id=self._new_id(),
                    reason=mandate.reason,
                    by=mandate.by,
                    at=draft.now,
                    project=project,
                    host=host,
                )
                return holds.put(draft, wanted)

    def release(self, hold: str, *, by: str) -> Hold:
        """Lift a hold."""
        with self._store.write() as tx, self._saving(tx, tx.around()) as draft:
            return holds.release(draft, hold, by=by)

    # Events

    def approve_event(self, event: EventId, *, by: str) -> Event:
        """Approve as a person; too late is not an error, as for a guest."""
        with self._store.write() as tx:
            known = _existing_event(tx, event)
            if not known.listed:
                raise Conflict(f"event {known.id} is over: {known.why}")
            with self._saving(tx, tx.around(orders=[known.order])) as draft:
                self._approve(draft, known.id, Approval(by=by, kind=ApprovedBy.PERSON, at=draft.now))
        return draft.events[known.id]

    def cancel_event(self, event: EventId, *, by: str) -> Event:
        """Call off the order of an event, with all its events."""
        with self._store.write() as tx:
            known = _existing_event(tx, event)
            if not known.listed:
                raise Conflict(f"event {known.id} is over: {known.why}")
            if known.status is not EventStatus.SCHEDULED:
                raise Conflict(f"event {known.id} is {known.status}, too late to cancel")
            check_change(tx.order(known.order), project=self._project)
            with self._saving(tx, tx.around(orders=[known.order])) as draft:
                orders.cancel(draft, known.order, by=by)
        return draft.events[known.id]

    def approve(self, machine: MachineId, events: Sequence[EventId], *, address: str) -> None:
        """Approve as a guest: all of these events, or none if one never was its group's."""
        with self._store.write() as tx:
            caller, known = self._events_known_to(tx, machine, events)
            live = [event for event in known.values() if event.listed]
            with self._saving(tx, tx.around(orders=[event.order for event in live])) as draft:
                for event in sorted(live, key=lambda each: each.number):
                    word = Approval(by=caller.name, kind=ApprovedBy.GUEST, at=draft.now, address=address)
                    self._approve(draft, event.id, word)

    def defer(self, machine: MachineId, events: Mapping[EventId, int]) -> None:
        """Put events off as a guest asks: each once, up to its group's limit; all of them or none."""
        with self._store.write() as tx:
            caller, known = self._events_known_to(tx, machine, list(events))
            for event in known.values():
                if not event.listed:
                    raise Conflict(f"event {event.id} is over")
            with self._saving(tx, tx.around(orders=[event.order for event in known.values()])) as draft:
                for id_, seconds in events.items():
                    lifecycle.defer(
                        draft,
                        draft.events[EventId(id_.upper())],
                        by=caller.name,
                        wanted=timedelta(seconds=seconds),
                        policy=self._policy,
                    )

    def _events_known_to(
        self, tx: Snapshot, machine: MachineId, events: Sequence[EventId]
    ) -> tuple[Machine, dict[EventId, Event]]:
        """Find events that are or were a machine's group's; Invalid for one that never was."""
        caller = tx.machine_by_id(machine)
        if caller is None:
            raise NotFound("Not found")
        known = {event.id: event for event in tx.events_of_group(caller.group, events)}
        for wanted in events:
            if wanted.upper() not in known:
                raise Invalid(f"event {wanted} is not known")
        return caller, known

    def _approve(self, draft: Draft, event: EventId, approval: Approval) -> None:
        current = draft.events[event]
        if current.listed:
            lifecycle.approve(draft, current, approval, policy=self._policy)

    # The fleet

    def enable(self, group: GroupName) -> None:
        """Take the first poll of a group."""
        with self._store.write() as tx:
            around = tx.around(groups=[group])
            if group not in around.groups:
                raise NotFound("Not found")
            with self._saving(tx, around) as draft:
                listening.enable(draft, draft.groups[group], policy=self._policy)

    def put_machine(
        self,
        name: str,
        *,
        project: ProjectName | None,
        change: Callable[[MachineSpec | None], MachineSpec],
        by: str,
    ) -> Machine:
        """Add a machine, or change one; `change` makes the new declaration of the present one, if any."""
        with self._store.write() as tx:
            known = _known_machine(tx, name, project)
            spec = change(_present_spec(tx, known))
            if known is None and spec.name.casefold() != name.casefold():
                raise Invalid(f'name: expected "{name}", got "{spec.name}"')
            spec = self._in_project_of_group(tx, spec)
            around = tx.around(
                machines=[known.id] if known else [],
                hosts=[spec.host] if spec.host else [],
                groups=[spec.group] if spec.group else [],
            )
            with self._saving(tx, around) as draft:
                return machines.put(draft, spec, draft.machines[known.id] if known else None, by=by)

    def delete_machine(self, name: str, *, project: ProjectName | None, by: str) -> Machine:
        """Take a machine out of the fleet."""
        with self._store.write() as tx:
            machine = tx.machine(name, project=project)
            with self._saving(tx, tx.around(machines=[machine.id])) as draft:
                machines.remove(draft, machine, by=by)
        return machine

    def apply_fleet(
        self, spec: FleetSpec, *, digest: str | None = None, by: str, dry_run: bool = False
    ) -> tuple[str, ...]:
        """Make the fleet what is declared, and say what that changes; a dry run only says it."""
        fleet.check_windows(spec, self._policy)
        if dry_run:
            with self._store.read() as snapshot:
                draft = self._draft(snapshot.everything())
                return (*fleet.apply(draft, spec, by=by), *left_behind(snapshot, draft).lines())
        with self._store.write() as tx:
            with self._saving(tx, tx.everything()) as draft:
                changes = fleet.apply(draft, spec, by=by)
                leaving = left_behind(tx, draft)
                changes = (*changes, *leaving.lines())
                let_go(tx, draft, leaving, by=by)
                if changes:
                    draft.record(Kind.FLEET_APPLIED, None, by=by, reason=f"{len(changes)} changes")
            if digest is not None:
                tx.set_applied_fleet(digest)
        if leaving.webhooks:
            self._webhooks_changed.ring()
        return changes

    def applied_fleet(self) -> str | None:
        """Return the digest of the fleet file last applied."""
        with self._store.read() as snapshot:
            return snapshot.applied_fleet()

    # Time

    def clock_advanced(self, way: timedelta, *, by: str) -> None:
        """Keep who turned the clock, and how far; called before it is."""
        with self._store.write() as tx, self._saving(tx, tx.around()) as draft:
            until = f"{draft.now + way:%Y-%m-%dT%H:%M:%SZ}"
            draft.record(Kind.CLOCK_ADVANCED, None, by=by, reason=f"by {way.total_seconds():g} s to {until}")

    # How each of them loads and saves

    @contextmanager
    def _on_order(self, order: OrderId) -> Iterator[Draft]:
        with self._store.write() as tx:
            known = tx.order(order)
            if known is None:
                raise NotFound(f"order {order} does not exist")
            check_change(known, project=self._project)
            with self._saving(tx, tx.around(orders=[order])) as draft:
                yield draft

    @contextmanager
    def _saving(self, tx: Transaction, around: Slice) -> Iterator[Draft]:
        draft = self._draft(around)
        yield draft
        tx.save(draft.changes())

    def _draft(self, around: Slice) -> Draft:
        return Draft(around, now=self._clock.now(), new_id=self._new_id)

    def _in_project_of_group(self, tx: Snapshot, spec: MachineSpec) -> MachineSpec:
        if spec.group is None:
            if spec.project not in {project.name for project in tx.projects()}:
                known = f"expected one of the projects, got {spec.project!r}"
                raise Invalid(f'machine "{spec.name}": project: {known}')
            return spec
        group = tx.group(spec.group)
        if group is None:
            raise Invalid(f'machine "{spec.name}": group: expected one of the groups, got {spec.group!r}')
        if spec.update_domain >= group.update_domains:
            expected = f"expected 0 to {group.update_domains - 1}, got {spec.update_domain}"
            raise Invalid(f'machine "{spec.name}": update_domain: {expected}')
        return replace(spec, project=group.project)


def _existing_event(tx: Snapshot, event: EventId) -> Event:
    known = tx.event(event)
    if known is None:
        raise NotFound(f"event {event} does not exist")
    return known


def _known_machine(tx: Snapshot, name: str, project: ProjectName | None) -> Machine | None:
    try:
        return tx.machine(name, project=project)
    except NotFound:
        return None


def _present_spec(tx: Snapshot, known: Machine | None) -> MachineSpec | None:
    if known is None:
        return None
    group = tx.group(known.group)
    return machines.spec_of(known, group) if group else None
