"""Changes by guests: a first poll enables the group, and guests approve or defer its events."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from forewarn.control.use_case import UseCase
from forewarn.core.basic_types import ApprovedBy, EventId, GroupName, Kind, MachineId
from forewarn.core.errors import Conflict, Invalid, NotFound
from forewarn.core.guests import enablement
from forewarn.core.model.event import Approval, Event
from forewarn.core.model.machine import Machine
from forewarn.core.orders import lifecycle
from forewarn.store.batch import Transaction
from forewarn.store.snapshots import Snapshot


class GuestUseCases(UseCase):
    """Use cases of guests, limited to the group of the calling machine."""

    def enable(self, tx: Transaction, *groups: GroupName) -> Collection[GroupName]:
        """Enable groups at their first poll; return those that exist."""
        with self._saving(tx, tx.rules.around(groups=groups)) as draft:
            known = [group for group in groups if group in draft.groups]
            for group in known:
                enablement.enable(draft, draft.groups[group], policy=self._policy)
        return known

    def listed(self, tx: Transaction, machine: MachineId, events: Sequence[EventId]) -> Sequence[EventId]:
        """Return those of these events that can be approved; Invalid if one never belonged to the group."""
        _, known = _events_known_to(tx, machine, events)
        return [event.id for event in sorted(known.values(), key=lambda each: each.number) if event.listed]

    def approve(
        self, tx: Transaction, machine: MachineId, events: Sequence[EventId], *, address: str
    ) -> None:
        """Approve all of these events, or none if one never belonged to the machine's group."""
        caller, known = _events_known_to(tx, machine, events)
        live = [event for event in known.values() if event.listed]
        with self._saving(tx, tx.rules.around(orders=[event.order for event in live])) as draft:
            for event in sorted(live, key=lambda each: each.number):
                approval = Approval(by=caller.name, kind=ApprovedBy.GUEST, at=draft.now, address=address)
                # The approval of another event may have ended this one.
                if draft.events[event.id].listed:
                    lifecycle.approve(draft, draft.events[event.id], approval, policy=self._policy)

    def defer(self, tx: Transaction, machine: MachineId, events: Mapping[EventId, int]) -> None:
        """Defer all of these events by some seconds, or none: each once, up to the limit of its group."""
        caller, known = _events_known_to(tx, machine, list(events))
        for event in known.values():
            if not event.listed:
                raise Conflict(f"event {event.id} is over")
        with self._saving(tx, tx.rules.around(orders=[event.order for event in known.values()])) as draft:
            for id_, seconds in events.items():
                lifecycle.defer(
                    draft,
                    draft.events[EventId(id_.upper())],
                    by=caller.name,
                    wanted=timedelta(seconds=seconds),
                    policy=self._policy,
                )

    def record_impostor(self, tx: Transaction, machine: MachineId, *, mac: str, address: str) -> None:
        """Record a request from a machine's address with a foreign MAC, unless the machine was removed."""
        known = tx.rules.machine_by_id(machine)
        if known is not None:
            reason = f"address {address} was used from MAC {mac}; the machine's own is {known.mac}"
            with self._saving(tx, tx.rules.around(groups=[known.group])) as draft:
                draft.record(Kind.IMPOSTOR_REFUSED, known, reason=reason)


def _events_known_to(
    tx: Snapshot, machine: MachineId, events: Sequence[EventId]
) -> tuple[Machine, dict[EventId, Event]]:
    """Return a machine, and these present or past events of its group; Invalid for an unknown event."""
    caller = tx.rules.machine_by_id(machine)
    if caller is None:
        raise NotFound("Not found")
    known = {event.id: event for event in tx.rules.events_of_group(caller.group, events)}
    for wanted in events:
        if wanted.upper() not in known:
            raise Invalid(f"event {wanted} is not known")
    return caller, known
