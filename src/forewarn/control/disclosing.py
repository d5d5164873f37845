"""Showing callers what they may see of what they find: the one place where their scope decides it."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from forewarn.core import disclosure
from forewarn.core.basic_types import ProjectName
from forewarn.core.disclosure import Disclosure
from forewarn.core.errors import ForewarnError, Refused
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook
from forewarn.core.scope import Scope
from forewarn.store.queries.fleet import FleetQueries

V = TypeVar("V", Machine, Group, Order, Event, Record, Webhook)


def disclosed(fleet: FleetQueries, values: Iterable[V], *, scope: Scope) -> Sequence[V]:
    """Return values as a caller sees them; operators see all that there is, whatever they ask for."""
    found = tuple(values)
    if scope.caller is None or not found:
        return found
    told = disclosure_to(fleet, scope.caller, found)
    return [told.shown(value) for value in found]


def disclosure_to(fleet: FleetQueries, project: ProjectName, values: Iterable[object]) -> Disclosure:
    """Return what the people of a project see of some values; of a text, too."""
    known = fleet.project(project)
    return Disclosure(
        project=project,
        names=fleet.names_among(disclosure.words(values), project=project),
        sees_hosts=known is not None and known.sees_hosts,
    )


def disclosed_refusal(fleet: FleetQueries, error: ForewarnError, *, scope: Scope) -> ForewarnError:
    """Return a refusal in words that the caller may read."""
    if scope.caller is None:
        return error
    said = str(error)
    return type(error)(disclosure_to(fleet, scope.caller, [said]).text(said))


def sees_hosts(fleet: FleetQueries, *, scope: Scope) -> bool:
    """Return whether the caller may know which hosts there are."""
    return scope.caller is None or disclosure_to(fleet, scope.caller, ()).sees_hosts


def check_sees_hosts(fleet: FleetQueries, *, scope: Scope) -> None:
    """Refuse to tell what is on a host, or whether there is such a host, to who may not see hosts."""
    if sees_hosts(fleet, scope=scope):
        return
    project = scope.caller
    raise Refused(
        f"the people of project {project} do not see hosts; an operator may allow it "
        f"([projects.{project}] sees-hosts = true in the fleet file)"
    )
