"""What of a host cannot change for now: what it carries, or what is being done there, stands against it."""

from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.host import Host
from forewarn.core.model.order import HostStep, Order, Step
from forewarn.core.words import ANSWERING_AT_ONCE, HOOK, HostName


def check(draft: Draft, known: Host, changed: Host) -> None:
    """Refuse to change a host as long as that would go wrong; the draft has who is there, and on the way."""
    _check_bare_metal(draft, changed)
    if known.uri != changed.uri:
        _check_uri(draft, changed.name)


def _check_bare_metal(draft: Draft, host: Host) -> None:
    """Refuse to call a host bare metal while it carries what is not itself, or is to."""
    if not host.bare_metal:
        return
    where, way = f"hosts.{host.name}: bare-metal", "or leave bare-metal out"
    for machine in draft.machines_on(host.name):
        if HostName(machine.name) != host.name:
            raise Conflict(f'{where}: it still carries "{machine.name}": move it, {way}')
    for machine in draft.machines.values():
        if machine.bound_for == host.name != machine.host:
            raise Conflict(f'{where}: "{machine.name}" is to come here: wait for it, cancel its order, {way}')


def _check_uri(draft: Draft, host: HostName) -> None:
    """Refuse another connection while a driver works by the present one: it would look at another hypervisor.

    Where a driver cannot tell how its step is doing, another connection may be what it needs.
    """
    for order in draft.orders.values():
        for step in order.driven:
            by_connection = order.driver_of(step) not in (*ANSWERING_AT_ONCE, HOOK)
            if by_connection and not step.why and host in _hosts(draft, order, step):
                raise Conflict(
                    f"hosts.{host}: uri: order {order.id} ({order.action}) is at work there, on "
                    f'"{step.name}": change it when that is over, or abandon the order first'
                )


def _hosts(draft: Draft, order: Order, step: Step | HostStep) -> tuple[HostName | None, ...]:
    """Return the hosts that a step has to do with."""
    if isinstance(step, HostStep):
        return (order.host,)
    machine = draft.machines.get(step.machine)
    return step.target, None if machine is None else machine.host
