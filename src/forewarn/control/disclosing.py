"""Redaction of values for a caller. No other module decides by the scope what a caller may see."""

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
from forewarn.core.scope import Scope
from forewarn.core.webhook_rules import Webhook
from forewarn.store.queries.fleet import FleetQueries

V = TypeVar("V", Machine, Group, Order, Event, Record, Webhook)


def disclosed(fleet: FleetQueries, values: Iterable[V], *, scope: Scope) -> Sequence[V]:
    """Return values as a caller may see them. Operators see everything."""
    found = tuple(values)
    if scope.caller is None or not found:
        return found
    disclosure = disclosure_to(fleet, scope.caller, found)
    return [disclosure.shown(value) for value in found]


def disclosure_to(fleet: FleetQueries, project: ProjectName, values: Iterable[object]) -> Disclosure:
    """Return the rules for what a project may see of these values or texts."""
    known = fleet.project(project)
    return Disclosure(
        project=project,
        names=fleet.names_among(disclosure.words(values), project=project),
        sees_hosts=known is not None and known.sees_hosts,
    )


def disclosed_refusal(fleet: FleetQueries, error: ForewarnError, *, scope: Scope) -> ForewarnError:
    """Redact the message of an error for a caller."""
    if scope.caller is None:
        return error
    message = str(error)
    return type(error)(disclosure_to(fleet, scope.caller, [message]).text(message))


def sees_hosts(fleet: FleetQueries, *, scope: Scope) -> bool:
    """Return whether the caller may see hosts."""
    return scope.caller is None or disclosure_to(fleet, scope.caller, ()).sees_hosts


def check_sees_hosts(fleet: FleetQueries, *, scope: Scope) -> None:
    """Raise Refused if the caller may not see hosts, whether or not the host exists."""
    if sees_hosts(fleet, scope=scope):
        return
    project = scope.caller
    raise Refused(
        f"callers of project {project} may not see hosts; an operator can allow it "
        f"([projects.{project}] sees-hosts = true in the fleet file)"
    )
