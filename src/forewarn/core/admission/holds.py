"""Holds: while one is in force, nothing new is announced or started where it reaches."""

from collections.abc import Iterable

from forewarn.core.basic_types import HostName, Kind, ProjectName
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.model.constraints import FLEET_REACH, Hold, Waiting
from forewarn.core.model.host import Host
from forewarn.core.model.project import Project
from forewarn.core.time_formats import format_time


def put(draft: Draft, hold: Hold, *, late: bool = False) -> Hold:
    """Set a hold, perhaps a while after it was asked for; a second one on the same thing is refused."""
    if hold.id in draft.holds:
        return draft.holds[hold.id]
    check_free(hold, draft.holds.values())
    draft.holds[hold.id] = hold
    since = f" (since {format_time(hold.at)})" if late else ""
    draft.record(Kind.HOLD_SET, _about(hold), by=hold.by, reason=f"{reach(hold)}: {hold.reason}{since}")
    draft.wake_all()
    return hold


def check_free(hold: Hold, others: Iterable[Hold]) -> None:
    """Refuse a second hold on the same thing, naming the first."""
    for other in others:
        if (other.project, other.host) == (hold.project, hold.host):
            raise Conflict(f"{reach(hold)} is held already by {other.by} (hold {other.id}): {other.reason}")


def release(draft: Draft, hold: str, *, by: str) -> Hold:
    """Lift a hold; everything that waited for it is looked at again."""
    known = draft.holds.pop(hold.upper(), None)
    if known is None:
        raise NotFound(f"hold {hold} does not exist")
    draft.record(Kind.HOLD_RELEASED, _about(known), by=by, reason=f"{reach(known)}: {known.reason}")
    draft.wake_all()
    return known


def refuse(draft: Draft, hold: Hold, why: str) -> None:
    """Record that a hold which was set while nothing could be saved is not kept."""
    reason = f"{reach(hold)}: {hold.reason}; it is not kept, and holds nothing: {why}"
    draft.record(Kind.HOLD_REFUSED, _about(hold), by=hold.by, reason=reason)


def _about(hold: Hold) -> Host | Project | None:
    """Return what a hold is about, so that it is found among the records of its host or project."""
    if hold.host is not None:
        return Host(name=hold.host)
    return None if hold.project is None else Project(name=hold.project)


def reach(hold: Hold) -> str:
    """Write where a hold reaches."""
    if hold.host is not None:
        return f"host {hold.host}"
    return f"project {hold.project}" if hold.project is not None else FLEET_REACH


def waiting(hold: Hold) -> Waiting:
    """Return a hold as what something waits for."""
    return Waiting(what=reach(hold), reason=f"held by {hold.by}: {hold.reason}")


def reaching(
    holds: Iterable[Hold], *, hosts: Iterable[HostName | None], projects: Iterable[ProjectName]
) -> tuple[Waiting, ...]:
    """Return the holds that reach one of these hosts or projects."""
    hosts, projects = set(hosts), set(projects)
    return tuple(
        waiting(hold)
        for hold in holds
        if (hold.host is None or hold.host in hosts) and (hold.project is None or hold.project in projects)
    )
