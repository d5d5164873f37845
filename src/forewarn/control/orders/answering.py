"""What guests and people answer to events: approve, cancel, ask for more time."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from forewarn.control.ports.store import Snapshot
from forewarn.control.use_cases import UseCases
from forewarn.core.access import check_change
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.machine import Machine
from forewarn.core.orders import interventions, lifecycle
from forewarn.core.words import ApprovedBy, EventId, EventStatus, MachineId


class Answering(UseCases):
    """The use cases about events."""

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
                interventions.cancel(draft, known.order, by=by)
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


def _existing_event(tx: Snapshot, event: EventId) -> Event:
    known = tx.event(event)
    if known is None:
        raise NotFound(f"event {event} does not exist")
    return known
