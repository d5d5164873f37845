"""Holds: while one is in force, nothing new is announced or started in its scope."""

from collections.abc import Iterable

from forewarn.core.basic_types import HostName, Kind, ProjectName
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.model.constraints import FLEET_REACH, Hold, Waiting
from forewarn.core.model.host import Host
from forewarn.core.model.project import Project
from forewarn.core.time_formats import format_time


def put(draft: Draft, hold: Hold, *, late: bool = False) -> Hold:
    """Set a hold. `late` tells that it was requested earlier, while the store was unavailable."""
    if hold.id in draft.holds:
        return draft.holds[hold.id]
    check_free(hold, draft.holds.values())
    draft.holds[hold.id] = hold
    since = f" (since {format_time(hold.at)})" if late else ""
    draft.record(Kind.HOLD_SET, _subject(hold), by=hold.by, reason=f"{reach(hold)}: {hold.reason}{since}")
    draft.wake_all()
    return hold


def check_free(hold: Hold, others: Iterable[Hold]) -> None:
    """Refuse a second hold with the same scope, and name the first."""
    for other in others:
        if (other.project, other.host) == (hold.project, hold.host):
            raise Conflict(f"{reach(hold)} is held already by {other.by} (hold {other.id}): {other.reason}")


def release(draft: Draft, hold: str, *, by: str) -> Hold:
    """Release a hold and wake all orders."""
    known = draft.holds.pop(hold.upper(), None)
    if known is None:
        raise NotFound(f"hold {hold} does not exist")
    draft.record(Kind.HOLD_RELEASED, _subject(known), by=by, reason=f"{reach(known)}: {known.reason}")
    draft.wake_all()
    return known


def refuse(draft: Draft, hold: Hold, why: str) -> None:
    """Record that a hold that was set while the store was unavailable is dropped."""
    reason = f"{reach(hold)}: {hold.reason}; it was dropped: {why}"
    draft.record(Kind.HOLD_REFUSED, _subject(hold), by=hold.by, reason=reason)


def _subject(hold: Hold) -> Host | Project | None:
    """Return the host or project of a hold, so that its records list the hold."""
    if hold.host is not None:
        return Host(name=hold.host)
    return None if hold.project is None else Project(name=hold.project)


def reach(hold: Hold) -> str:
    """Name the scope of a hold."""
    if hold.host is not None:
        return f"host {hold.host}"
    return f"project {hold.project}" if hold.project is not None else FLEET_REACH


def waiting(hold: Hold) -> Waiting:
    """Return a hold as a reason to wait."""
    return Waiting(what=reach(hold), reason=f"held by {hold.by}: {hold.reason}")


def reaching(
    holds: Iterable[Hold], *, hosts: Iterable[HostName | None], projects: Iterable[ProjectName]
) -> tuple[Waiting, ...]:
    """Return the holds whose scope includes one of these hosts or projects."""
    hosts, projects = set(hosts), set(projects)
    return tuple(
        waiting(hold)
        for hold in holds
        if (hold.host is None or hold.host in hosts) and (hold.project is None or hold.project in projects)
    )
