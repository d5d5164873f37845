"""Bare metal: a host that is also the only machine on it, so the machine cannot move."""

from forewarn.core.basic_types import Action, ServiceMode, Work
from forewarn.core.catalogue import ACTIONS, WORKS
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import OrderTerms


def host_of(draft: Draft, machine: Machine) -> Host | None:
    """Return the bare-metal host that a machine is, or None for a virtual machine."""
    host = draft.hosts.get(machine.host) if machine.host is not None else None
    return host if host is not None and host.bare_metal else None


def check_host(host: Host, action: Action, work: Work | None, terms: OrderTerms) -> None:
    """Refuse to move a machine off a bare-metal host.

    A rollout is not refused: it works on such a host in place.
    """
    done = work or ACTIONS[action].work
    moves = action is not Action.FAIL and done is not None and WORKS[done].moves
    emptied = action is Action.SERVICE and terms.mode is ServiceMode.EVACUATE and terms.rollout is None
    if host.bare_metal and (moves or emptied):
        raise Conflict(f'host "{host.name}" is bare metal, and cannot be emptied: work on it in place')


def check_machine(draft: Draft, machine: Machine, action: Action) -> None:
    """Refuse to move a bare-metal machine."""
    if action in (Action.REDEPLOY, Action.MOVE) and host_of(draft, machine) is not None:
        raise Conflict(f'machine "{machine.name}" is bare metal, and cannot be moved: restart it')
